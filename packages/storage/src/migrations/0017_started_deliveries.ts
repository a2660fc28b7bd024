import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * What a paced destination has started lately is found by when it was started: whoever takes it over need not read all that waits for
 * it. Rows that have never been tried are not in this index, so accepting and delivering cost what they did.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create index deliveries_started on deliveries (destination_id, started_at) where started_at is not null`
})
