import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { HotSql } from "../Database.ts"
import { connectionQueuesOf } from "./DeliveryRows.ts"
import { waitsForKey } from "./OrderingKeys.ts"

/** The backlog of one destination. */
export interface Backlog {
  readonly destinationId: string
  /** Waiting events, including paused ones; `maxCounted` means that many or more. */
  readonly waiting: number
  /**
   * The due time of the oldest event that is not paused (Unix ms); null: all are paused. If all wait for earlier events with
   * their ordering keys, it is the oldest of some of them.
   */
  readonly oldestDue: number | null
}

/** The largest number of destinations: those whose oldest event has been due for longest. */
const maxDestinations = 100
/** The largest number of events that are counted for a destination. */
export const maxCounted = 5_000
/** The largest number of rows with ordering keys that are read for a connection queue. */
const maxWithKeys = 100

/**
 * The largest backlogs of these shards, oldest first. Its cost is bounded: one index probe for each connection queue, as in the
 * poller, a hundred rows for each connection queue with ordering keys, and at most half a million index entries.
 */
export const backlogs = Effect.fnUntraced(function* (
  shards: ReadonlyArray<number>
): Effect.fn.Return<ReadonlyArray<Backlog>, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  const rows = yield* sql<{ destination_id: string; oldest: Date | null; waiting: number }>`
    ${connectionQueuesOf(sql, shards)}, behind as (
      select lanes.shard, lanes.destination_id, min(coalesce(lined.ready_at, lanes.due_at)) filter (where not coalesce((
        select c.paused_at is not null and c.disabled_at is null and c.deleted_at is null
        from connections c where c.id = lanes.connection_id
      ), false)) as oldest
      from lanes left join lateral (
        select min(first.ready_at) as ready_at from (
          select d.ready_at from deliveries d
          where d.shard = lanes.shard and d.destination_id = lanes.destination_id and d.connection_id = lanes.connection_id
            and d.place is not null
          order by d.shard, d.destination_id, d.connection_id, d.ordering_key, d.place limit ${maxWithKeys}
        ) first
      ) lined on lanes.due_at = ${sql.literal(waitsForKey)}
      group by lanes.shard, lanes.destination_id order by oldest nulls last limit ${maxDestinations}
    )
    select behind.destination_id, behind.oldest, counted.waiting
    from behind cross join lateral (
      select count(*)::int4 as waiting from (
        select 1 from deliveries d where d.shard = behind.shard and d.destination_id = behind.destination_id
        limit ${maxCounted}
      ) first
    ) counted`
  return rows.map((row) => ({
    destinationId: row.destination_id,
    waiting: row.waiting,
    oldestDue: row.oldest?.getTime() ?? null
  }))
})
