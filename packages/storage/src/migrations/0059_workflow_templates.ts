import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Templates that teams have saved from their workflows. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // "outline": the steps as a list shows them. "bytes": of the definition and the outline, for the limit of the team.
  yield* sql`create table workflow_templates (
    id text collate "C" primary key,
    team_id text collate "C" not null references teams (id),
    name text not null,
    description text not null,
    outline jsonb not null,
    steps jsonb not null,
    edges jsonb not null,
    run_label text,
    triggers jsonb,
    bytes integer not null,
    created_by_user_id text collate "C",
    created_at timestamptz not null
  )`
  yield* sql`create unique index workflow_templates_name on workflow_templates (team_id, name)`
})
