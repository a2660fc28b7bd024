import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Whether somebody of this database waits for a lock. */
export const isWaiting = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql`
    select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  return rows.length > 0
})
