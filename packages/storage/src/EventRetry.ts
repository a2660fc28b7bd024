import { Clock, Effect } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import type { EventStatus } from "@tidegate/model/Event"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { eventStatusSql } from "./EventStatus.ts"
import { minuteOfId, writeCounts } from "./journal/CountStatement.ts"
import { inLine, nextPlace } from "./Lines.ts"
import { withPartitions } from "./Partitions.ts"
import { query } from "./Transaction.ts"

/** The event that a retry has made; it went to the queue of `destination_id`, the connection's destination at that time. */
export interface RetriedEvent {
  readonly id: string
  readonly parent_event_id: string
  readonly connection_id: string
  readonly destination_id: string
  readonly shard: number
  readonly created_at: Date
}

/** The destination that a retry of the event goes to: the one whose entity has to be asked for it. */
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

/** Whether there still is what the event `e` sends. */
const payloadStored = (sql: SqlClient.SqlClient): Statement.Fragment =>
  sql.literal(`case when e.event_data_id is null
    then exists (select from requests r where r.id = e.request_id and r.body is not null)
    else exists (
      select from event_data m where m.id = e.event_data_id and (m.body is not null or (m.same_body
        and exists (select from requests r where r.id = m.request_id and r.body is not null))))
    end`)

interface Parent {
  readonly status: EventStatus
  readonly connection_id: string
  readonly destination_id: string
  readonly source_off: boolean
  readonly connection_off: boolean
  readonly paused: boolean
  readonly destination_off: boolean
  readonly payload_stored: boolean
  readonly in_order: boolean
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
  select connection_id as key_id, source_id, destination_id, 'created' as measure, ${minuteOfId("id")} as minute, team_id, 1 as n
  from created
) as c`

/** What an earlier try of the same retry has made. */
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
 * Retries one event by hand: a new event with the same payload, due now, on the connection's current destination; the
 * old one keeps its status and notes the time. Where the connection keeps an order, it goes to the end of its parent's line. Its parts are one statement, so all of them happen or none.
 *
 * Its id is the caller's: a retry that is repeated, because its answer was lost, finds its event and does nothing more.
 *
 * The statement asks for the payload itself: retention takes none away that a committed event waits to send.
 *
 * Nothing is locked: a disable or pause at the same moment also governs the new event, as if the retry had come first.
 */
export const retryEvent = Effect.fnUntraced(function* (options: {
  readonly team_id: string
  readonly event_id: string
  /** The new event's. */
  readonly id: string
  /** The shard that the destination's entity lives on. */
  readonly shardOf: (destination_id: string) => number
}): Effect.fn.Return<RetriedEvent, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const { event_id, id, shardOf, team_id } = options
  const nowMs = yield* Clock.currentTimeMillis
  const now = new Date(nowMs)
  const [parent] = yield* query(
    sql<Parent>`
      select ${eventStatusSql(sql, now)} as status, e.connection_id, c.destination_id,
        s.disabled_at is not null or s.deleted_at is not null as source_off,
        c.disabled_at is not null or c.deleted_at is not null as connection_off,
        c.paused_at is not null as paused,
        t.disabled_at is not null or t.deleted_at is not null as destination_off,
        ${payloadStored(sql)} as payload_stored, c.ordering is not null as in_order
      from events e
        join sources s on s.id = e.source_id
        join connections c on c.id = e.connection_id
        join destinations d on d.id = e.destination_id
        join destinations t on t.id = c.destination_id
      where e.id = ${event_id} and e.team_id = ${team_id}`
  )
  if (parent === undefined) return yield* notFound("event", event_id)
  const made = yield* stored(team_id, event_id, id)
  if (made !== undefined) return { ...made, shard: shardOf(made.destination_id) }
  const refused = refusal(parent)
  if (refused !== null) return yield* refused

  const { connection_id, destination_id, in_order: inOrder } = parent
  const shard = shardOf(destination_id)
  const insert = sql`
    with created as (
      insert into events (id, team_id, request_id, connection_id, source_id, destination_id, event_data_id, state, trigger,
        due_at, ordering_key, root_event_id, retry_kind, retry_parent_event_id, ingested_at, created_at, updated_at)
      select ${id}, team_id, request_id, connection_id, source_id, ${destination_id}, event_data_id, 'PENDING', 'MANUAL',
        ${now}, ${inOrder ? sql`ordering_key` : sql`null`}, coalesce(root_event_id, id), 'single', id, ingested_at, ${now}, ${now}
      from events e where id = ${event_id} and ${payloadStored(sql)}
      on conflict (id) do nothing
      returning id, team_id, connection_id, source_id, destination_id, ordering_key
    ), queued as (
      insert into deliveries (event_id, team_id, shard, destination_id, connection_id, due_at, ordering_key, place, ready_at)
      select id, team_id, ${shard}, destination_id, connection_id,
        case when ordering_key is null then ${now} else ${sql.literal(inLine)} end, ordering_key,
        case when ordering_key is not null then ${sql.literal(nextPlace)} end,
        case when ordering_key is not null then ${now}::timestamptz end
      from created
    ), counted as (
      ${sql.literal(writeCounts(createdCounts))}
    )
    update events set retried_at = ${now}, updated_at = ${now}
    from created where events.id = ${event_id}
    returning created.id`
  const rows = yield* query(withPartitions(sql)(insert))
  if (rows.length === 0 && (yield* stored(team_id, event_id, id)) === undefined) return yield* payloadUnavailable
  return { id, parent_event_id: event_id, connection_id, destination_id, shard, created_at: now }
})
