import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Deletions of requests, with all that came of them, by a filter or by a person's text. The previous version reads none of it. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // "text": what is looked for, encrypted; null: the filter selects, or the deletion has ended. "until": what was received later is
  // not selected. "pass": which one of the search. "at_table", "at_key": what the pass has looked at last; null: it begins. "found": what
  // the pass has found so far. "pass_at": the pass does not begin earlier. "planned", "deleted": rows by table.
  `create table data_deletions (
    id text collate "C" primary key,
    team_id text collate "C" not null references teams (id),
    filter jsonb not null,
    text text,
    text_hash text,
    until timestamptz not null,
    stage text not null default 'searching'
      check (stage in ('searching', 'counting', 'planned', 'stopping', 'removing', 'done', 'cancelled', 'failed')),
    requested_by text collate "C",
    requested_at timestamptz not null,
    confirmed_by text collate "C",
    confirmed_at timestamptz,
    pass int4 not null default 1,
    at_table text,
    at_key text[],
    found bigint not null default 0,
    pass_at timestamptz,
    looked_at bigint not null default 0,
    unreadable bigint not null default 0,
    targets bigint not null default 0,
    planned jsonb not null default '{}',
    deleted jsonb not null default '{}',
    error jsonb,
    finished_at timestamptz
  ) with (fillfactor = 50)`,
  // A team has one deletion under way.
  `create unique index data_deletions_open on data_deletions (team_id) where finished_at is null`,
  `create index data_deletions_team on data_deletions (team_id, id)`,

  // What has ended is proof: nobody changes it.
  `create function keep_proof_of_deletion() returns trigger language plpgsql as $$
    begin
      raise exception 'a deletion of data that has ended is proof, and is never changed';
    end $$`,
  `create trigger data_deletions_kept before update on data_deletions for each row when (old.finished_at is not null)
    execute function keep_proof_of_deletion()`,

  // The requests and the runs that a deletion has selected.
  `create table data_deletion_targets (
    deletion_id text collate "C" not null references data_deletions (id) on delete cascade,
    target_id text collate "C" not null,
    team_id text collate "C" not null,
    primary key (deletion_id, target_id)
  )`,
  `create index data_deletion_targets_team on data_deletion_targets (team_id)`
]
