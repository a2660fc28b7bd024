import { Effect } from "effect"
import type { Answer, Verdict } from "@tidegate/connectors/Connector"
import { loopHeader } from "@tidegate/model/HeaderRules"
import { type Attempt, beginAttempt, type CallSettings, type Outcome } from "../sending/Attempt.ts"
import { waitOf } from "../../holds/TargetHold.ts"
import { Call } from "../../limits/Calls.ts"
import type { Ending } from "../../limits/ConcurrencyLimit.ts"
import { type DeliveryItem, newItem, payloadOf } from "../queue/DeliveryItem.ts"
import type { DeliveryQueue } from "../queue/DeliveryQueue.ts"
import type { DestinationState, ConnectionQueueSettings } from "../DestinationState.ts"
import type { Ends } from "../sending/AttemptEnding.ts"
import type { StepSend, StepSent } from "./StepProtocol.ts"

/**
 * How long a call waits for its turn before its caller has to send it again (ms): so a lost message, or a destination that moved,
 * is noticed.
 */
const turnMs = 30_000
/** The extra time in which an exchange may end by itself after its time-out (ms). */
const graceMs = 500
/** How often calls are checked for their time-out (ms): a timer for each would cost as much as its turn. */
const lookEveryMs = 500
/** Bytes of the body of an answer. */
const maxAnswered = 1024 * 1024

interface Calling {
  readonly queue: Pick<DeliveryQueue, "call" | "withdraw" | "called">
  readonly now: () => number
  /** Begins an attempt. */
  readonly send: (attempt: Attempt) => void
  /** A call waits in the queue: its timers have to run. */
  readonly queued: () => void
  readonly state: () => DestinationState | null
  /** Whether no client holds its tunnel open. */
  readonly isAway: () => boolean
  readonly after: (ms: number, then: () => void) => void
}

interface Asked {
  /** When its time is over (Unix ms), and what to do then. */
  until: number
  over: () => void
  readonly end: (sent: StepSent) => void
  /** Ends it without an answer if it still waits. */
  readonly withdraw: () => boolean
}

const again: StepSent = { kind: "again" }

const failure = (code: string, message: string, final = false): StepSent => ({
  kind: "failed",
  code,
  message,
  final,
  status: null,
  retry_after_ms: null
})

/** The calls of workflow steps to one destination. They wait for their turn beside its events, and get an answer. */
export const makeStepCalls = ({ after, isAway, now, queue, queued, send, state }: Calling) => {
  const asked = new Set<Asked>()
  let isLooking = false
  const underWay = new Map<Attempt, { readonly call: Call; readonly end: (sent: StepSent) => void }>()

  const ended = (attempt: Attempt, sent: StepSent, how: Ending): void => {
    const found = underWay.get(attempt)
    underWay.delete(attempt)
    if (found === undefined) return
    found.end(sent)
    // What its caller has aborted says nothing about the target.
    queue.called(found.call, attempt.call?.signal.aborted === true ? "unsent" : how)
  }

  const look = (): void => {
    const at = now()
    for (const { over, until } of asked) if (until <= at) over()
    isLooking = asked.size > 0
    if (isLooking) after(lookEveryMs, look)
  }

  const ends: Ends = {
    finished: (attempt, outcome, verdict, how) => ended(attempt, sentBy(outcome, verdict), how),
    abandoned: (attempt) => ended(attempt, again, "unsent"),
    // No step waits for a consumer: such calls are refused.
    handedOut: () => {},
    returned: (attempt) => ended(attempt, failure("CLI_UNAVAILABLE", "the tunnel's client has gone"), "unsent"),
    // Nothing was sent: it had its turn, but no connection.
    lost: (attempt) => ended(attempt, again, "unsent")
  }

  return {
    ends,
    /** Answers the waiting calls that will never be sent with the destination's new settings. */
    configured: (): void => {
      const why = refusalOf(state())
      if (why === null) return
      for (const { end, withdraw } of asked) if (withdraw()) end(why)
    },
    /** Waiting calls are sent again by their callers, to the next owner of the destination. */
    stop: (): void => {
      for (const { end, withdraw } of asked) if (withdraw()) end(again)
    },
    send: (message: StepSend): Effect.Effect<StepSent> =>
      Effect.callback((resume) => {
        const destination = state()
        const refused = destination?.teamId === message.team_id ? refusalOf(destination) : gone
        if (refused !== null) return resume(Effect.succeed(refused))
        if (isAway()) {
          return resume(Effect.succeed(failure("CLI_UNAVAILABLE", "nobody holds the tunnel of this destination open")))
        }
        const aborting = new AbortController()
        const call: Call = new Call({
          group: message.workflow.id,
          since: message.since,
          bytes: message.request.body.length + 2_048,
          start: (startedAt) => {
            entry.until = startedAt + message.timeout_ms + graceMs
            entry.over = () => end(late(message))
            const item = itemOf(message, startedAt)
            const attempt = beginAttempt(
              item,
              connectionQueueOf(message),
              startedAt,
              null,
              settingsOf(message, aborting.signal)
            )
            underWay.set(attempt, { call, end })
            send(attempt)
          }
        })
        const withdraw = (): boolean => queue.withdraw(call)
        const end = (sent: StepSent): void => {
          if (asked.delete(entry)) resume(Effect.succeed(sent))
        }
        const waited = (): void => {
          if (withdraw()) end(again)
        }
        const entry: Asked = { end, withdraw, until: now() + turnMs, over: waited }
        asked.add(entry)
        if (!isLooking) {
          isLooking = true
          after(lookEveryMs, look)
        }
        if (queue.call(call)) queued()
        else end(again)
        // The run was cancelled, or goes on in another process. The permit of an exchange is taken until the exchange has ended.
        return Effect.sync(() => {
          withdraw()
          asked.delete(entry)
          aborting.abort()
        })
      })
  }
}

