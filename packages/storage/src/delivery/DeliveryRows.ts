import { Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { pulledTypes } from "@tidegate/connectors/Connectors"
import { idBound, prefixes } from "@tidegate/model/Ids"
import type { StoredHead } from "@tidegate/model/Message"
import { placesOf } from "../bulk/BulkShards.ts"
import { HotSql } from "../Database.ts"
import * as Columns from "../journal/Columns.ts"
import { Rows } from "../journal/Rows.ts"
import { payloadGone } from "../Tables.ts"
import { firstOfEach, runQueue } from "./FirstOfEach.ts"

/** The rows of a destination's delivery queue: `deliveries`, with the events and requests that they refer to. */

export interface DueRow {
  readonly event_id: string
  readonly connection_id: string
}

/**
 * Due rows of a destination: the first `perQueue` of each connection queue in due order, plus as many as are `known` of it.
 * They cost one index probe for each connection queue and one index entry for each row, however long the backlog is.
 */
export const dueRows = Effect.fnUntraced(function* (
  shard: number,
  destinationId: string,
  until: number,
  perQueue: number,
  known: ReadonlyMap<string, number>
): Effect.fn.Return<ReadonlyArray<DueRow>, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  return yield* sql<DueRow>`
    with recursive lanes as (
      (select connection_id from deliveries where shard = ${shard} and destination_id = ${destinationId}
       order by connection_id limit 1)
      union all
      select (select d.connection_id from deliveries d where d.shard = ${shard} and d.destination_id = ${destinationId}
        and d.connection_id > lanes.connection_id order by d.connection_id limit 1)
      from lanes where lanes.connection_id is not null
    )
    select due.event_id, lanes.connection_id
    from lanes
    left join unnest(${Columns.text([...known.keys()])}, ${Columns.int4([...known.values()])}) as known (connection_id, events)
      using (connection_id)
    cross join lateral (
      select event_id from deliveries d
      where d.shard = ${shard} and d.destination_id = ${destinationId} and d.connection_id = lanes.connection_id
        and d.due_at <= ${new Date(until)}
      order by d.due_at, d.event_id limit ${perQueue} + coalesce(known.events, 0)
    ) due
    where lanes.connection_id is not null`
})

export interface PendingEventRow extends StoredHead {
  readonly id: string
  readonly team_id: string
  readonly connection_id: string
  readonly source_id: string
  readonly created_at: Date
  readonly due_at: Date
  readonly attempts: number
  readonly first_attempt_at: Date | null
  readonly last_attempt_at: Date | null
  readonly trigger: string
  readonly root_event_id: string | null
  readonly retry_operation_id: string | null
  readonly request_id: string
  /** The transformed payload; null: the request is sent unchanged. */
  readonly event_data_id: string | null
  /** Encrypted credentials, see `requests`. */
  readonly presented: string | null
  readonly body: Uint8Array | null
  readonly verified: boolean
  readonly original_ip: string | null
  /** Its ordering key and its position, present or past: see `OrderingKeys.ts`. */
  readonly ordering_key: string | null
  readonly place: number | null
}

/**
 * The data for the deliveries of these events, in the given order. Without events that are no longer pending, events whose
 * payload was removed by retention, and events beyond `bytes` of bodies (the first event is always included).
 */
export const pendingEvents = Effect.fnUntraced(function* (
  eventIds: ReadonlyArray<string>,
  bytes: number
): Effect.fn.Return<ReadonlyArray<PendingEventRow>, SqlError.SqlError, HotSql> {
  if (eventIds.length === 0) return []
  const sql = yield* HotSql
  const ids = Columns.text(eventIds)
  const [first, last] = Columns.bounds(eventIds)
  return yield* sql<PendingEventRow>`
    select id, team_id, connection_id, source_id, created_at, due_at, attempts, first_attempt_at, last_attempt_at, trigger,
      root_event_id, retry_operation_id, request_id, event_data_id, method, path, query, headers, presented, body, verified, original_ip,
      ordering_key, place
    from (
      select w.nth, e.id, e.team_id, e.connection_id, e.source_id, e.created_at, d.due_at, e.attempts, e.first_attempt_at,
        e.last_attempt_at, e.trigger, e.root_event_id, e.retry_operation_id, e.request_id, e.event_data_id,
        coalesce(t.method, r.method) as method, coalesce(t.path, r.path) as path, coalesce(t.query, r.query) as query,
        coalesce(t.headers, r.headers) as headers, r.presented,
        case when t.same_body is false then t.body else r.body end as body, r.verified, r.original_ip, d.ordering_key, d.place,
        sum(size.bytes) over (order by w.nth) - size.bytes as before
      from unnest(${ids}) with ordinality as w (id, nth)
        cross join lateral (
          select coalesce(ready_at, due_at) as due_at, ordering_key, place::float8 as place
          from deliveries where deliveries.event_id = w.id limit 1
        ) d
        cross join lateral (
          select * from events
          where events.id = w.id and events.id >= ${first} and events.id <= ${last} and events.state = 'PENDING' limit 1
        ) e
        cross join lateral (select * from requests where requests.id = e.request_id limit 1) r
        left join lateral (
          select method, path, query, headers, body, same_body, body_size from event_data where event_data.id = e.event_data_id limit 1
        ) t on e.event_data_id is not null
        cross join lateral (select case when e.event_data_id is null then r.body_size else t.body_size end as bytes) size
    ) found
    where before < ${bytes} and headers <> ${payloadGone}
    order by nth`
})

