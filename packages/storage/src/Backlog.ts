import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { HotSql } from "./Database.ts"
import { lanesOf } from "./DeliveryRows.ts"

/** What waits for one destination. */
export interface Backlog {
  readonly destinationId: string
  /** Events that wait, paused ones included; `mostCounted` stands for that many or more. */
  readonly waiting: number
  /** When the oldest of those that are not paused is, or was, due (Unix ms); null: all are paused. */
  readonly oldestDue: number | null
}

/** Looked at: the destinations whose oldest event has been due for longest. */
const mostDestinations = 100
/** Counted of each. */
export const mostCounted = 5_000

/**
 * The backlogs of these shards, those that are furthest behind first. What it costs is bounded whatever waits: one probe a lane, as the
 * sweep does, and at most half a million index entries.
 */
export const backlogs = Effect.fnUntraced(function* (
  shards: ReadonlyArray<number>
): Effect.fn.Return<ReadonlyArray<Backlog>, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  const rows = yield* sql<{ destination_id: string; oldest: Date | null; waiting: number }>`
    ${lanesOf(sql, shards)}, behind as (
      select lanes.shard, lanes.destination_id, min(lanes.due_at) filter (where not coalesce((
        select c.paused_at is not null and c.disabled_at is null and c.deleted_at is null
        from connections c where c.id = lanes.connection_id
      ), false)) as oldest
      from lanes group by lanes.shard, lanes.destination_id order by oldest nulls last limit ${mostDestinations}
    )
    select behind.destination_id, behind.oldest, counted.waiting
    from behind cross join lateral (
      select count(*)::int4 as waiting from (
        select 1 from deliveries d where d.shard = behind.shard and d.destination_id = behind.destination_id
        limit ${mostCounted}
      ) first
    ) counted`
  return rows.map((row) => ({
    destinationId: row.destination_id,
    waiting: row.waiting,
    oldestDue: row.oldest?.getTime() ?? null
  }))
})
