import { Clock, Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import type { EventStatus } from "@tidegate/model/Event"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { newId, prefixes } from "@tidegate/model/Ids"
import { eventStatusSql } from "../delivery/EventStatus.ts"
import * as Columns from "../journal/Columns.ts"
import { Rows } from "../journal/Rows.ts"
import { minuteOfId, writeCounts } from "../journal/CountStatement.ts"
import { writeFeed } from "../journal/FeedStatement.ts"
import { nextPosition, waitsForKey } from "../delivery/OrderingKeys.ts"
import { withPartitions } from "../retention/Partitions.ts"
import { query } from "../Transaction.ts"

/** The event that a retry has made. It is in the queue of `destination_id`, the connection's destination at that time. */
export interface RetriedEvent {
  readonly id: string
  readonly parent_event_id: string
  readonly connection_id: string
  readonly destination_id: string
  readonly shard: number
  readonly created_at: Date
}

/** The destination that a retry of the event goes to: its actor has to make the retry. */
export const retryDestination = Effect.fnUntraced(function* (
  team_id: string,
  event_id: string
): Effect.fn.Return<string, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* query(
    sql<{ destination_id: string }>`
      select c.destination_id from events e join connections c on c.id = e.connection_id
      where e.id = ${event_id} and e.team_id = ${team_id}`
  )
  return row?.destination_id ?? (yield* notFound("event", event_id))
})

/** Whether the payload of the event `e` is still stored. */
const payloadStored = (sql: SqlClient.SqlClient): Statement.Fragment =>
  sql.literal(`case when e.event_data_id is null
    then exists (select from requests r where r.id = e.request_id and r.body is not null)
    else exists (
      select from event_data m where m.id = e.event_data_id and (m.body is not null or (m.same_body
        and exists (select from requests r where r.id = m.request_id and r.body is not null))))
    end`)

interface Parent {
  readonly id: string
  readonly status: EventStatus
  readonly connection_id: string
  readonly destination_id: string
  readonly source_off: boolean
  readonly connection_off: boolean
  readonly paused: boolean
  readonly destination_off: boolean
  readonly payload_stored: boolean
  readonly in_order: boolean
  readonly resolved: boolean
  /** The retry that has succeeded, if the previous version has not stored that. */
  readonly succeeded: string | null
}

const payloadUnavailable = fail("PAYLOAD_UNAVAILABLE", "the payload of the event is no longer stored")

const refusal = (parent: Parent): GatewayError | null => {
  if (parent.source_off) return fail("SOURCE_DISABLED", "the event's source is disabled or deleted")
  if (parent.connection_off) return fail("CONNECTION_DISABLED", "the event's connection is disabled or deleted")
  if (parent.paused) return fail("CONNECTION_PAUSED", "the event's connection is paused")
  if (parent.destination_off) return fail("DESTINATION_DISABLED", "the connection's destination is disabled")
  if (parent.status === "QUEUED" || parent.status === "SCHEDULED" || parent.status === "HOLD") {
    return fail("EVENT_NOT_RETRYABLE", `the event is ${parent.status}: it is still to be delivered`)
  }
  return parent.payload_stored ? null : payloadUnavailable
}

const createdCounts = `(
  select connection_id as key_id, source_id, destination_id, 'created' as measure, ${minuteOfId("id")} as minute, team_id, count(*) as n
  from created group by 1, 2, 3, 5, 6
) as c`

/** The current facts about events that a retry needs. */
const parentsOf = Effect.fnUntraced(function* (
  team_id: string,
  ids: ReadonlyArray<string>,
  now: Date
): Effect.fn.Return<ReadonlyArray<Parent>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [first, last] = Columns.bounds(ids)
  return yield* sql<Parent>`
    select e.id, ${eventStatusSql(sql, now)} as status, e.connection_id, c.destination_id,
      s.disabled_at is not null or s.deleted_at is not null as source_off,
      c.disabled_at is not null or c.deleted_at is not null as connection_off,
      c.paused_at is not null as paused,
      t.disabled_at is not null or t.deleted_at is not null as destination_off,
      ${payloadStored(sql)} as payload_stored, c.ordering is not null as in_order, e.resolved_at is not null as resolved,
      case when e.failed and e.retried_at is not null and e.resolved_at is null then (
        select min(r.id) from events r
        where r.request_id = e.request_id and r.retry_parent_event_id is not null and r.id > e.id
          and r.root_event_id = coalesce(e.root_event_id, e.id) and r.state = 'SUCCESSFUL'
      ) end as succeeded
    from events e
      join sources s on s.id = e.source_id
      join connections c on c.id = e.connection_id
      join destinations d on d.id = e.destination_id
      join destinations t on t.id = c.destination_id
    where e.id = any(${Columns.text(ids)}) and e.id >= ${first} and e.id <= ${last} and e.team_id = ${team_id}`
})

