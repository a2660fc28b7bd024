import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * The time until which targets of actions accept no calls, according to their answers. `target`: a saved action or, for actions that are defined
 * in a step, the provider and the called address.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create table action_holds (
    team_id text collate "C" not null references teams (id),
    target text collate "C" not null,
    held_until timestamptz not null,
    primary key (team_id, target)
  )`
  yield* sql`create index action_holds_expires on action_holds (held_until)`
})
