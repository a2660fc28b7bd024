import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { idBound, idTime, type Prefix, prefixes } from "@tidegate/model/Ids"
import * as Columns from "../journal/Columns.ts"
import type { IdRange } from "./Window.ts"

/** Ids that meet a condition. `examinedTo`: null when these are all; otherwise ids below it were not examined. */
export interface Candidates {
  readonly ids: ReadonlyArray<string>
  readonly examinedTo: string | null
}

/** At most this many candidates are gathered: for more, reading along the list itself is cheaper. */
export const gatherAtMost = 2_000

/**
 * The events of these requests after `after`, oldest first. An event that routing made has its request's time in its id, so a
 * range of the primary key finds it. Retries have later times of their own; an index that has only retries finds them.
 */
export const eventsOfRequests = Effect.fnUntraced(function* (
  team: string,
  requestIds: ReadonlyArray<string>,
  limit: number = gatherAtMost,
  after = ""
): Effect.fn.Return<ReadonlyArray<{ id: string; request_id: string }>, SqlError.SqlError, SqlClient.SqlClient> {
  const generated = requestIds.filter((id) => idTime(id) !== null)
  if (generated.length === 0) return []
  const sql = yield* SqlClient.SqlClient
  const start = prefixes.request.length
  // Each branch is ordered and limited on its own, which keeps it on its index whatever the planner expects. The retries are
  // ordered in a way that no index has, otherwise the planner might read the primary key for them.
  return yield* sql<{ id: string; request_id: string }>`
    select e.id, e.request_id
    from (select id, 'evt_' || substr(id, ${start + 1}, 10) as time from unnest(${Columns.text(generated)}) as w (id)) wanted
    cross join lateral (
      (select id, request_id, team_id from events
        where id >= wanted.time collate "C" and id < (wanted.time || '~') collate "C" and request_id = wanted.id
          and id > ${after}
        order by id limit ${gatherAtMost})
      union
      (select id, request_id, team_id from events
        where request_id = wanted.id and retry_parent_event_id is not null and id > ${after}
          and id >= wanted.time collate "C"
        order by id || '' collate "C" limit ${gatherAtMost})
    ) e
    where e.team_id = ${team} order by 1 limit ${limit}`.unprepared
})

/**
 * The newest events in the range that a bulk operation retried (targets), or that it retried or made (related). Indexes over the
 * events of operations have both.
 */
export const eventsOfOperation = Effect.fnUntraced(function* (
  operation: string,
  scope: "targets" | "related",
  { lower, upper }: IdRange
): Effect.fn.Return<Candidates, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const newest = (column: "id" | "retry_parent_event_id") => sql`
    (select distinct ${sql.literal(column)} as id from events
      where retry_operation_id = ${operation} and ${sql.literal(column)} >= ${lower} and ${sql.literal(column)} < ${upper}
      order by 1 desc limit ${gatherAtMost})`
  const rows = yield* sql<{ id: string }>`
    select id from (${newest("retry_parent_event_id")}${scope === "targets" ? sql.literal("") : sql` union ${newest("id")}`}) found
    order by id desc limit ${gatherAtMost}`.unprepared
  const ids = rows.map(({ id }) => id)
  return { ids, examinedTo: ids.length < gatherAtMost ? null : ids.at(-1)! }
})

/** The range of ids derived from a request's id: its ignored events and executions have its time. */
export const timeRange = (prefix: Prefix, requestId: string): IdRange | null => {
  const at = idTime(requestId)
  return at === null ? null : { lower: idBound(prefix, at), upper: idBound(prefix, at + 1) }
}

/**
 * The newest requests in the range that were routed to one of these connections: they became an event or an ignored event there,
 * or still have a routing job.
 */
export const requestsOfConnections = Effect.fnUntraced(function* (
  team: string,
  connectionIds: ReadonlyArray<string>,
  range: IdRange,
  limit: number
): Effect.fn.Return<Candidates, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const each = Math.max(limit + 1, Math.floor((2 * gatherAtMost) / connectionIds.length))
  const from = range.lower.slice(prefixes.request.length)
  // The last millisecond of the range is included: ids that share it may sort before or after.
  const to = idBound(prefixes.event, (idTime(range.upper) ?? 0) + 1).slice(prefixes.event.length)
  const rows = yield* sql<{ request_id: string; id: string; position: number }>`
    select found.* from unnest(${Columns.text(connectionIds)}) as c (id)
    cross join lateral (
      (select request_id, id, row_number() over (order by id desc)::int4 as position from (
        select request_id, id from events
        where connection_id = c.id and team_id = ${team} and retry_parent_event_id is null
          and id >= ${prefixes.event + from} and id < ${prefixes.event + to}
        order by id desc limit ${each}) routed)
      union all
      (select request_id, id, row_number() over (order by id desc)::int4 from (
        select request_id, id from ignored_events
        where connection_id = c.id and team_id = ${team}
          and id >= ${prefixes.ignoredEvent + from} and id < ${prefixes.ignoredEvent + to}
        order by id desc limit ${each}) ignored)
      union all
      (select request_id, request_id, row_number() over (order by request_id desc)::int4 from (
        select request_id from pending_routes
        where connection_id = c.id and team_id = ${team}
          and request_id >= ${prefixes.request + from} and request_id < ${prefixes.request + to}
        order by request_id desc limit ${each}) pending)
    ) found`.unprepared
  // A branch that reached its limit is complete down to the millisecond after its last row's.
  const ends = rows
    .filter(({ position }) => position === each)
    .map(({ id }) => idBound(prefixes.request, (idTime(id) ?? 0) + 1))
  return {
    ids: [...new Set(rows.map(({ request_id }) => request_id))],
    examinedTo: ends.length === 0 ? null : ends.reduce((a, b) => (a > b ? a : b))
  }
})

/** Escapes the pattern characters of `like`. */
export const likePrefix = (text: string): string => `${text.replaceAll(/[\\%_]/g, "\\$&")}%`

/** Requests in the range whose external id starts with this; null when there are too many to gather. */
export const requestsByExternalId = Effect.fnUntraced(function* (
  team: string,
  text: string,
  range: IdRange
): Effect.fn.Return<ReadonlyArray<string> | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ id: string }>`
    select id from requests
    where team_id = ${team} and external_id is not null and external_id like ${likePrefix(text)}
      and id >= ${range.lower} and id < ${range.upper}
    order by external_id using ~<~ limit ${gatherAtMost + 1}`.unprepared
  return rows.length > gatherAtMost ? null : rows.map(({ id }) => id)
})

/** The team's waiting events in the range; null when there are too many to gather. */
export const pendingEvents = Effect.fnUntraced(function* (
  team: string,
  range: IdRange
): Effect.fn.Return<ReadonlyArray<string> | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ event_id: string }>`
    select d.event_id from connections c
    cross join lateral (
      select event_id from deliveries where connection_id = c.id and connection_id <> '' order by connection_id limit ${gatherAtMost + 1}
    ) d
    where c.team_id = ${team} limit ${gatherAtMost + 1}`.unprepared
  if (rows.length > gatherAtMost) return null
  return rows.map(({ event_id }) => event_id).filter((id) => id >= range.lower && id < range.upper)
})
