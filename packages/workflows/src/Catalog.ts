import type { Json } from "@tidegate/model/Rule"
import type { InlineAction } from "./Definition.ts"
import type { Evaluation, Outcome } from "./StepKind.ts"

/** What a step's settings are not as its action wants them; `field` within the step. */
export interface ActionComplaint {
  readonly code: "ACTION_UNKNOWN" | "FORMATTER_CONFIG_INVALID" | "STEP_CONFIG_INVALID"
  readonly field: string
  readonly message: string
}

/** An action as a step may call it. */
export interface Action {
  /** The inputs it takes; null: any. */
  readonly inputs: ReadonlyArray<string> | null
  /** Inputs that must have a value when it runs. */
  readonly required: ReadonlyArray<string>
  /** Whether another attempt can end otherwise: a pure one's cannot, so it takes no `retry`. */
  readonly pure: boolean
  /** What is wrong with the step that calls it. */
  readonly check: (config: { readonly [member: string]: Json }) => ReadonlyArray<ActionComplaint>
  /** Null for one that leaves the process. */
  readonly evaluate: ((evaluation: Evaluation, config: { readonly [member: string]: Json }) => Outcome) | null
}

/** What a graph is compiled against: the actions that there are. Resources are looked up where they are stored. */
export interface Catalog {
  readonly action: (action: InlineAction) => Action | null
}
