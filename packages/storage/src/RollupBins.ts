import { randomInt } from "node:crypto"
import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"

const bins = 6
const spanMs = 24 * 3_600_000

/**
 * What was counted under these measures in the last 24 hours: six counts of four hours, the oldest first, the last one
 * ending at `nowMs`, for each of `ids`. Counted to the minute: a minute belongs to the bin that it begins in.
 */
export const rollupBins = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  ids: ReadonlyArray<string>,
  measures: ReadonlyArray<string>,
  nowMs: number
): Effect.fn.Return<ReadonlyMap<string, ReadonlyArray<number>>, SqlError.SqlError> {
  const counts = new Map(ids.map((id) => [id, noCounts()]))
  if (counts.size === 0) return counts
  const from = new Date(nowMs - spanMs)
  const to = new Date(nowMs)
  const rows = yield* sql<{ key_id: string; bin: number; count: number }>`
    select key_id, bin, sum(count)::float8 as count
    from counted cross join lateral (
      select least(${bins}, width_bucket(extract(epoch from minute - ${from}), 0, ${spanMs / 1000}, ${bins})) as bin
    ) b
    where key_id = any(${[...counts.keys()]}) and measure = any(${[...measures]})
      and minute > ${from} and minute <= ${to}
    group by key_id, bin`
  for (const { bin, count, key_id } of rows) counts.get(key_id)?.splice(bin - 1, 1, count)
  return counts
})

/** The bins of what was not counted. */
export const noCounts = (): Array<number> => Array.from({ length: bins }, () => 0)

export const total = (counts: ReadonlyArray<number>): number => counts.reduce((sum, count) => sum + count, 0)

/**
 * The slot that this process's control calls count in: above those of the journals, which add up far more and must not
 * wait. Two processes that draw the same one share rows and stay correct.
 */
export const controlSlot: number = 32_100 + randomInt(600)

/** The slot of counts that are of whole hours. Retention alone writes it. */
export const hourSlot = -1
