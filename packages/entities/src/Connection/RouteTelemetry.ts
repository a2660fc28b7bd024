import { Clock, Effect } from "effect"
import { metrics } from "@tidegate/telemetry/Metrics"
import { Tracing } from "@tidegate/telemetry/Tracing"
import { LineLimits, WideLines } from "@tidegate/telemetry/WideLines"
import type { Settled } from "@tidegate/storage/SettlePendingRoutes"
import type { PendingRequest } from "./Transforming.ts"

/** Runs that failed; those that went well are in the executions list. */
const lines = new WideLines("run", { ...LineLimits.defaultValue(), successes: 0 })

/** What is told of pending routes that have been settled. */
export const settledTelemetry = Effect.fnUntraced(function* (batch: {
  readonly connectionId: string
  readonly destinationId: string
  readonly requests: ReadonlyMap<string, PendingRequest>
  readonly settled: ReadonlyArray<Settled>
  readonly made: ReadonlySet<string>
  /** When their settling began (Unix ms). */
  readonly now: number
}) {
  const { connectionId, destinationId, made, now, requests, settled } = batch
  const tracing = yield* Tracing
  const run = Effect.runForkWith(yield* Effect.context())
  const endedAt = yield* Clock.currentTimeMillis
  for (const { execution, fate, requestId } of settled) {
    const { received, row } = requests.get(requestId)!
    if (fate.kind === "ignored" && made.has(fate.ignoredId)) metrics.ignoredEvents.at(fate.cause).add()
    if (fate.kind === "event" && made.has(fate.eventId)) {
      metrics.events.at("created").add()
      if (tracing.isOn) {
        const ids = { id: fate.eventId, connectionId }
        tracing.routed({ requestId, headers: received.headers, startedAt: now, endedAt }, [ids])
      }
    }
    if (execution === null || execution.errorCode === null) continue
    lines.write(run, true, endedAt, () => ({
      outcome: execution.errorCode,
      execution_id: execution.id,
      transformation_id: execution.transformationId,
      request_id: requestId,
      team_id: row.team_id,
      source_id: row.source_id,
      connection_id: connectionId,
      destination_id: destinationId,
      // In microseconds where it is stored.
      duration_ms: execution.duration / 1_000
    }))
  }
})
