import { Cause, Clock, Effect } from "effect"
import { newErrorId } from "@tidegate/telemetry/Faults"
import { metrics } from "@tidegate/telemetry/Metrics"
import { Tracing } from "@tidegate/telemetry/Tracing"
import { LineLimits, WideLines } from "@tidegate/telemetry/WideLines"
import type { ProxyOutcome } from "./ProxyUpstream.ts"
import type { Decision } from "./Routing.ts"

/** What there was too much of, or too little: a request is turned away unstored. */
export type ShedReason =
  | "journal_full"
  | "bodies_full"
  | "sender_busy"
  | "database"
  | "source_unknown_yet"
  | "source_keeps_changing"
  | "certificate"
  | "handshake"

interface ErrorId {
  readonly error_id: string
}

/** What the ingress door tells of each request. It runs for all of them: plain, and nothing is made that is not written. */
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

    /** A line without a record: nothing is known of the request that a stranger could not have made up. */
    const turnedAway = (outcome: string, fields: Readonly<Record<string, string>>): ErrorId => {
      const error_id = newErrorId()
      lines.write(run, true, now(), () => ({ outcome, ...fields, error_id }))
      return { error_id }
    }

    return {
      /** It is committed, and will be answered. */
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
          // One of them, to go on from: the others are in the request's trace.
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

      /** An upstream that gave no answer, or not all of it, is the operator's to look after. */
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

      /** Its source counts it; a flood writes no lines. */
      limited: (): void => metrics.requests.at("limited").add(),

      shed: (reason: ShedReason): ErrorId => {
        metrics.requests.at("shed").add()
        metrics.sheds.at(reason).add()
        return turnedAway("shed", { reason })
      },

      /** The journal has said why in the log, by the request's id. */
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
