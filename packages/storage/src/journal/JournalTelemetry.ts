import { Clock, Effect } from "effect"
import { type Commit, metrics } from "@tidegate/telemetry/Metrics"
import { LineLimits, WideLines } from "@tidegate/telemetry/WideLines"
import type { AttemptRecord } from "./AttemptStatement.ts"
import type { Recorded } from "./Recording.ts"

/** What the journal has done and holds. */
export interface JournalStats {
  readonly requests: number
  readonly attempts: number
  /** Statements sent to write them. */
  readonly statements: number
  /** Requests that are not answered yet. */
  readonly waitingRequests: number
  readonly waitingRequestBytes: number
  readonly waitingAttempts: number
}

/** Counts the commits of one kind. */
export const committed = (kind: Commit) => {
  const commits = metrics.commits.at(kind)
  const seconds = metrics.commitSeconds.at(kind)
  const records = metrics.commitRecords.at(kind)
  const written = kind === "mark" ? null : metrics.journalBytes.at(kind)
  return (items: number, bytes: number, took: number): void => {
    commits.add()
    seconds.observe(took)
    records.observe(items)
    written?.add(bytes)
  }
}

/** What waits for its commit. */
interface Waiting {
  readonly waitingRequests: number
  readonly waitingRequestBytes: number
  readonly waitingAttempts: number
}

export const watchWaiting = (stats: () => Waiting): void => {
  metrics.journalWaiting.at("accept").readBy(() => stats().waitingRequests)
  metrics.journalWaiting.at("attempt").readBy(() => stats().waitingAttempts)
  metrics.journalWaitingBytes.readBy(() => stats().waitingRequestBytes)
}

/** The metrics and the log line of an attempt, after its commit: before that its outcome is not certain. */
export const attemptTelemetry = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const run = Effect.runForkWith(yield* Effect.context())
  const lines = new WideLines("attempt", yield* LineLimits)

  return (record: AttemptRecord, state: Recorded): void => {
    const error = record.successful ? "none" : (record.errorCode ?? "UNKNOWN")
    if (state !== "superseded") {
      metrics.attempts.at(error).add()
      metrics.deliverySeconds.observe(record.deliveryLatency / 1_000)
      if (record.respondedAt !== null)
        metrics.responseSeconds.observe((record.respondedAt - record.deliveredAt) / 1_000)
      if (record.attemptNumber === 1)
        metrics.firstAttemptSeconds.observe(Math.max(0, record.deliveredAt - record.eventCreatedAt) / 1_000)
      if (state !== "PENDING") metrics.events.at(state).add()
    }
    lines.write(run, !record.successful, clock.currentTimeMillisUnsafe(), () => ({
      outcome: error,
      event_status: state,
      attempt_id: record.id,
      event_id: record.eventId,
      request_id: record.requestId,
      team_id: record.teamId,
      source_id: record.sourceId,
      connection_id: record.connectionId,
      destination_id: record.destinationId,
      attempt_number: record.attemptNumber,
      trigger: record.trigger,
      method: record.httpMethod,
      response_status: record.responseStatus,
      delivery_ms: record.deliveryLatency,
      response_ms: record.respondedAt === null ? null : record.respondedAt - record.deliveredAt,
      retry_at: record.retryAt === null ? null : new Date(record.retryAt).toISOString()
    }))
  }
})
