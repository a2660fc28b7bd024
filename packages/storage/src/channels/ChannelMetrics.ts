import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import * as Columns from "../journal/Columns.ts"

const keptMs = 90 * 86_400_000

/** Adds to the counts of a source's channel on this day, in the caller's transaction. */
export const count = Effect.fnUntraced(function* (
  team_id: string,
  source_id: string,
  counts: Readonly<Record<string, number>>,
  now: number
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  // In one order, so that two transactions do not wait for each other.
  const added = Object.entries(counts)
    .filter(([, n]) => n !== 0)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  if (added.length === 0) return
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    insert into channel_metrics as m (team_id, source_id, metric_date, metric, value, expires_at)
    select ${team_id}, ${source_id}, ${new Date(now).toISOString().slice(0, 10)}::date, c.metric, c.value, ${new Date(now + keptMs)}
    from unnest(${Columns.text(added.map(([metric]) => metric))}, ${Columns.int8(added.map(([, n]) => BigInt(n)))})
      as c (metric, value)
    on conflict (team_id, metric_date, metric, source_id) do update set value = m.value + excluded.value`
})
