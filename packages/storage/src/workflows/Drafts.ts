import { Clock, Effect, Result } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import type { Warning } from "@tidegate/model/Warning"
import type { WorkflowDraft } from "@tidegate/model/WorkflowDraft"
import type { RecordOf, Situation } from "@tidegate/resources/Resource"
import { workflow } from "@tidegate/resources/Workflow"
import { chainOf } from "@tidegate/resources/workflow/Chain"
import { checkDefinition } from "@tidegate/resources/workflow/DefinitionCheck"
import type { DefinitionWrite, DraftWrite } from "@tidegate/resources/WorkflowDraftInput"
import { compare } from "@tidegate/workflows/Comparison"
import type { Edge, Step } from "@tidegate/workflows/Definition"
import type { Workflow as CompiledWorkflow } from "@tidegate/workflows/Workflow"
import { shownGraph } from "@tidegate/workflows/StepCredentials"
import { presentOf } from "../control/PresentOf.ts"
import type { Command } from "../control/Store.ts"
import { transaction } from "../Transaction.ts"
import { teamFacts } from "./TeamFacts.ts"
import type { WorkflowRow } from "./WorkflowRow.ts"
import { Workflows } from "./Workflows.ts"

/**
 * Drafts of workflows. A draft is checked like a definition when it is written. It keeps nothing that it names from being deleted:
 * publishing checks it again.
 */

type LiveRow = Pick<WorkflowRow, "id" | "status" | "version" | "steps" | "edges" | "run_label">

interface DraftRow {
  readonly based_on_version: number
  readonly steps: ReadonlyArray<Step>
  readonly edges: ReadonlyArray<Edge>
  readonly run_label: string | null
  readonly updated_by_user_id: string | null
  readonly created_at: Date
  readonly updated_at: Date
}

type Reading<A> = Effect.fn.Return<A, GatewayError | SqlError.SqlError, SqlClient.SqlClient>

/** The workflow; `held`: it cannot be changed or deleted until the transaction ends. */
const liveOf = Effect.fnUntraced(function* (team: string, id: string, held: boolean): Reading<LiveRow> {
  const sql = yield* SqlClient.SqlClient
  const [live] = yield* sql<LiveRow>`
    select id, status, version, steps, edges, run_label from workflows where id = ${id} and ${presentOf(sql, team)}
    ${sql.literal(held ? "for share" : "")}`
  return live ?? (yield* notFound("workflow", id))
})

const rowOf = Effect.fnUntraced(function* (team: string, id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<DraftRow>`
    select based_on_version, steps, edges, run_label, updated_by_user_id, created_at, updated_at
    from workflow_drafts where workflow_id = ${id} and team_id = ${team}`
  return row
})

const noDraft = (id: string): GatewayError => notFound("workflow_draft", id)

const recordOf = (live: LiveRow, row: DraftRow): WorkflowDraft =>
  ({
    workflow_id: live.id,
    based_on_version: row.based_on_version,
    current_version: live.version,
    ...shownGraph(row),
    run_label: row.run_label,
    changes: compare(
      { ...live, settings: { run_label: live.run_label } },
      { ...row, settings: { run_label: row.run_label } }
    ),
    updated_by_user_id: row.updated_by_user_id,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString()
  }) as unknown as WorkflowDraft

/** The definition of the draft, as it is stored. */
export const draftDefinition = Effect.fnUntraced(function* (team: string, id: string): Reading<DraftRow> {
  yield* liveOf(team, id, false)
  return (yield* rowOf(team, id)) ?? (yield* noDraft(id))
})

export const getDraft = Effect.fnUntraced(function* (team: string, id: string): Reading<WorkflowDraft> {
  const live = yield* liveOf(team, id, false)
  return recordOf(live, (yield* rowOf(team, id)) ?? (yield* noDraft(id)))
})

