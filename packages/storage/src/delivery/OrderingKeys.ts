import { Effect } from "effect"
import type { SqlError, Statement } from "effect/sql"
import { HotSql } from "../Database.ts"
import * as Columns from "../journal/Columns.ts"

/**
 * Strict order by key: the events of a connection with the same ordering key are delivered one after the other, by their positions. The statement
 * that stores an event or a routing job assigns the position. So an event that is stored after another one was acknowledged comes after that one,
 * whichever processes received them. If two are stored at the same time, either may be first.
 */

/** The `due_at` of a row that waits for the previous event with its ordering key, and not for a time. */
export const waitsForKey = "timestamptz '9999-01-01 00:00:00+00'"

/** The next ordering position; positions increase over all keys. */
export const nextPosition = "nextval('deliveries_place')"

/** The ordering keys of one connection at one destination. */
export interface KeysOf {
  readonly shard: number
  readonly destinationId: string
  readonly connectionId: string
}

/** One of the first rows of its ordering key. */
export interface OrderedRow {
  readonly ordering_key: string
  readonly event_id: string
  readonly place: number
  /** The earliest time of its first attempt (Unix ms); null: it had an attempt, and its retry has a time. */
  readonly ready_at: number | null
}

const rowsOf = (sql: Statement.Constructor, { connectionId, destinationId, shard }: KeysOf) => sql`
    deliveries d where d.shard = ${shard} and d.destination_id = ${destinationId} and d.connection_id = ${connectionId}
      and d.place is not null`

const first = (sql: Statement.Constructor, of: KeysOf, perKey: number) => sql`
    select lines.ordering_key, head.event_id, head.place::float8 as place,
      (extract(epoch from head.ready_at) * 1000)::float8 as ready_at
    from lines cross join lateral (
      select d.event_id, d.place, d.ready_at from ${rowsOf(sql, of)} and d.ordering_key = lines.ordering_key
      order by d.shard, d.destination_id, d.connection_id, d.ordering_key, d.place limit ${perKey}
    ) head`

/** The first rows of these ordering keys. It costs one index probe for each key, however many rows the key has. */
export const firstOfKeys = Effect.fnUntraced(function* (
  of: KeysOf,
  keys: ReadonlyArray<string>,
  perKey: number
): Effect.fn.Return<ReadonlyArray<OrderedRow>, SqlError.SqlError, HotSql> {
  if (keys.length === 0) return []
  const sql = yield* HotSql
  return yield* sql<OrderedRow>`
    with lines as (select * from unnest(${Columns.text(keys)}) as l (ordering_key)) ${first(sql, of, perKey)}`
})

/**
 * The first row of each of the next `max` ordering keys after `after`, ordered by key. It costs two index probes for each key.
 */
export const nextKeys = Effect.fnUntraced(function* (
  of: KeysOf,
  after: string,
  max: number
): Effect.fn.Return<ReadonlyArray<OrderedRow>, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  return yield* sql<OrderedRow>`
    with recursive found as (
      (select d.ordering_key from ${rowsOf(sql, of)} and d.ordering_key > ${after}
        order by d.shard, d.destination_id, d.connection_id, d.ordering_key limit 1)
      union all
      select (select d.ordering_key from ${rowsOf(sql, of)} and d.ordering_key > found.ordering_key
        order by d.shard, d.destination_id, d.connection_id, d.ordering_key limit 1)
      from found where found.ordering_key is not null
    ), lines as (
      select ordering_key from found where ordering_key is not null limit ${max}
    ) ${first(sql, of, 1)}`
})
