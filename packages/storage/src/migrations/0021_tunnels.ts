import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Which session of a tunnel an event went through last. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table events add column cli_id text`
})
