import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { Counts } from "@tidegate/channels/machine/Facts"
import { dayMs } from "@tidegate/channels/machine/Times"
import * as Columns from "../journal/Columns.ts"

/** The time (ms) for which counts are kept. */
const keptMs = 90 * dayMs

/**
 * Adds to the counts of the source on the current UTC date. To be called in a transaction, once and as its last statement: other
 * transactions of the same source wait for these rows.
 */
export const count = Effect.fnUntraced(function* (
  team_id: string,
  source_id: string,
  counts: Counts,
  now: number
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  // In one order everywhere, so that no two transactions wait for each other.
  const added = Object.entries(counts)
    .filter(([, n]) => n !== 0)
    .toSorted(([left], [right]) => (left < right ? -1 : 1))
  if (added.length === 0) return
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    insert into channel_metrics (team_id, source_id, metric_date, metric, value, expires_at)
    select ${team_id}, ${source_id}, ${dateOf(now)}::date, m.metric, m.value, ${new Date(now + keptMs)}
    from unnest(${Columns.text(added.map(([metric]) => metric))}, ${Columns.int8(added.map(([, n]) => BigInt(Math.round(n))))})
      as m (metric, value)
    on conflict (team_id, metric_date, metric, source_id) do update set value = channel_metrics.value + excluded.value`
})

/** The UTC date of a time (Unix ms). */
export const dateOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
