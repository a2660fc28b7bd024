import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** The tunnel session through which an event was last delivered. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table events add column cli_id text`
})
