import type { WorkflowStatus } from "@tidegate/model/Workflow"
import type { WorkflowTriggers } from "@tidegate/model/WorkflowTriggers"
import type { Edge, Step } from "@tidegate/workflows/Definition"
import type { StoredRow } from "../control/Store.ts"

/** A row of `workflows`. */
export interface WorkflowRow extends StoredRow {
  readonly description: string | null
  readonly run_label: string | null
  readonly source_id: string | null
  readonly status: WorkflowStatus
  readonly version: number
  readonly steps: ReadonlyArray<Step>
  readonly edges: ReadonlyArray<Edge>
  readonly definition_hash: string
  /** For each step, in order, the id of the resource that it names; the database computes it. */
  readonly named: ReadonlyArray<string | null>
  readonly edges_count: number
  readonly triggers: WorkflowTriggers | null
}
