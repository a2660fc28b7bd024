import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import * as Columns from "../journal/Columns.ts"
import { total } from "../retention/RollupBins.ts"

/** The counts of a transformation that its record and its summary both show. */

/** The measures of a transformation's runs. */
export const executionMeasures = ["execution_successful", "execution_failed"]

/** The runs of a transformation by result. */
export const executionFields = (of: (measure: string) => ReadonlyArray<number>) => {
  const [successful, failed] = executionMeasures.map(of) as [ReadonlyArray<number>, ReadonlyArray<number>]
  return {
    executions_24h_count: total(successful) + total(failed),
    executions_24h_successful_count: total(successful),
    executions_24h_failed_count: total(failed),
    executions_24h_successful_bins: successful,
    executions_24h_failed_bins: failed
  }
}

/** How many connections name each of these transformations. */
export const connectionsByTransformation = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  team: string,
  ids: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyMap<string, number>, SqlError.SqlError> {
  const rows = yield* sql<{ id: string; count: number }>`
    select t.id, (
      select count(*)::int4 from connections c
      where c.team_id = ${team} and c.deleted_at is null
        and c.rules @> jsonb_build_array(jsonb_build_object('transformation_id', t.id))
    ) as count
    from unnest(${Columns.text(ids)}) as t (id)`
  return new Map(rows.map(({ count, id }) => [id, count]))
})
