import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * An index over the start times of deliveries. A new owner of a destination with a rate limit reads the recent starts from it, and does not
 * have to read the whole delivery queue. Rows without an attempt are not in this index, so accepting and delivering cost no more.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create index deliveries_started on deliveries (destination_id, started_at) where started_at is not null`
})
