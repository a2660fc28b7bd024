import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** The time until which a destination's target accepts no calls, according to its answers; null: it accepts calls. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // It is not a setting: a change of the settings clears it. The previous version does not clear it, but it ends within ten minutes.
  yield* sql`alter table destinations add column held_until timestamptz`
})
