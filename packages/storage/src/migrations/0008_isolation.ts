import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Where a transformation's code runs. `isolation`: what was asked for, null for the default. `pinned_reason`: why the code whose hash is
 * `pinned_hash` runs in fresh worlds all the same; other code is decided about anew.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    alter table transformations add column isolation text, add column pinned_hash text, add column pinned_reason text`
})
