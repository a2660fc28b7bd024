import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Until when targets of actions take nothing more, by what they have answered. `target`: a saved action, or, of actions that are written into steps,
 * the provider and where it is called.
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
