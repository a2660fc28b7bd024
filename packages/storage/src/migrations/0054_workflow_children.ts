import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Runs that steps of other runs have begun. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

// Their ends are rows of "workflow_arrivals": "run/<run>" for the parent of a run that has ended, and "cancel/<run>" for a run whose
// parent has ended.
const statements = [
  // "shard", "child_shard": the shards of the two workflows.
  `create table workflow_children (
    parent_run_id text collate "C" not null,
    step_id text collate "C" not null,
    began_at timestamptz not null,
    child_run_id text collate "C" not null,
    root_run_id text collate "C" not null,
    depth int2 not null,
    team_id text collate "C" not null references teams (id),
    workflow_id text collate "C" not null,
    shard int2 not null,
    child_workflow_id text collate "C" not null,
    child_shard int2 not null,
    expires_at timestamptz not null,
    primary key (parent_run_id, step_id, began_at)
  )`,
  `create unique index workflow_children_child on workflow_children (child_run_id)`,
  `create index workflow_children_root on workflow_children (root_run_id)`,
  `create index workflow_children_team on workflow_children (team_id)`,
  `create index workflow_children_expires on workflow_children (expires_at)`
]
