import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { quarterMeasure, quarterOf } from "../src/journal/CountStatement.ts"

/** Adds the quarters of an hour of counts that a test has written by the minute, as the statement that adds counts up does. */
export const addQuarters = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`insert into rollups (key_id, measure, minute, slot, team_id, count)
    select key_id, measure || ${quarterMeasure("")}, ${sql.literal(quarterOf("minute"))}, slot, team_id, sum(count)
    from rollups where right(measure, ${quarterMeasure("").length}) <> ${quarterMeasure("")} group by 1, 2, 3, 4, 5
    on conflict (key_id, measure, minute, slot) do update set count = excluded.count`
})
