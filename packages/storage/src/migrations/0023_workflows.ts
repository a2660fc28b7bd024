import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Workflows: their definitions with all versions, and their runs. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // "steps" and "edges" are those of the version "version". "source_id" is null if the source was deleted.
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

  // Versions are never changed, because runs name the version that they use. An unchanged definition is not stored again: "defined_in" is
  // the version that contains it.
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

  // "parts": number of journal entries. The next writer names this number, so that only one of two concurrent writers succeeds. "kept":
  // characters of the stored outputs.
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

  // Journal entries: the steps that one commit changed, with their state at that time. The latest entry of a step is valid. "outputs" and
  // "previews" are the inputs and outputs of these steps, complete and redacted. "resources" (first entry only): the resources that the
  // run's steps named then.
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

  // Unfinished runs. "carried": the trigger and the state of a run that waits for long, because it may outlive the request.
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
