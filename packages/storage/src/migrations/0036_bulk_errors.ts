import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Why a bulk operation was not gone on with: `{"code", "message"}`. The version before leaves it out. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table bulk_operations add column error jsonb`
})
