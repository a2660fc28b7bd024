import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** The credentials that senders present, apart from the headers and the query that they came in. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // Encrypted; null: nothing was presented, or the row is older than this. "headers" and "query" have masks in their place.
  yield* sql.unsafe("alter table requests add column presented text")
})
