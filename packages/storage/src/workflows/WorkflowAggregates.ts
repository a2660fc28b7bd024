import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import type { action } from "@tidegate/resources/Action"
import type { ChangeOf, FieldsOf } from "@tidegate/resources/Resource"
import type { SourceFields } from "@tidegate/resources/Source"
import type { workflow, WorkflowFields } from "@tidegate/resources/Workflow"
import type { WorkflowAggregate } from "@tidegate/resources/WorkflowAggregate"
import type { Result } from "effect"
import { Actions } from "./Actions.ts"
import { Sources } from "../control/Sources.ts"
import type { Command } from "../control/Store.ts"
import { transaction } from "../Transaction.ts"
import { Workflows } from "./Workflows.ts"

/** What to write in one transaction. */
export interface AggregateFields {
  /** A new source with a fresh id: its row has no other writer. Null: none is created. */
  readonly source: { readonly id: string; readonly fields: SourceFields } | null
  /** New actions, in the same way. */
  readonly actions: ReadonlyArray<{
    readonly id: string
    readonly ref: string
    readonly fields: FieldsOf<typeof action>
  }>
  readonly workflow:
    | { readonly made: WorkflowFields }
    | { readonly change: (stored: FieldsOf<typeof workflow>) => Result.Result<ChangeOf<typeof workflow>, GatewayError> }
}

/**
 * Saves a workflow with its source and its actions: all of them or nothing. A repetition with the same ids and the same command
 * changes nothing. It is called by the workflow's own actor, or by the caller that has just made the workflow's id.
 */
export const saveAggregate = Effect.fnUntraced(function* (
  team_id: string,
  id: string,
  { actions, source, workflow }: AggregateFields,
  command: Command
): Effect.fn.Return<WorkflowAggregate, GatewayError, SqlClient.SqlClient | Actions | Sources | Workflows> {
  const sql = yield* SqlClient.SqlClient
  const saving = yield* Actions
  const sources = yield* Sources
  const workflows = yield* Workflows
  return yield* transaction(sql)(
    Effect.gen(function* () {
      if (source !== null) yield* sources.create(team_id, source.id, source.fields)
      const made = yield* Effect.forEach(actions, ({ fields, id }) => saving.create(team_id, id, fields))
      const saved =
        "made" in workflow
          ? yield* workflows.create(team_id, id, workflow.made, command)
          : yield* workflows.update(team_id, id, workflow.change, command)
      return {
        workflow: saved,
        source: saved.source_id === null ? null : yield* sources.get(team_id, saved.source_id),
        actions: made,
        created: { workflow: "made" in workflow, source: source !== null, actions: actions.map(({ ref }) => ref) }
      }
    })
  )
})
