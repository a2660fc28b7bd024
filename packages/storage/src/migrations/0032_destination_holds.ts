import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Until when a destination's target takes nothing more, by what it has answered; null: it takes what comes. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // Not a setting: a change of the settings takes it out. The version before leaves it as it is, which is over in ten minutes.
  yield* sql`alter table destinations add column held_until timestamptz`
})
