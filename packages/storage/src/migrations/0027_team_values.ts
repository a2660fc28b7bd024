import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Values that a team's workflows store by key, and results of steps by their idempotency keys, so that no step is done twice. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create table team_values (
    team_id text collate "C" not null references teams (id),
    key text collate "C" not null,
    value json not null,
    updated_at timestamptz not null,
    primary key (team_id, key)
  )`
  // A step belongs to one run, and no run is older than 60 days.
  yield* sql`create table step_results (
    key text collate "C" primary key,
    team_id text collate "C" not null references teams (id),
    result text not null,
    expires_at timestamptz not null
  )`
  yield* sql`create index step_results_expiry on step_results (expires_at)`
})