/** A failed event that a retry has resolved although this is not recorded yet, and that retry. */
const resolvedBy = new Rows<Parent>("l", [
  ["id", "text", ({ id }) => id],
  ["by", "text", ({ succeeded }) => succeeded]
])

/** Notes which retry has resolved these, where it did so before anybody noted it. */
const noteResolved = Effect.fnUntraced(function* (parents: ReadonlyArray<Parent>, now: Date) {
  const late = parents.filter(({ succeeded }) => succeeded !== null)
  if (late.length === 0) return
  const sql = yield* SqlClient.SqlClient
  const [first, last] = Columns.bounds(late.map(({ id }) => id))
  yield* sql`
    update events set resolved_at = coalesce(r.successful_at, ${now}), resolved_by_event_id = r.id
    from ${resolvedBy.unnest(sql, late)}
      join events r on r.id = l.by
    where events.id = l.id and events.id >= ${first} and events.id <= ${last} and events.resolved_at is null`
})

/** An event to be made, and the event that it retries. */
interface Retry {
  readonly id: string
  readonly parent: Parent
  /** Unix ms. */
  readonly due: number
}

/** A retry, and the shard of its destination's actor. */
const asked = new Rows<{ readonly retry: Retry; readonly shard: number }>("a", [
  ["id", "text", ({ retry }) => retry.id],
  ["parent_id", "text", ({ retry }) => retry.parent.id],
  ["destination_id", "text", ({ retry }) => retry.parent.destination_id],
  ["shard", "int2", ({ shard }) => shard],
  ["in_order", "bool", ({ retry }) => retry.parent.in_order],
  ["due_at", "timestamptz", ({ retry }) => retry.due]
])

/**
 * The statement that makes the events, with everything that belongs to them. It checks the payload itself, because retention
 * removes no payload that a committed event waits to send. Returns the events that were made. An event with an ordering key goes
 * to the end of its key's order, in the order given.
 */
const make = (
  sql: SqlClient.SqlClient,
  retries: ReadonlyArray<Retry>,
  now: Date,
  shardOf: (destination_id: string) => number,
  operation: string | null
) => {
  const [first, last] = Columns.bounds(retries.map(({ parent }) => parent.id))
  const rows = retries.map((retry) => ({ retry, shard: shardOf(retry.parent.destination_id) }))
  return sql<{ id: string }>`
    with asked as (
      select * from ${asked.unnest(sql, rows, "nth")}
    ), created as (
      insert into events (id, team_id, request_id, connection_id, source_id, destination_id, event_data_id, state, trigger,
        due_at, ordering_key, root_event_id, retry_kind, retry_parent_event_id, retry_operation_id, ingested_at, created_at, updated_at)
      select a.id, e.team_id, e.request_id, e.connection_id, e.source_id, a.destination_id, e.event_data_id, 'PENDING',
        ${operation === null ? "MANUAL" : "BULK_RETRY"}, a.due_at, case when a.in_order then e.ordering_key end,
        coalesce(e.root_event_id, e.id), ${operation === null ? "single" : "bulk"}, e.id, ${operation}, e.ingested_at, ${now}, ${now}
      from asked a join events e on e.id = a.parent_id
      where e.id >= ${first} and e.id <= ${last} and ${payloadStored(sql)}
      on conflict (id) do nothing
      returning id, team_id, connection_id, source_id, destination_id, ordering_key, retry_parent_event_id
    ), queued as (
      insert into deliveries (event_id, team_id, shard, destination_id, connection_id, due_at, ordering_key, place, ready_at)
      select c.id, c.team_id, c.shard, c.destination_id, c.connection_id,
        case when c.ordering_key is null then c.due_at else ${sql.literal(waitsForKey)} end, c.ordering_key,
        case when c.ordering_key is not null then ${sql.literal(nextPosition)} end,
        case when c.ordering_key is not null then ${now}::timestamptz end
      from (select c.*, a.shard, a.due_at from created c join asked a on a.id = c.id order by a.nth) c
    ), fed as (
      ${sql.literal(writeFeed("created"))}
    ), counted as (
      ${sql.literal(writeCounts(createdCounts))}
    )
    update events set retried_at = ${now}, updated_at = ${now}
    from created where events.id = created.retry_parent_event_id and events.id >= ${first} and events.id <= ${last}
    returning created.id`
}

