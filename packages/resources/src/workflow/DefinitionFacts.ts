import type { Effect, Schema } from "effect"
import type { SavedContent } from "@tidegate/actions/ActionCatalog"
import type { Config } from "@tidegate/connectors/Settings"
import type { WorkflowStatus } from "@tidegate/model/Workflow"
import type { Edge, Step } from "@tidegate/workflows/Definition"

/** Reads what a check needs to know beyond the definition. An id that the team does not have is absent from a map. */
export interface DefinitionFacts<E> {
  /** Whether these resources are enabled. Of a provider account also its provider; a revoked one is not enabled. */
  readonly resources: (
    ids: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyMap<string, { readonly enabled: boolean; readonly provider_key?: string }>, E>
  /** The current contents of these saved actions. */
  readonly savedActions: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, SavedContent>, E>
  /** The current conditions of these stored filters. */
  readonly conditions: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, Schema.Json>, E>
  /** The types and settings of these destinations. */
  readonly destinations: (
    ids: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyMap<string, { readonly type: string; readonly config: Config }>, E>
  /** The kinds that these steps had in stored versions of the workflow. */
  readonly storedKinds: (
    workflow_id: string,
    step_ids: ReadonlyArray<string>
  ) => Effect.Effect<ReadonlyArray<Pick<Step, "id" | "kind">>, E>
}

/** The stored definition that a save replaces. */
export interface StoredDefinition {
  readonly id: string
  readonly status: WorkflowStatus
  readonly steps: ReadonlyArray<Step>
  readonly edges: ReadonlyArray<Edge>
}