/** Writes the draft of a workflow, of which there is at most one. The last writer wins. */
export const putDraft = Effect.fnUntraced(function* (
  team: string,
  id: string,
  input: DraftWrite,
  by: string | null
): Effect.fn.Return<WorkflowDraft, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const at = new Date(yield* Clock.currentTimeMillis)
  return yield* transaction(sql)(
    Effect.gen(function* () {
      const live = yield* liveOf(team, id, true)
      const before = yield* rowOf(team, id)
      const { edges = chainOf(input.steps), run_label = live.run_label, version } = input
      if (version !== undefined && version !== live.version) {
        yield* fail("workflow_conflict", `The current version of the workflow is ${live.version}`, {
          current_version: live.version,
          supplied_version: version
        })
      }
      const written = { status: "draft", steps: input.steps, edges } as const
      const compiled = yield* checkDefinition(written, { ...live, status: "draft" }, teamFacts(sql, team))
      const based_on = version ?? before?.based_on_version ?? live.version
      yield* sql`
        insert into workflow_drafts
          (workflow_id, team_id, based_on_version, steps, edges, run_label, updated_by_user_id, created_at, updated_at)
        values (${id}, ${team}, ${based_on}, ${JSON.stringify(compiled.steps)}::jsonb,
          ${JSON.stringify(compiled.edges)}::jsonb, ${run_label}, ${by}, ${at}, ${at})
        on conflict (workflow_id) do update set based_on_version = excluded.based_on_version, steps = excluded.steps,
          edges = excluded.edges, run_label = excluded.run_label, updated_by_user_id = excluded.updated_by_user_id,
          updated_at = excluded.updated_at`
      const { warnings } = compiled as { readonly warnings: ReadonlyArray<Warning> }
      const record = recordOf(live, (yield* rowOf(team, id))!)
      return warnings.length === 0 ? record : { ...record, warnings }
    })
  )
})

/**
 * Compiles a definition as a save would, against the workflow that it would replace; null: it would be that of a new one. Nothing is written.
 */
export const compiledDefinition = Effect.fnUntraced(function* (
  team: string,
  id: string | null,
  { edges, steps }: DefinitionWrite
): Reading<CompiledWorkflow> {
  const sql = yield* SqlClient.SqlClient
  const before = id === null ? null : yield* liveOf(team, id, false)
  const written = { status: before?.status ?? "draft", steps, edges: edges ?? chainOf(steps) }
  return yield* checkDefinition(written, before, teamFacts(sql, team))
})

/** Removes the draft. */
export const deleteDraft = Effect.fnUntraced(function* (
  team: string,
  id: string
): Reading<{
  readonly id: string
  readonly deleted: true
}> {
  const sql = yield* SqlClient.SqlClient
  yield* liveOf(team, id, false)
  const gone = yield* sql`delete from workflow_drafts where workflow_id = ${id} and team_id = ${team} returning 1`
  if (gone.length === 0) yield* noDraft(id)
  return { id, deleted: true }
})

/**
 * Makes the draft the next version of its workflow, and removes it in the same transaction. A repeated command changes nothing,
 * even though the draft is gone. `version`: null for the version that the draft is based on.
 */
export const publishDraft = Effect.fnUntraced(function* (
  team: string,
  id: string,
  version: number | null,
  situation: Situation,
  command: Command
): Effect.fn.Return<RecordOf<typeof workflow>, GatewayError, SqlClient.SqlClient | Workflows> {
  const sql = yield* SqlClient.SqlClient
  const workflows = yield* Workflows
  return yield* transaction(sql)(
    Effect.gen(function* () {
      const draft = yield* rowOf(team, id)
      const saved = yield* workflows.update(
        team,
        id,
        (stored) => {
          if (draft === undefined) return Result.fail(noDraft(id))
          const { based_on_version, edges, run_label, steps } = draft
          const written = { steps, edges, run_label, version: version ?? based_on_version }
          return workflow.change(written as unknown as Parameters<typeof workflow.change>[0], situation)(stored)
        },
        command
      )
      // A draft that was written meanwhile stays.
      yield* sql`
        delete from workflow_drafts where workflow_id = ${id} and updated_at = ${draft?.updated_at ?? null}`
      return saved
    })
  )
})
