import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import type { Attempt } from "@tidegate/model/Attempt"
import type { Event } from "@tidegate/model/Event"
import type { GatewayError } from "@tidegate/model/GatewayError"
import type { IgnoredEvent } from "@tidegate/model/IgnoredEvent"
import type { Request } from "@tidegate/model/Request"
import { type TimelineItem, timelineKinds, type Trace } from "@tidegate/model/Trace"
import * as AttemptReads from "./AttemptReads.ts"
import * as EventReads from "./EventReads.ts"
import * as IgnoredEventReads from "./IgnoredEventReads.ts"
import * as RequestReads from "./RequestReads.ts"

/** Of each kind, a trace shows at most this many. */
const showAtMost = 300

/** A request with everything that became of it, and a timeline of it all. */
export const get = Effect.fnUntraced(function* (
  team: string,
  id: string
): Effect.fn.Return<Trace, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const request = yield* RequestReads.detail(team, id)
  const anything = { ids: [], statuses: [], sources: [], connections: [], destinations: [] }
  const events = yield* EventReads.ofRequest(team, id, anything, showAtMost)
  const ignored_events = yield* IgnoredEventReads.ofRequest(team, id, anything, showAtMost)
  const attempts = yield* AttemptReads.byEvents(
    team,
    events.map((event) => event.id),
    showAtMost
  )
  return {
    request,
    proxy_exchange: null,
    events,
    ignored_events,
    attempts,
    attempts_by_event_id: Object.fromEntries(
      events.map((event) => [event.id, attempts.filter((attempt) => attempt.event_id === event.id)])
    ),
    transformations: [],
    transformations_by_event_id: {},
    timeline: timeline(request, events, ignored_events, attempts),
    truncated: [events, ignored_events, attempts].some((found) => found.length === showAtMost),
    counts: {
      events: events.length,
      ignored_events: ignored_events.length,
      attempts: attempts.length,
      transformations: 0,
      proxy_exchanges: 0
    }
  }
})

const rank = new Map<string, number>(timelineKinds.map((kind, index) => [kind, index]))

const timeline = (
  request: Request,
  events: ReadonlyArray<Event>,
  ignored: ReadonlyArray<IgnoredEvent>,
  attempts: ReadonlyArray<Attempt>
): ReadonlyArray<TimelineItem> => {
  const request_id = request.id
  const items: Array<Omit<TimelineItem, "id">> = [
    {
      kind: "request",
      label: request.status === "accepted" ? "Request accepted" : "Request rejected",
      at: request.created_at,
      status: request.status,
      request_id
    },
    ...ignored.map(({ cause, connection_id, created_at, id }) => ({
      kind: "ignored_event" as const,
      label: "Event ignored",
      at: created_at,
      status: cause,
      request_id,
      ignored_event_id: id,
      connection_id
    })),
    ...events.map(({ connection_id, created_at, destination_id, id, is_retry, status }) => ({
      kind: "event" as const,
      label: is_retry ? "Event retried" : "Event created",
      at: created_at,
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
