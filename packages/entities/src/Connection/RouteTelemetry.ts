import { Clock, Effect } from "effect"
import { metrics } from "@tidegate/telemetry/Metrics"
import { Tracing } from "@tidegate/telemetry/Tracing"
import { LineLimits, WideLines } from "@tidegate/telemetry/WideLines"
import type { DecidedJob } from "@tidegate/storage/journal/RoutingRecord"
import type { RouteIds } from "./Transforming.ts"
import type { PendingRequest } from "./PendingRequest.ts"

/** The metrics and log lines of a committed routing job. */
export const routeTelemetry = Effect.gen(function* () {
  const clock = yield* Clock.Clock
  const tracing = yield* Tracing
  const run = Effect.runForkWith(yield* Effect.context())
  /** Failed runs; successful runs are in the executions list. */
  const lines = new WideLines("run", { ...LineLimits.defaultValue(), successes: 0 })

  /** `since`: when its commit began (Unix ms). */
  return (
    { execution, fate }: DecidedJob,
    request: PendingRequest,
    of: RouteIds,
    made: ReadonlySet<string>,
    since: number
  ): void => {
    if (fate.kind === "ignored" && made.has(fate.ignoredId)) metrics.ignoredEvents.at(fate.cause).add()
    if (fate.kind === "event" && made.has(fate.eventId)) {
      metrics.events.at("created").add()
      if (tracing.isOn) {
        const { headers } = request.received
        const endedAt = clock.currentTimeMillisUnsafe()
        const ids = { id: fate.eventId, connectionId: of.connectionId }
        tracing.routed({ requestId: request.id, headers, startedAt: since, endedAt }, [ids])
      }
    }
    if (execution === null || execution.errorCode === null) return
    lines.write(run, true, clock.currentTimeMillisUnsafe(), () => ({
      outcome: execution.errorCode,
      execution_id: execution.id,
      transformation_id: execution.transformationId,
      request_id: request.id,
      team_id: request.teamId,
      source_id: request.sourceId,
      connection_id: of.connectionId,
      destination_id: of.destinationId,
      // Stored in microseconds.
      duration_ms: execution.duration / 1_000
    }))
  }
})
