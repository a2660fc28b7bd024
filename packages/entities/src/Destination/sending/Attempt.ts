import type { Answer as Answered, AttemptFacts, HttpSender, Verdict } from "@tidegate/connectors/Connector"
import type { Failure } from "@tidegate/connectors/Failure"
import type { AttemptErrorCode } from "@tidegate/model/AttemptErrorCode"
import { newId, prefixes } from "@tidegate/model/Ids"
import type { MessageHead } from "@tidegate/model/Message"
import { nextRetry } from "@tidegate/rules/Retry"
import type { AttemptRecord } from "@tidegate/storage/journal/AttemptStatement"
import type { Echoes } from "@tidegate/redaction/Echoes"
import type { AttemptTrace } from "@tidegate/telemetry/Tracing"
import type { DeliveryItem } from "../queue/DeliveryItem.ts"
import type { DestinationState, ConnectionQueueSettings } from "../DestinationState.ts"
import { isRefusedForNow } from "../../holds/TargetHold.ts"

/*
 * One attempt to deliver, without the sending: its data, and what its outcome means for the event. Pure, but for the random part
 * of its id.
 */

/** An attempt under way, with the data of its record: `url` and `method` once the request is prepared. */
export interface Attempt {
  /** Without its body once a consumer has fetched it. */
  item: DeliveryItem
  /** Undefined when the connection is not known: then the attempt fails. */
  readonly connection: ConnectionQueueSettings | undefined
  readonly startedAt: number
  readonly trigger: string
  /** Null: it is not traced. */
  readonly trace: AttemptTrace | null
  url: string
  method: string
  /** The id of the tunnel session that it went through; null: none. */
  cliId: string | null
  /** Credentials that were sent with it and must not be stored; null: none. */
  echoes: Echoes | null
  /** Set for a call of a workflow step; null for an event. */
  readonly call: CallSettings | null
}

/** The settings that a workflow step has for its call. */
export interface CallSettings {
  /** For the whole call. */
  readonly timeoutMs: number
  /** Bytes of the answer's body to keep. */
  readonly captureBytes: number
  /** A flat list of names and values. They replace the destination's own headers of the same names. */
  readonly headers: ReadonlyArray<string>
  /** Aborts an exchange by HTTP: nobody waits for its answer any more. */
  readonly signal: AbortSignal
}

/** How the exchange with a target ended: `status` is null when there was no answer. Times are Unix ms. */
export interface Outcome extends Omit<Answered, "status"> {
  readonly status: number | null
  /** Why there is no complete answer; null when there is one. */
  readonly errorCode: AttemptErrorCode | null
  readonly errorMessage: string | null
  readonly sentAt: number
  readonly respondedAt: number
}

export const beginAttempt = (
  item: DeliveryItem,
  connection: ConnectionQueueSettings | undefined,
  startedAt: number,
  trace: AttemptTrace | null,
  call: CallSettings | null = null
): Attempt => ({
  item,
  connection,
  startedAt,
  trigger: triggerOf(item, connection),
  trace,
  url: "",
  method: item.payload.method,
  cliId: null,
  echoes: null,
  call
})

const triggerOf = (item: DeliveryItem, connection: ConnectionQueueSettings | undefined): string =>
  connection !== undefined && connection.resumedAt > Math.max(item.createdAt, item.lastAttemptAt ?? 0)
    ? "UNPAUSE"
    : item.attempts === 0
      ? item.trigger
      : "AUTOMATIC"

export const factsOf = (
  { call, item, startedAt, trigger }: Attempt,
  connection: ConnectionQueueSettings,
  destination: Pick<DestinationState, "id" | "name">,
  shown: MessageHead
): AttemptFacts => ({
  eventId: item.eventId,
  requestId: item.payload.requestId,
  teamId: item.teamId,
  sourceId: item.sourceId,
  connectionId: item.connectionId,
  destinationId: destination.id,
  webhookId: item.rootEventId ?? item.eventId,
  attemptNumber: item.attempts + 1,
  trigger,
  willRetryAfter: willRetryAfter(connection, item, startedAt),
  sourceName: connection.sourceName,
  connectionName: connection.name,
  destinationName: destination.name,
  verified: item.payload.verified,
  originalIp: item.payload.originalIp,
  createdAt: item.createdAt,
  timestampSeconds: Math.floor(startedAt / 1000),
  shown,
  orderingKey: item.orderingKey,
  ...(call === null ? {} : { isStep: true })
})

/** Seconds until the next attempt, in case this one fails and the target names no time; null: this is the last one. */
const willRetryAfter = (connection: ConnectionQueueSettings, item: DeliveryItem, now: number): number | null => {
  const next = nextRetry(
    connection.retry,
    item.attempts + 1,
    { status: null, retryAfter: null },
    now,
    item.firstAttemptAt ?? now,
    0.5
  )
  return next.final ? null : Math.round((next.retryAt - now) / 1000)
}

