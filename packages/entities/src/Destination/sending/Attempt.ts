import type { Answer as Answered, AttemptFacts, Failure, HttpSender, Verdict } from "@tidegate/connectors/Connector"
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
 * One attempt to deliver, without its doing: what it says of itself, and what its outcome makes of the event. Pure, but for the
 * random part of its id.
 */

/** An attempt under way, with what its record says of it: `url` and `method` once the request is prepared. */
export interface Attempt {
  readonly item: DeliveryItem
  /** Undefined when the connection is not known: then it fails. */
  readonly lane: ConnectionQueueSettings | undefined
  readonly startedAt: number
  readonly trigger: string
  /** Null: it is not traced. */
  readonly trace: AttemptTrace | null
  url: string
  method: string
  /** The tunnel's session that it went through; null: through none. */
  cliId: string | null
  /** What was sent with it and is not to be kept; null: nothing. */
  echoes: Echoes | null
  /** Of one that is made for a step of a workflow; null: it is an event's. */
  readonly call: CallSettings | null
}

/** What a step of a workflow has a say in. */
export interface CallSettings {
  /** For the whole of it. */
  readonly timeoutMs: number
  /** Of the answer's body. */
  readonly captureBytes: number
  /** Flat. Whatever the destination is: they take the place of what it would have sent by the same names. */
  readonly headers: ReadonlyArray<string>
}

/** How the exchange with a target ended: `status` is null when nothing was answered. Times are Unix ms. */
export interface Outcome extends Omit<Answered, "status"> {
  readonly status: number | null
  /** Why there is no full answer; null when there is one. */
  readonly errorCode: AttemptErrorCode | null
  readonly errorMessage: string | null
  readonly sentAt: number
  readonly respondedAt: number
}

export const beginAttempt = (
  item: DeliveryItem,
  lane: ConnectionQueueSettings | undefined,
  startedAt: number,
  trace: AttemptTrace | null,
  call: CallSettings | null = null
): Attempt => ({
  item,
  lane,
  startedAt,
  trigger: triggerOf(item, lane),
  trace,
  url: "",
  method: item.payload.method,
  cliId: null,
  echoes: null,
  call
})

const triggerOf = (item: DeliveryItem, lane: ConnectionQueueSettings | undefined): string =>
  lane !== undefined && lane.resumedAt > Math.max(item.createdAt, item.lastAttemptAt ?? 0)
    ? "UNPAUSE"
    : item.attempts === 0
      ? item.trigger
      : "AUTOMATIC"

export const factsOf = (
  { call, item, startedAt, trigger }: Attempt,
  lane: ConnectionQueueSettings,
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
  willRetryAfter: willRetryAfter(lane, item, startedAt),
  sourceName: lane.sourceName,
  connectionName: lane.name,
  destinationName: destination.name,
  verified: item.payload.verified,
  originalIp: item.payload.originalIp,
  createdAt: item.createdAt,
  timestampSeconds: Math.floor(startedAt / 1000),
  shown,
  ...(call === null ? {} : { isStep: true })
})

/** Seconds until the next attempt should this one fail without saying when; null when it is the last. */
const willRetryAfter = (lane: ConnectionQueueSettings, item: DeliveryItem, now: number): number | null => {
  const next = nextRetry(
    lane.retry,
    item.attempts + 1,
    { status: null, retryAfter: null },
    now,
    item.firstAttemptAt ?? now,
    0.5
  )
  return next.final ? null : Math.round((next.retryAt - now) / 1000)
}

const noBody = Buffer.alloc(0)

/** The outcome of an attempt of which nothing was sent, or nothing came back. */
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

/** What an outcome means: an answer is its sender's to judge, and without one in full it has failed. */
export const verdictOf = (outcome: Outcome, judge: HttpSender["judge"]): Verdict =>
  outcome.errorCode === null && outcome.status !== null
    ? judge(outcome as Outcome & Answered)
    : { code: outcome.errorCode ?? "UNKNOWN", message: outcome.errorMessage ?? "no full answer", final: false }

/** An outcome, and what it means, without what was sent with the attempt. */
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

/** The record of an attempt that is over. `random`: from 0 to 1, spreads retries. */
export const recordOf = (
  { cliId, item, lane, method, startedAt, trigger, url }: Attempt,
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
        : retryTime(lane, attemptNumber, outcome, verdict, finishedAt, item.firstAttemptAt ?? outcome.sentAt, random)
  }
}

const retryTime = (
  lane: ConnectionQueueSettings | undefined,
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
  // A 2xx that its sender takes for a failure is none to a rule, which may name the statuses that are tried again.
  const isFailure = errorCode === null && status !== null && (status < 200 || status > 299)
  const next = nextRetry(
    lane?.retry ?? null,
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