/** The event that an earlier try of the same retry has made. */
const stored = Effect.fnUntraced(function* (team_id: string, parent_event_id: string, id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* query(
    sql<Omit<RetriedEvent, "shard">>`
      select id, retry_parent_event_id as parent_event_id, connection_id, destination_id, created_at from events
      where id = ${id} and team_id = ${team_id} and retry_parent_event_id = ${parent_event_id}`
  )
  return row
})

/**
 * Retries one event by hand: a new event with the same payload, due now, on the connection's current destination. The old event
 * keeps its status and stores the time. With an ordering key, the new event goes to the end of the key's order. It is one
 * statement, so all of it happens or nothing.
 *
 * The caller chooses the new event's id: a retry that is repeated, because its answer was lost, finds its event and does nothing
 * more.
 *
 * Nothing is locked: a disable or pause at the same moment also applies to the new event, as if the retry had come first.
 */
export const retryEvent = Effect.fnUntraced(function* (options: {
  readonly team_id: string
  readonly event_id: string
  /** The id of the new event. */
  readonly id: string
  /** The shard of the destination's actor. */
  readonly shardOf: (destination_id: string) => number
}): Effect.fn.Return<RetriedEvent, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const { event_id, id, shardOf, team_id } = options
  const now = new Date(yield* Clock.currentTimeMillis)
  const [parent] = yield* query(parentsOf(team_id, [event_id], now))
  if (parent === undefined) return yield* notFound("event", event_id)
  const made = yield* stored(team_id, event_id, id)
  if (made !== undefined) return { ...made, shard: shardOf(made.destination_id) }
  const refused = refusal(parent)
  if (refused !== null) return yield* refused
  const rows = yield* query(withPartitions(sql)(make(sql, [{ id, parent, due: now.getTime() }], now, shardOf, null)))
  if (rows.length === 0 && (yield* stored(team_id, event_id, id)) === undefined) return yield* payloadUnavailable
  const { connection_id, destination_id } = parent
  return {
    id,
    parent_event_id: event_id,
    connection_id,
    destination_id,
    shard: shardOf(destination_id),
    created_at: now
  }
})

/**
 * Retries events for a bulk operation, in the order given, and returns the new events; the others cannot be retried now. They
 * come due one after the other over `overMs`: so a live event waits behind one of them and not behind several, which is worth
 * more than a shared commit. Events with an ordering key wait for their turn. To be called in the transaction that removes them
 * from the operation's targets.
 */
export const retryEvents = Effect.fnUntraced(function* (options: {
  readonly team_id: string
  readonly event_ids: ReadonlyArray<string>
  readonly operation_id: string
  readonly overMs: number
  /** Whether to leave out events that a later retry has resolved, perhaps after they were found. */
  readonly unresolved: boolean
  readonly shardOf: (destination_id: string) => number
}): Effect.fn.Return<
  ReadonlyArray<{ readonly id: string; readonly destination_id: string }>,
  SqlError.SqlError,
  SqlClient.SqlClient
> {
  const sql = yield* SqlClient.SqlClient
  const { event_ids, operation_id, overMs, shardOf, team_id, unresolved } = options
  const nowMs = yield* Clock.currentTimeMillis
  const now = new Date(nowMs)
  const found = yield* parentsOf(team_id, event_ids, now)
  yield* noteResolved(found, now)
  const isLeftOut = ({ resolved, succeeded }: Parent) => unresolved && (resolved || succeeded !== null)
  const parents = new Map(found.map((parent) => [parent.id, parent]))
  const dueAt = (nth: number): number => nowMs + Math.floor((overMs * nth) / event_ids.length)
  const retries = event_ids.flatMap((event_id, nth) => {
    const parent = parents.get(event_id)
    return parent === undefined || isLeftOut(parent) || refusal(parent) !== null
      ? []
      : [{ id: newId(prefixes.event, nowMs), parent, due: parent.in_order ? nowMs : dueAt(nth) }]
  })
  if (retries.length === 0) return []
  const made = new Set((yield* make(sql, retries, now, shardOf, operation_id)).map(({ id }) => id))
  return retries.flatMap(({ id, parent }) => (made.has(id) ? [{ id, destination_id: parent.destination_id }] : []))
})