const noBody = Buffer.alloc(0)

/** The outcome of an attempt for which nothing was sent or nothing was received. */
export const unanswered = (
  errorCode: AttemptErrorCode,
  errorMessage: string,
  sentAt: number,
  now: number
): Outcome => ({
  status: null,
  headers: {},
  body: noBody,
  bodyTruncated: false,
  errorCode,
  errorMessage,
  sentAt,
  respondedAt: now
})

/** The meaning of an outcome: the sender judges an answer; without a complete answer the attempt has failed. */
export const verdictOf = (outcome: Outcome, judge: HttpSender["judge"]): Verdict =>
  outcome.errorCode === null && outcome.status !== null
    ? judge(outcome as Outcome & Answered)
    : { code: outcome.errorCode ?? "UNKNOWN", message: outcome.errorMessage ?? "no full answer", final: false }

/** An outcome and its verdict, without the credentials that were sent with the attempt. */
export const withoutEchoes = ({ echoes }: Attempt, outcome: Outcome, verdict: Verdict): readonly [Outcome, Verdict] => {
  if (echoes === null) return [outcome, verdict]
  const { body, bodyTruncated, errorMessage, headers } = outcome
  return [
    {
      ...outcome,
      body: echoes.bytes(body, bodyTruncated),
      headers: echoes.values(headers),
      errorMessage: errorMessage === null ? null : echoes.text(errorMessage)
    },
    verdict === "successful" ? verdict : { ...verdict, message: echoes.text(verdict.message) }
  ]
}

/** The record of a finished attempt. `random`: from 0 to 1, spreads retries. */
export const recordOf = (
  { cliId, item, connection, method, startedAt, trigger, url }: Attempt,
  destinationId: string,
  outcome: Outcome,
  verdict: Verdict,
  finishedAt: number,
  random: number
): AttemptRecord => {
  const successful = verdict === "successful"
  const attemptNumber = item.attempts + 1
  return {
    id: newId(prefixes.attempt, finishedAt),
    teamId: item.teamId,
    eventId: item.eventId,
    requestId: item.payload.requestId,
    connectionId: item.connectionId,
    sourceId: item.sourceId,
    destinationId,
    attemptNumber,
    trigger,
    successful,
    responseStatus: outcome.status,
    errorCode: successful ? null : verdict.code,
    failureMessage: successful ? null : verdict.message,
    body: outcome.body.length === 0 ? null : outcome.body,
    responseHeaders: outcome.status === null ? null : JSON.stringify(outcome.headers),
    requestedUrl: url,
    httpMethod: method,
    bulkRetryId: item.retryOperationId,
    cliId,
    deliveredAt: outcome.sentAt,
    respondedAt: outcome.status === null ? null : Math.max(outcome.respondedAt, outcome.sentAt),
    deliveryLatency: Math.max(0, outcome.sentAt - startedAt),
    finishedAt,
    rootEventId: item.rootEventId,
    eventCreatedAt: item.createdAt,
    retryAt:
      successful || verdict.final
        ? null
        : retryTime(
            connection,
            attemptNumber,
            outcome,
            verdict,
            finishedAt,
            item.firstAttemptAt ?? outcome.sentAt,
            random
          )
  }
}

const retryTime = (
  connection: ConnectionQueueSettings | undefined,
  attemptNumber: number,
  outcome: Outcome,
  verdict: Failure,
  now: number,
  firstAttemptAt: number,
  random: number
): number | null => {
  const { errorCode, headers, status } = outcome
  const saidInBody = verdict.retryAfter ?? null
  const retryAfter = saidInBody === null ? headers["retry-after"] : String(saidInBody)
  // When a sender judges a 2xx to be a failure, the retry rule's list of statuses does not apply to it.
  const isFailure = errorCode === null && status !== null && (status < 200 || status > 299)
  const next = nextRetry(
    connection?.retry ?? null,
    attemptNumber,
    {
      status: isFailure ? status : null,
      retryAfter: typeof retryAfter === "string" ? retryAfter : null,
      refusedForNow: isRefusedForNow(outcome, verdict, now)
    },
    now,
    firstAttemptAt,
    random
  )
  return next.final ? null : next.retryAt
}

/** The event as it waits for its next attempt. */
export const retryOf = (item: DeliveryItem, record: AttemptRecord, dueAt: number): DeliveryItem => ({
  ...item,
  attempts: record.attemptNumber,
  dueAt,
  firstAttemptAt: item.firstAttemptAt ?? record.deliveredAt,
  lastAttemptAt: record.finishedAt
})
