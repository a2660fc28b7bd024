import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import type { Attempt } from "@tidegate/model/Attempt"
import type { Event } from "@tidegate/model/Event"
import type { ExecutionDetail } from "@tidegate/model/Execution"
import type { GatewayError } from "@tidegate/model/GatewayError"
import type { IgnoredEvent } from "@tidegate/model/IgnoredEvent"
import type { Request } from "@tidegate/model/Request"
import { type TimelineItem, timelineKinds, type Trace } from "@tidegate/model/Trace"
import * as AttemptReads from "./AttemptReads.ts"
import * as EventReads from "./EventReads.ts"
import * as ExecutionReads from "./ExecutionReads.ts"
import * as IgnoredEventReads from "./IgnoredEventReads.ts"
import * as RequestReads from "./RequestReads.ts"

/** Of each kind, a trace shows at most this many; of attempts and transformations, as many as an answer has room for. */
const showAtMost = 300

/** A request with everything that became of it, and a timeline of it all. */
export const get = Effect.fnUntraced(function* (
  team: string,
  id: string
): Effect.fn.Return<Trace, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const request = yield* RequestReads.detail(team, id)
  const anything = { ids: [], statuses: [], sources: [], connections: [], destinations: [] }
  const page = { key: "trace", cursor: undefined, limit: showAtMost }
  const { models: events } = yield* EventReads.ofRequest(team, id, anything, page)
  const { models: ignored_events } = yield* IgnoredEventReads.ofRequest(team, id, anything, page)
  const { attempts, isCut: areAttemptsCut } = yield* AttemptReads.byEvents(
    team,
    events.map((event) => event.id),
    showAtMost
  )
  const { executions: transformations, isCut: areExecutionsCut } = yield* ExecutionReads.ofRequest(team, id, showAtMost)
  const proxy_exchange = request.proxy_exchange ?? null
  return {
    request,
    proxy_exchange,
    events,
    ignored_events,
    attempts,
    attempts_by_event_id: Object.fromEntries(
      events.map((event) => [event.id, attempts.filter((attempt) => attempt.event_id === event.id)])
    ),
    transformations,
    transformations_by_event_id: Object.fromEntries(
      events.map((event) => [event.id, transformations.filter((execution) => execution.event_id === event.id)])
    ),
    timeline: timeline(request, ignored_events, transformations, events, attempts),
    truncated:
      areAttemptsCut || areExecutionsCut || [events, ignored_events].some((found) => found.length === showAtMost),
    counts: {
      events: events.length,
      ignored_events: ignored_events.length,
      attempts: attempts.length,
      transformations: transformations.length,
      proxy_exchanges: proxy_exchange === null ? 0 : 1
    }
  }
})

const rank = new Map<string, number>(timelineKinds.map((kind, index) => [kind, index]))

const timeline = (
  request: Request,
  ignored: ReadonlyArray<IgnoredEvent>,
  executions: ReadonlyArray<ExecutionDetail>,
  events: ReadonlyArray<Event>,
  attempts: ReadonlyArray<Attempt>
): ReadonlyArray<TimelineItem> => {
  const request_id = request.id
  const exchange = request.proxy_exchange ?? null
  const items: Array<Omit<TimelineItem, "id">> = [
    {
      kind: "request",
      label: request.status === "accepted" ? "Request accepted" : "Request rejected",
      at: request.created_at,
      status: request.status,
      request_id
    },
    ...(exchange === null
      ? []
      : [
          {
            kind: "proxy_exchange" as const,
            label: exchange.response_status === null ? "No answer from upstream" : "Answered by upstream",
            at: exchange.started_at,
            status:
              exchange.response_status === null ? (exchange.error_code ?? "FAILED") : `${exchange.response_status}`,
            request_id,
            proxy_exchange_id: exchange.id
          }
        ]),
    // By when they came to be: their `created_at` is the time of the request.
    ...ignored.map(({ cause, connection_id, id, updated_at }) => ({
      kind: "ignored_event" as const,
      label: "Event ignored",
      at: updated_at,
      status: cause,
      request_id,
      ignored_event_id: id,
      connection_id
    })),
    ...executions.map(({ connection_id, error_code, event_id, id, updated_at }) => ({
      kind: "transformation" as const,
      label: error_code === null ? "Transformed" : "Transformation failed",
      at: updated_at,
      status: error_code ?? "SUCCESSFUL",
      request_id,
      transformation_execution_id: id,
      connection_id,
      ...(event_id === null ? {} : { event_id })
    })),
    ...events.map(({ connection_id, destination_id, id, is_retry, status, stored_at }) => ({
      kind: "event" as const,
      label: is_retry ? "Event retried" : "Event created",
      at: stored_at,
      status,
      request_id,
      event_id: id,
      connection_id,
      destination_id
    })),
    ...attempts.map((attempt) => ({
      kind: "attempt" as const,
      label: `Attempt ${attempt.attempt_number} ${attempt.status === "SUCCESSFUL" ? "successful" : "failed"}`,
      at: attempt.delivered_at,
      status: attempt.status,
      request_id,
      event_id: attempt.event_id,
      attempt_id: attempt.id,
      connection_id: attempt.connection_id,
      destination_id: attempt.destination_id
    }))
  ]
  return items
    .sort((a, b) => (a.at === b.at ? (rank.get(a.kind) ?? 0) - (rank.get(b.kind) ?? 0) : a.at < b.at ? -1 : 1))
    .map((item, index) => Object.assign({ id: `tl_${index + 1}` }, item))
}
