import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * In which kind of context a transformation's code runs. `isolation`: the requested setting; null: the default. `pinned_reason`: why the
 * code with the hash `pinned_hash` runs in fresh contexts in spite of that setting. For other code this is decided anew.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    alter table transformations add column isolation text, add column pinned_hash text, add column pinned_reason text`
})
