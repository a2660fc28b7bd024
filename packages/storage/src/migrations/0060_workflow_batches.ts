import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Runs that carry out the requests of several runs. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // The run whose batch a run carries out: its own id, or that of the run that it repeats.
  `alter table workflow_runs add column batch_id text collate "C"`,
  // Of a window that is a batch: its runs, and the bytes of what began them.
  `alter table workflow_windows add column members int4 not null default 1, add column bytes int4 not null default 0`,
  // "run_id" carries out what began "member_id", which is "request_id": a request, or an input of that run.
  `create table workflow_batched (
    run_id text collate "C" not null,
    member_id text collate "C" not null,
    team_id text collate "C" not null references teams (id),
    request_id text collate "C" not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    primary key (run_id, member_id)
  )`,
  `create index workflow_batched_member on workflow_batched (member_id)`,
  `create index workflow_batched_team on workflow_batched (team_id)`,
  `create index workflow_batched_expires on workflow_batched (expires_at)`
]