const gone = failure("RESOURCE_DELETED", "the destination was deleted")

/** A step has seconds for its call, and a consumer fetches when it likes. */
const isFetched = failure("BAD_RESPONSE", "consumers fetch the events of this destination: a step cannot call it", true)

const refusalOf = (destination: DestinationState | null): StepSent | null => {
  if (destination === null || destination.isDeleted) return gone
  if (destination.sender?.kind === "pull") return isFetched
  return destination.state === "open" ? null : failure("RESOURCE_DISABLED", "the destination is disabled")
}

const late = ({ timeout_ms }: StepSend): StepSent => failure("TIMEOUT", `no full answer within ${timeout_ms} ms`)

/** A step in the shape that an attempt has for an event. */
const itemOf = ({ attempt, key, request, since, team_id, workflow }: StepSend, now: number): DeliveryItem => ({
  ...newItem(
    { id: key, connectionId: workflow.id, dueAt: now, orderingKey: null },
    { teamId: team_id, sourceId: request.source_id },
    since,
    payloadOf(request, { ...request, verified: false, originalIp: null })
  ),
  attempts: attempt - 1
})

const connectionQueueOf = ({ request, workflow }: StepSend): ConnectionQueueSettings => ({
  id: workflow.id,
  name: workflow.name,
  sourceName: request.source_name,
  state: "open",
  cancelBefore: 0,
  resumedAt: 0,
  retry: null
})

const settingsOf = (
  { key, loop, run_id, step_id, timeout_ms, workflow }: StepSend,
  signal: AbortSignal
): CallSettings => ({
  signal,
  timeoutMs: timeout_ms,
  captureBytes: maxAnswered,
  headers: [
    "idempotency-key",
    key,
    "x-gateway-workflow-id",
    workflow.id,
    "x-gateway-run-id",
    run_id,
    "x-gateway-step-id",
    step_id,
    loopHeader,
    loop
  ]
})

const sentBy = (outcome: Outcome, verdict: Verdict): StepSent => {
  const { body, bodyTruncated, headers, respondedAt, sentAt, status } = outcome
  if (verdict === "successful") {
    return {
      kind: "answered",
      status: status ?? 200,
      headers: valuesOf(headers),
      body,
      truncated: bodyTruncated,
      duration_ms: Math.max(0, respondedAt - sentAt)
    }
  }
  const { code, final, message } = verdict
  const wait = waitOf(verdict, outcome, respondedAt)
  const isOver = final || wait === "cancel"
  const answer = { headers: valuesOf(headers), body, truncated: bodyTruncated }
  return {
    kind: "failed",
    code,
    message,
    final: isOver,
    status,
    retry_after_ms: wait === "cancel" ? null : wait,
    ...(status === null ? {} : { answer })
  }
}

const valuesOf = (headers: Answer["headers"]) =>
  Object.fromEntries(Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))
