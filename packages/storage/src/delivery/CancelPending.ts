import { Clock, Effect } from "effect"
import type { SqlClient, SqlError, Statement } from "effect/sql"
import { HotSql } from "../Database.ts"
import { isCancelled } from "./EventStatus.ts"
import { minuteOfId, writeCounts } from "../journal/CountStatement.ts"

/** The connection or destination of pending events. */
export type PendingOf = { readonly connection_id: string } | { readonly destination_id: string }

/**
 * Stores a status that pending events already have: events that their connection or destination has cancelled become CANCELLED
 * rows and leave the queue. It takes `chunk` events at a time, each chunk in one statement, and returns the number of all.
 *
 * It may run at any time, several times at once, and may be interrupted. Rows that another statement is writing are skipped:
 * the writer of an attempt updates its event itself. An event whose delivery is under way is cancelled too; the record of that
 * attempt decides its final state.
 */
export const cancelPending = Effect.fnUntraced(function* (
  of: PendingOf,
  chunk = 5000
): Effect.fn.Return<number, SqlError.SqlError, HotSql> {
  let total = 0
  for (const connection of "connection_id" in of ? [of.connection_id] : yield* connectionQueuesOf(of.destination_id)) {
    let cancelled: number
    do {
      cancelled = yield* cancelChunk(connection, chunk)
      total += cancelled
    } while (cancelled === chunk)
  }
  return total
})

/** The connections with waiting events of a destination, including one that was moved to another destination since. */
const connectionQueuesOf = Effect.fnUntraced(function* (destinationId: string) {
  const sql = yield* HotSql
  const rows = yield* sql<{ connection_id: string }>`
    select distinct connection_id from deliveries where destination_id = ${destinationId}`
  return rows.map((row) => row.connection_id)
})

const cancelChunk = Effect.fnUntraced(function* (connectionId: string, chunk: number) {
  const sql = yield* HotSql
  return yield* cancelEvents(
    sql,
    sql`
      select e.* from deliveries q cross join lateral (
        select e.id, e.team_id, e.connection_id, e.source_id, e.destination_id from events e
        where e.id = q.event_id and e.state = 'PENDING' and (
          select ${isCancelled(sql)} from connections c, destinations d where c.id = e.connection_id and d.id = e.destination_id
        )
        limit 1 for update skip locked
      ) e
      where q.connection_id = ${connectionId} and q.connection_id <> ''
      limit ${chunk}
      for update of q skip locked`,
    "CANCELLED"
  )
})

const cancelledCounts = `(
  select connection_id as key_id, source_id, destination_id, 'cancelled' as measure, ${minuteOfId("id")} as minute, team_id, count(*) as n
  from doomed group by 1, 2, 3, 5, 6
) as c`

/** Cancels the pending events that a select has locked, in one statement; returns their number. */
export const cancelEvents = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  doomed: Statement.Fragment,
  errorCode: "CANCELLED" | "CANCELLED_PAST_RETENTION"
) {
  const now = new Date(yield* Clock.currentTimeMillis)
  const [row] = yield* sql<{ count: number }>`
    with doomed as materialized (${doomed}), marked as (
      update events set state = 'CANCELLED', failed = true, error_code = ${errorCode}, due_at = null,
        cancelled_at = ${now}, updated_at = ${now}
      where events.id = any(array(select id from doomed))
        and events.id >= (select min(id) from doomed) and events.id <= (select max(id) from doomed)
    ), removed as (
      delete from deliveries where event_id = any(array(select id from doomed))
    ), counted as (
      ${sql.literal(writeCounts(cancelledCounts))}
    )
    select count(*)::int4 as count from doomed`
  return row?.count ?? 0
})
