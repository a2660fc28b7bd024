import { Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import type { Counts } from "@tidegate/channels/machine/Facts"
import { dayMs } from "@tidegate/channels/machine/Times"
import { Rows } from "../journal/Rows.ts"

/** The time (ms) for which counts are kept. */
const keptMs = 90 * dayMs

/** Counts of a source at a time (Unix ms). */
export interface Counted {
  readonly team_id: string
  readonly source_id: string
  readonly counts: Counts
  readonly now: number
}

interface CountRow extends Omit<Counted, "counts"> {
  readonly metric: string
  readonly n: number
}

const countRows = new Rows<CountRow>("m", [
  ["team_id", "text", ({ team_id }) => team_id],
  ["source_id", "text", ({ source_id }) => source_id],
  ["day", "text", ({ now }) => dateOf(now), []],
  { metric_date: "day::date" },
  ["metric", "text", ({ metric }) => metric],
  ["value", "int8", ({ n }) => BigInt(Math.round(n))],
  ["expires_at", "timestamptz", ({ now }) => now + keptMs]
])

/**
 * A statement that adds to the counts of sources on the current UTC date; null: there is nothing to add. In a transaction it has
 * to be the only one for its sources, and the last one: other transactions of the same source wait for these rows. `condition`
 * may name the rows as `m`.
 */
export const countStatement = (
  sql: SqlClient.SqlClient,
  counted: ReadonlyArray<Counted>,
  condition: Statement.Fragment = sql.literal("true")
): Statement.Fragment | null => {
  const rows = counted.flatMap(({ counts, ...of }) =>
    Object.entries(counts).flatMap(([metric, n]): ReadonlyArray<CountRow> => (n === 0 ? [] : [{ ...of, metric, n }]))
  )
  if (rows.length === 0) return null
  // In one order everywhere, so that no two transactions wait for each other.
  return sql`
    ${sql.literal(countRows.insertInto("channel_metrics", ""))} ${countRows.unnest(sql, rows)} where ${condition}
    order by m.source_id, m.metric
    on conflict (team_id, metric_date, metric, source_id) do update set value = channel_metrics.value + excluded.value`
}

/** Adds to the counts of a source. To be called in a transaction, as `countStatement` says. */
export const count = Effect.fnUntraced(function* (
  team_id: string,
  source_id: string,
  counts: Counts,
  now: number
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const statement = countStatement(sql, [{ team_id, source_id, counts, now }])
  if (statement !== null) yield* sql`${statement}`
})

/** The UTC date of a time (Unix ms). */
export const dateOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