const started = new Rows<readonly [event: string, at: number]>("s", [
  ["id", "text", ([event]) => event],
  ["at", "timestamptz", ([, at]) => at]
])

/**
 * Stores that these deliveries are under way, and since when (Unix ms); rate-limited deliveries do the same before they start.
 * A row that another statement is writing is skipped: its attempt is being recorded. So it never waits, and no two statements
 * wait for each other.
 */
export const noteStarts = Effect.fnUntraced(function* (
  starts: ReadonlyArray<readonly [event: string, at: number]>
): Effect.fn.Return<void, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  const ids = Columns.text(starts.map(([id]) => id))
  yield* sql`
    update deliveries set started_at = s.at
    from ${started.unnest(sql, starts)}
    where deliveries.event_id = s.id
      and deliveries.event_id = any(array(select event_id from deliveries where event_id = any(${ids}) for update skip locked))`
})

/**
 * The starts of deliveries of the destination since `since` (Unix ms), oldest first, in slices of `slice` ms: recorded
 * attempts, and marked rate-limited deliveries without a recorded attempt. Both are found by their time, whatever the backlog.
 */
export const recentStarts = Effect.fnUntraced(function* (
  shard: number,
  destinationId: string,
  since: number,
  slice: number
): Effect.fn.Return<ReadonlyArray<readonly [at: number, count: number]>, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  const rows = yield* sql<{ at: number; count: number }>`
    select (ceil(extract(epoch from at) * 1000 / ${slice}::float8) * ${slice}::float8)::float8 as at, count(*)::int4 as count
    from (
      select delivered_at as at from attempts
      where destination_id = ${destinationId} and id >= ${idBound(prefixes.attempt, since)}
      union all
      select started_at from deliveries d
      where shard = ${shard} and destination_id = ${destinationId} and started_at > ${new Date(since)}
        and (select count(*) from attempts a where a.event_id = d.event_id and a.delivered_at = d.started_at) = 0
    ) starts
    where at > ${new Date(since)}
    group by 1 order by 1`
  return rows.map((row) => [row.at, row.count] as const)
})

/**
 * `lanes (shard, destination_id, connection_id, due_at)`: all connection queues of these shards that have rows, each with its
 * earliest time.
 */
export const connectionQueuesOf = (sql: Statement.Constructor, shards: ReadonlyArray<number>) =>
  sql`with recursive ${firstOfEach(sql, "lanes", shards, {
    table: "deliveries",
    of: ["destination_id", "connection_id"],
    order: "due_at",
    shows: "due_at"
  })}`

const routingJobs = { table: "pending_routes", of: ["connection_id"], order: "request_id", shows: "created_at" }
const arrivals = { table: "workflow_arrivals", of: ["workflow_id"], order: "due_at", shows: "due_at" }

/** Channels of one shard that one look finds. Those that this process works on are skipped, so the next look finds others. */
const channelsAtOnce = 16
/** The same of all shards. After an outage thousands are due, and they begin one after the other. */
const channelsOfLook = 128

/** The due work of some shards. */
export interface DueWork {
  /** Destinations with due rows of connections that are not paused, unless they wait for a consumer to fetch them. */
  readonly destinations: ReadonlyArray<string>
  readonly connections: ReadonlyArray<string>
  /** Bulk operations that are not finished. */
  readonly operations: ReadonlyArray<string>
  /** Workflows that are not paused and have due runs. */
  readonly workflows: ReadonlyArray<string>
  /** Workflows for whose waiting steps something has arrived. */
  readonly arrivals: ReadonlyArray<string>
  /** Sources whose channels are due: the longest due ones. */
  readonly channels: ReadonlyArray<string>
  /** When the next connection queue, run or channel is due (Unix ms); infinite: none waits. */
  readonly next: number
}

/**
 * The due work of these shards since `before` (Unix ms): due deliveries, ordering keys (only the destination knows when their
 * first event may start), routing jobs. It also includes workflows with a run that is due within `ahead` (Unix ms): they are
 * woken a little earlier, so that the run continues on time. Channels under way are left out. It is one statement, because it is sent often, and mostly finds
 * nothing.
 */
