import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Why a bulk operation was stopped: `{"code", "message"}`. The previous version does not write it. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table bulk_operations add column error jsonb`
})
