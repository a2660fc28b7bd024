import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Workflows: their definitions with all versions, and their runs. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // "steps" and "edges" as the version of that number has them. "source_id" is null when the source was deleted.
  `create table workflows (
    id text collate "C" primary key,
    team_id text collate "C" not null references teams (id),
    name text not null,
    description text,
    source_id text collate "C" references sources (id),
    status text not null,
    version integer not null,
    steps jsonb not null,
    edges jsonb not null,
    definition_hash text not null,
    recent_commands text[] not null default '{}',
    deleted_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null
  )`,
  `create unique index workflows_name on workflows (team_id, name) where deleted_at is null`,
  `create index workflows_source on workflows (source_id) where deleted_at is null`,
  `create index workflows_updated on workflows (team_id, updated_at, id)`,

  // Never changed: runs name the version that they run by. A definition that is as it was is not written again: "defined_in" is the version
  // that has it.
  `create table workflow_versions (
    workflow_id text collate "C" not null references workflows (id),
    version integer not null,
    team_id text collate "C" not null references teams (id),
    name text not null,
    status text not null,
    definition_hash text not null,
    defined_in integer not null,
    steps jsonb,
    edges jsonb,
    created_at timestamptz not null,
    primary key (workflow_id, version)
  )`,

  // "parts": how often its steps were written. Whoever writes them next says so, so that of two only one does. "kept": characters of what
  // they have given.
  `create table workflow_runs (
    id text collate "C" primary key,
    team_id text collate "C" not null,
    workflow_id text collate "C" not null,
    request_id text collate "C" not null,
    source_id text collate "C" not null,
    version integer not null,
    status text not null,
    outcome text,
    parts integer not null default 0,
    kept integer not null default 0,
    attempts integer not null default 1,
    steps_count smallint not null,
    succeeded_steps smallint not null default 0,
    failed_steps smallint not null default 0,
    skipped_steps smallint not null default 0,
    running_steps smallint not null default 0,
    error_code text,
    error_message text,
    error_step_id text,
    retry_id text,
    retried_step_id text,
    retried_at timestamptz,
    started_at timestamptz,
    finished_at timestamptz,
    created_at timestamptz not null,
    updated_at timestamptz not null
  ) partition by range (id)`,
  `create index workflow_runs_team on workflow_runs (team_id, id)`,
  `create index workflow_runs_workflow on workflow_runs (workflow_id, id)`,

  // What one commit has made of a run's steps: those that it changed, as they were then; of a step the last one holds. "outputs" and
  // "previews" are what their steps were given and gave, whole and redacted. "resources": of the first one, what its steps named then.
  `create table workflow_steps (
    id text collate "C" primary key,
    team_id text collate "C" not null,
    run_id text collate "C" not null,
    part integer not null,
    steps text not null,
    resources text,
    outputs text,
    previews text,
    created_at timestamptz not null
  ) partition by range (id)`,
  `create index workflow_steps_run on workflow_steps (run_id, part)`,

  // Runs that are not at their end. "carried": the trigger and the state of one that waits for long, which may outlive what it was made of.
  `create table workflow_queue (
    run_id text collate "C" primary key,
    team_id text collate "C" not null,
    shard smallint not null,
    workflow_id text collate "C" not null,
    due_at timestamptz not null,
    carried text
  ) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000)`,
  `create index workflow_queue_due on workflow_queue (shard, workflow_id, due_at, run_id)`
]
