import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** The provider accounts that the steps of workflows and drafts name. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const accountsOf = (steps: string): string =>
  `nullif(jsonb_path_query_array(${steps}, '$[*].action.provider_account_id ? (@.type() == "string")'), '[]')`

// "accounts": for each step that names one, in order, the account; null: no step does. The database writes it, so that rows of the
// previous version have it too.
const statements = [
  `alter table workflows add column accounts jsonb`,
  `create or replace function outline_workflow() returns trigger language plpgsql as $$ begin
    new.named := jsonb_path_query_array(new.steps, '$[*].resource_id');
    new.edges_count := jsonb_array_length(new.edges);
    new.accounts := ${accountsOf("new.steps")};
    return new;
  end $$`,
  `update workflows set accounts = ${accountsOf("steps")} where ${accountsOf("steps")} is not null`,
  `create index workflows_accounts on workflows (team_id) where accounts is not null and deleted_at is null`,

  `alter table workflow_drafts add column accounts jsonb`,
  `create function outline_workflow_draft() returns trigger language plpgsql as $$ begin
    new.accounts := ${accountsOf("new.steps")};
    return new;
  end $$`,
  `create trigger workflow_drafts_outline before insert or update of steps on workflow_drafts
    for each row execute function outline_workflow_draft()`,
  `update workflow_drafts set accounts = ${accountsOf("steps")} where ${accountsOf("steps")} is not null`,
  `create index workflow_drafts_accounts on workflow_drafts (team_id) where accounts is not null`
]
