import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { HotSql } from "../Database.ts"
import { connectionQueuesOf } from "./DeliveryRows.ts"
import { inLine } from "./OrderingKeys.ts"

/** What waits for one destination. */
export interface Backlog {
  readonly destinationId: string
  /** Events that wait, paused ones included; `maxCounted` stands for that many or more. */
  readonly waiting: number
  /**
   * When the oldest of those that are not paused is, or was, due (Unix ms); null: all are paused. Where all wait in a line for the event before them, it
   * is the oldest of some of them.
   */
  readonly oldestDue: number | null
}

/** Destinations that are looked at: those whose oldest event has been due for longest. */
const maxDestinations = 100
/** Events that are counted of each destination. */
export const maxCounted = 5_000
/** Rows that are looked at in the lines of a connection queue. */
const maxInLine = 100

/**
 * The backlogs of these shards, those that are furthest behind first. What it costs is bounded whatever waits: one index probe for each connection queue,
 * as the poller does, a hundred rows of a connection queue that keeps an order, and at most half a million index entries.
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
          order by d.shard, d.destination_id, d.connection_id, d.ordering_key, d.place limit ${maxInLine}
        ) first
      ) lined on lanes.due_at = ${sql.literal(inLine)}
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
