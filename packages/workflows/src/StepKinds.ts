import { actionKind } from "./kinds/ActionStep.ts"
import { branchKind } from "./kinds/BranchStep.ts"
import { delayKind } from "./kinds/DelayStep.ts"
import { destinationKind } from "./kinds/DestinationStep.ts"
import { filterKind } from "./kinds/FilterStep.ts"
import { storeKind } from "./kinds/StoreStep.ts"
import { transformationKind } from "./kinds/TransformationStep.ts"
import { waitKind } from "./kinds/WaitStep.ts"
import { workflowKind } from "./kinds/WorkflowStep.ts"
import type { StepKind } from "./StepKind.ts"

const rows = [
  actionKind,
  destinationKind,
  transformationKind,
  filterKind,
  delayKind,
  branchKind,
  waitKind,
  storeKind,
  workflowKind
] as const

/** Every kind of step. */
export const stepKinds: ReadonlyArray<StepKind<unknown>> = rows

/** The kinds whose steps leave the process. Of `wait` these are the steps that wait for a request. */
export type KindOutside = Extract<(typeof rows)[number], { readonly compile: null }>["kind"] | "wait"

/** The kind with this name; `paths` is another name of `branch`. */
export const stepKindOf = (name: string): StepKind<unknown> | null =>
  stepKinds.find(({ kind }) => kind === (name === "paths" ? "branch" : name)) ?? null
