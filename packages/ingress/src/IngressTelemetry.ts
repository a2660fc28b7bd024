import { Cause, Clock, Effect } from "effect"
import { newErrorId } from "@tidegate/telemetry/Faults"
import { metrics } from "@tidegate/telemetry/Metrics"
import { Tracing } from "@tidegate/telemetry/Tracing"
import { LineLimits, WideLines } from "@tidegate/telemetry/WideLines"
import type { ProxyOutcome } from "./ProxyUpstream.ts"
import type { Decision } from "./Routing.ts"

/** The overload or the missing part because of which a request is refused without being stored. */
export type ShedReason =
  | "journal_full"
  | "bodies_full"
  | "sender_busy"
  | "database"
  | "source_unknown_yet"
  | "source_keeps_changing"
  | "certificate"
  | "handshake"
  | "callbacks_full"

interface ErrorId {
  readonly error_id: string
}

export type IngressTelemetry = Effect.Success<ReturnType<typeof IngressTelemetry.make>>

/** What ingress logs and counts for each request. It runs for every request: plain code, and only what is written is built. */
export const IngressTelemetry = {
  make: Effect.fnUntraced(function* (heldBytes: () => number) {
    const clock = yield* Clock.Clock
    const tracing = yield* Tracing
    const run = Effect.runForkWith(yield* Effect.context())
    const lines = new WideLines("request", yield* LineLimits)
    metrics.heldBodyBytes.readBy(heldBytes)
    const now = (): number => clock.currentTimeMillisUnsafe()

    const outcomeOf = ({ handshake, rejection }: Decision): string =>
      rejection !== null ? rejection.cause : handshake !== null ? "handshake" : "accepted"

    /** Logs a refused request that has no record. The line has no details of it, because a stranger could have invented them. */
    const turnedAway = (outcome: string, fields: Readonly<Record<string, string>>): ErrorId => {
      const error_id = newErrorId()
      lines.write(run, true, now(), () => ({ outcome, ...fields, error_id }))
      return { error_id }
    }

    return {
      /** The request is committed and will be answered. */
      stored: (decision: Decision): void => {
        const { record, rejection, request } = decision
        const at = now()
        const outcome = outcomeOf(decision)
        metrics.requests.at(outcome).add()
        metrics.requestBytes.add(record.bodySize)
        metrics.requestSeconds.observe((at - record.ingestedAt) / 1_000)
        if (record.events.length > 0) metrics.events.at("created").add(record.events.length)
        if (record.pending.length > 0) metrics.routingJobs.add(record.pending.length)
        for (const { cause } of record.ignored) metrics.ignoredEvents.at(cause).add()
        lines.write(run, rejection !== null, at, () => ({
          outcome,
          request_id: record.id,
          team_id: record.teamId,
          source_id: record.sourceId,
          verified: record.verified,
          method: record.method,
          body_bytes: record.bodySize,
          events: record.events.length,
          ignored: record.ignored.length,
          pending: record.pending.length,
          // The first event only; the others are in the request's trace.
          event_id: record.events[0]?.id ?? null,
          duration_ms: at - record.ingestedAt
        }))
        if (!tracing.isOn) return
        tracing.accepted({
          requestId: record.id,
          teamId: record.teamId,
          sourceId: record.sourceId,
          method: record.method,
          headers: request.headers,
          startedAt: record.ingestedAt,
          endedAt: at,
          rejection: rejection?.cause ?? null,
          events: record.events
        })
      },

      /** A missing or incomplete answer of an upstream is a warning for the operator. */
      proxied: (
        { id, sourceId, teamId }: Decision["record"],
        { errorCode, responseLatency, responseStatus }: ProxyOutcome
      ): void => {
        if (errorCode === null) return
        lines.write(run, true, now(), () => ({
          outcome: "upstream",
          error_code: errorCode,
          request_id: id,
          team_id: teamId,
          source_id: sourceId,
          response_status: responseStatus,
          response_ms: responseLatency
        }))
      },

      stale: (): void => metrics.staleRoutings.add(),

      unknownSource: (): void => metrics.requests.at("unknown_source").add(),

      /** The source counts it; a flood must not write log lines. */
      limited: (): void => metrics.requests.at("limited").add(),

      shed: (reason: ShedReason): ErrorId => {
        metrics.requests.at("shed").add()
        metrics.sheds.at(reason).add()
        return turnedAway("shed", { reason })
      },

      /** The journal has logged the reason with the request's id. */
      failed: ({ record }: Decision): ErrorId => {
        metrics.requests.at("failed").add()
        return { error_id: record.id }
      },

      fault: (cause: unknown): ErrorId => {
        metrics.requests.at("failed").add()
        const error_id = newErrorId()
        run(Effect.annotateLogs(Effect.logError("an ingress request failed", Cause.die(cause)), { error_id }))
        return { error_id }
      }
    }
  })
}
