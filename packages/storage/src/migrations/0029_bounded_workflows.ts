import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** What workflows name, by an index; and what lets go of versions and of deleted rows that nothing goes by. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

/** The same index, without what is deleted. */
const anew = ([table, by]: readonly [table: string, by: string]): ReadonlyArray<string> => [
  `drop index ${table}_${by}`,
  `create index ${table}_${by} on ${table} (team_id, ${by}_at, id) where deleted_at is null`
]

const statements = [
  // Of the steps, in their order, what each names, or null; and how many edges there are. The database itself writes them, so that rows of the version
  // before have them too; not as generated columns, for which all definitions would be copied with the table locked.
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
  // Searched for each row of a list: nothing of it waits in what every search would read through. The same of the rules of connections.
  `create index workflows_named on workflows using gin (named) with (fastupdate = off) where deleted_at is null`,
  `alter index connections_rules set (fastupdate = off)`,
  `select gin_clean_pending_list('connections_rules')`,

  // Whether a run has been found that goes by it: looked for once, when no other can come to.
  `alter table workflow_versions add column has_run boolean not null default false`,

  // Lists read what is there: whoever makes and deletes all day must not slow them down.
  ...anew(["workflows", "updated"]),
  ...anew(["filters", "created"]),
  ...anew(["actions", "created"])
]
