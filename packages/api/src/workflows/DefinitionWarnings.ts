import type { Effect } from "effect"
import type { GatewayError } from "@tidegate/model/GatewayError"
import type { Warning } from "@tidegate/model/Warning"
import type { Workflow } from "@tidegate/model/Workflow"
import { definitionWarnings } from "@tidegate/resources/workflow/DefinitionCheck"
import { query } from "@tidegate/storage/Transaction"
import type { WorkflowStore } from "@tidegate/storage/workflows/Workflows"

/** The warnings about a saved workflow. */
export const warningsOf = (
  store: WorkflowStore,
  { edges = [], steps = [], team_id }: Workflow
): Effect.Effect<ReadonlyArray<Warning>, GatewayError> =>
  query(definitionWarnings({ steps, edges }, store.facts(team_id)))
