import { type Effect, Predicate, type Schema } from "effect"
import type { GatewayError } from "@tidegate/model/GatewayError"
import type { Warning } from "@tidegate/model/Warning"
import type { Workflow } from "@tidegate/model/Workflow"
import { definitionWarnings } from "@tidegate/resources/workflow/DefinitionCheck"
import { query } from "@tidegate/storage/Transaction"
import type { WorkflowStore } from "@tidegate/storage/workflows/Workflows"

/**
 * The schema of the body of what begins the runs, if the source's provider describes it. The body of a run that a schedule begins
 * has other members.
 */
const bodyOf = ({ source, triggers }: Workflow): Schema.JsonObject | null => {
  const schema = source?.output_schema ?? null
  const isOnly = (triggers?.schedule ?? []).length === 0
  return isOnly && Predicate.isReadonlyObject(schema) ? (schema as Schema.JsonObject) : null
}

/** The warnings about a workflow with a definition (default: the saved one). */
export const warningsOf = (
  store: WorkflowStore,
  workflow: Workflow,
  {
    edges = [],
    steps = []
  }: { readonly steps?: ReadonlyArray<unknown>; readonly edges?: ReadonlyArray<unknown> } = workflow
): Effect.Effect<ReadonlyArray<Warning>, GatewayError> => {
  const graph = { steps, edges } as Parameters<typeof definitionWarnings>[0]
  return query(definitionWarnings(graph, bodyOf(workflow), store.facts(workflow.team_id)))
}
