import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** The draft of a workflow: a definition that no run uses until it is published. A workflow has at most one. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // "on delete cascade": processes of the previous version delete workflows without their drafts.
  yield* sql`create table workflow_drafts (
    workflow_id text collate "C" primary key references workflows (id) on delete cascade,
    team_id text collate "C" not null references teams (id),
    based_on_version integer not null,
    steps jsonb not null,
    edges jsonb not null,
    run_label text,
    updated_by_user_id text collate "C",
    created_at timestamptz not null,
    updated_at timestamptz not null
  )`
  yield* sql`create index workflow_drafts_team on workflow_drafts (team_id)`
})