export const dueWork = Effect.fnUntraced(function* (
  shards: ReadonlyArray<number>,
  before: number,
  inHand: ReadonlyArray<string> = [],
  ahead: readonly [from: number, until: number] = [before, before],
  channelsUnderWay: ReadonlyArray<string> = []
): Effect.fn.Return<DueWork, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  const rows = yield* sql<{
    kind: "destination" | "connection" | "operation" | "workflow" | "arrival" | "channel" | "next"
    id: string
    at: Date | null
  }>`
    ${connectionQueuesOf(sql, shards)}, lined as (
      (select d.shard, d.destination_id, d.connection_id from deliveries d where d.place is not null
        order by d.shard, d.destination_id, d.connection_id limit 1)
      union all
      select next.shard, next.destination_id, next.connection_id
      from lined cross join lateral (
        select d.shard, d.destination_id, d.connection_id from deliveries d
        where d.place is not null
          and (d.shard, d.destination_id, d.connection_id) > (lined.shard, lined.destination_id, lined.connection_id)
        order by d.shard, d.destination_id, d.connection_id limit 1
      ) next
    ), ${firstOfEach(sql, "routes", shards, routingJobs)},
    ${firstOfEach(sql, "runs", shards, runQueue, sql`q.run_id <> all(${Columns.text(inHand)})`)},
    ${firstOfEach(sql, "arrivals", shards, arrivals)}
    select 'destination' as kind, waiting.destination_id as id, null::timestamptz as at
    from (
      select destination_id, connection_id from lanes where due_at <= ${new Date(before)}
      union
      select destination_id, connection_id from lined where shard = any(${Columns.int2(shards)})
    ) waiting
    where not coalesce((
        select c.disabled_at is null and c.deleted_at is null and (c.paused_at is not null or exists (
          select 1 from destinations d where d.id = waiting.destination_id and d.type = any(${Columns.text(pulledTypes)})
            and d.disabled_at is null and d.deleted_at is null))
        from connections c where c.id = waiting.connection_id
      ), false)
    group by waiting.destination_id
    union all
    select 'connection', connection_id, null from routes where created_at <= ${new Date(before)}
    union all
    select 'operation', id, null from bulk_operations
    where shard = any(${Columns.int2(placesOf(shards))}) and finished_at is null and (confirmed or planned_at is null)
    union all
    select 'workflow', workflow_id, null from runs left join lateral (
      select status, deleted_at from workflows where workflows.id = runs.workflow_id limit 1
    ) w on true
    where case when w.deleted_at is not null or w.status not in ('active', 'paused') then true
      else (due_at <= ${new Date(before)} or due_at > ${new Date(ahead[0])} and due_at <= ${new Date(ahead[1])})
        and w.status is distinct from 'paused' end
    union all
    select 'arrival', workflow_id, null from arrivals where due_at <= ${new Date(before)}
    union all
    (select 'channel', due.source_id, null from unnest(${Columns.int2(shards)}) as s (shard) cross join lateral (
      select c.source_id, c.due_at from channels c where c.shard = s.shard and c.due_at <= ${new Date(before)}
        and c.source_id <> all(${Columns.text(channelsUnderWay)})
      order by c.shard, c.due_at limit ${channelsAtOnce}
    ) due order by due.due_at limit ${channelsOfLook})
    union all
    (select 'channel', c.source_id, null from channels c where c.shard is null and c.due_at <= ${new Date(before)}
      and c.source_id <> all(${Columns.text(channelsUnderWay)})
      order by c.shard, c.due_at limit ${channelsAtOnce})
    union all
    select 'next', '', least(
      (select min(due_at) from lanes where due_at > ${new Date(before)}),
      (select min(created_at) from routes where created_at > ${new Date(before)}),
      (select min(due_at) from runs where due_at > ${new Date(before)}),
      (select min(due_at) from arrivals where due_at > ${new Date(before)}),
      (select min(due.due_at) from unnest(${Columns.int2(shards)}) as s (shard) cross join lateral (
        select c.due_at from channels c where c.shard = s.shard and c.due_at > ${new Date(before)}
        order by c.shard, c.due_at limit 1
      ) due)
    )`
  const ids = (of: "destination" | "connection" | "operation" | "workflow" | "arrival" | "channel") =>
    rows.flatMap(({ id, kind }) => (kind === of ? [id] : []))
  const next = rows.find(({ kind }) => kind === "next")?.at
  return {
    destinations: ids("destination"),
    connections: ids("connection"),
    operations: ids("operation"),
    workflows: ids("workflow"),
    arrivals: ids("arrival"),
    channels: ids("channel"),
    next: next?.getTime() ?? Infinity
  }
})
