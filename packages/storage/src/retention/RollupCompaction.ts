import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import * as Columns from "../journal/Columns.ts"
import { isOfQuarters } from "../journal/CountStatement.ts"
import { day } from "./Partitions.ts"
import { hourSlot } from "./RollupBins.ts"
import { tables } from "../Tables.ts"

const hour = 3_600_000
/** Counters read at once, and rows that one statement deletes. */
const pairsAtOnce = 200
const rowsAtOnce = 5_000

interface Pair {
  readonly key_id: string
  readonly measure: string
}

/**
 * Merges old minute counts into hour counts, and deletes old hour counts and the quarters of old hours. A statement deletes exactly the rows that it adds up,
 * so the sum over any whole hours is the same before, after, and when it is interrupted. A late count for an old minute is added
 * to its hour by the next run. Locked rows are skipped: nobody waits for this for longer than one statement, and this waits for
 * nobody.
 */
export const compactRollups = Effect.fnUntraced(function* (
  now: number
): Effect.fn.Return<number, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const { hoursForDays, minutesForHours } = tables.rollups
  const compactBefore = new Date(Math.floor((now - minutesForHours * hour) / hour) * hour)
  const dropBefore = new Date(Math.floor((now - hoursForDays * day) / hour) * hour)

  const compact = Effect.fnUntraced(function* (pairs: ReadonlyArray<Pair>) {
    const [row] = yield* sql<{ count: number }>`
      with gone as (
        delete from rollups where ctid = any(array(
          select r.ctid from unnest(${Columns.text(pairs.map(({ key_id }) => key_id))},
            ${Columns.text(pairs.map(({ measure }) => measure))}) as p (key_id, measure)
          cross join lateral (
            select ctid from rollups
            where rollups.key_id = p.key_id and rollups.measure = p.measure and minute < ${compactBefore}
              and (slot <> ${hourSlot} or minute < ${dropBefore})
            limit ${rowsAtOnce} for update skip locked
          ) r limit ${rowsAtOnce}))
        returning key_id, measure, minute, team_id, count
      ), hours as (
        insert into rollups (key_id, measure, minute, slot, team_id, count)
        select key_id, measure, date_trunc('hour', minute), ${hourSlot}, team_id, sum(count)
        from gone where minute >= ${dropBefore} and not ${sql.literal(isOfQuarters("measure"))} group by 1, 2, 3, 5 order by 1, 2, 3
        on conflict (key_id, measure, minute, slot) do update set count = rollups.count + excluded.count
      )
      select count(*)::int4 as count from gone`
    return row?.count ?? 0
  })

  let total = 0
  let pairs: ReadonlyArray<Pair> = [{ key_id: "", measure: "" }]
  do {
    pairs = yield* pairsAfter(sql, pairs.at(-1)!)
    let count: number
    do {
      count = pairs.length === 0 ? 0 : yield* compact(pairs)
      total += count
    } while (count === rowsAtOnce)
  } while (pairs.length === pairsAtOnce)
  return total
})

/** The next counters in the order of the primary key, with one index probe each. */
const pairsAfter = (sql: SqlClient.SqlClient, { key_id, measure }: Pair) => sql<Pair>`
  with recursive pairs as (
    (select key_id, measure from rollups where (key_id, measure) > (${key_id}, ${measure}) order by key_id, measure limit 1)
    union all
    select next.* from pairs cross join lateral (
      select key_id, measure from rollups where (key_id, measure) > (pairs.key_id, pairs.measure)
      order by key_id, measure limit 1
    ) next
  )
  select * from pairs limit ${pairsAtOnce}`
