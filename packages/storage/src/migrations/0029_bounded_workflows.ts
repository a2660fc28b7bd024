import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** An index over the resources that workflows name, and the means to delete versions that no run uses and to skip deleted rows in lists. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

/** Replaces an index by the same one without deleted rows. */
const anew = ([table, by]: readonly [table: string, by: string]): ReadonlyArray<string> => [
  `drop index ${table}_${by}`,
  `create index ${table}_${by} on ${table} (team_id, ${by}_at, id) where deleted_at is null`
]

const statements = [
  // "named": for each step, in order, the resource that it names, or null. "edges_count": number of edges. The database writes them, so that
  // rows of the previous version have them too. They are not generated columns, because adding those copies the whole table under a lock.
  `alter table workflows add column named jsonb, add column edges_count integer`,
  `create function outline_workflow() returns trigger language plpgsql as $$ begin
    new.named := jsonb_path_query_array(new.steps, '$[*].resource_id');
    new.edges_count := jsonb_array_length(new.edges);
    return new;
  end $$`,
  `create trigger workflows_outline before insert or update of steps, edges on workflows
    for each row execute function outline_workflow()`,
  `update workflows set named = jsonb_path_query_array(steps, '$[*].resource_id'), edges_count = jsonb_array_length(edges)`,
  `alter table workflows alter column named set not null, alter column edges_count set not null`,
  // A list searches this index for each of its rows. Without "fastupdate" there is no list of pending entries that each search would have to
  // read. The same holds for the index of the connections' rules.
  `create index workflows_named on workflows using gin (named) with (fastupdate = off) where deleted_at is null`,
  `alter index connections_rules set (fastupdate = off)`,
  `select gin_clean_pending_list('connections_rules')`,

  // Whether a run of this version was found. It is looked for once, when no new run can use the version any more.
  `alter table workflow_versions add column has_run boolean not null default false`,

  // Lists read existing rows only, so a team that creates and deletes many must not slow them down.
  ...anew(["workflows", "updated"]),
  ...anew(["filters", "created"]),
  ...anew(["actions", "created"])
]
