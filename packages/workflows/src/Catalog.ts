import type { Json } from "@tidegate/model/Rule"
import type { Result, Schema } from "effect"
import type { InlineAction, Step } from "./Definition.ts"
import type { ApartTask, Evaluate, Evaluation } from "./StepKind.ts"

/** What a step's settings are not as its action wants them; `field` within the step. */
export interface ActionComplaint {
  readonly code: "ACTION_UNKNOWN" | "FORMATTER_CONFIG_INVALID" | "STEP_CONFIG_INVALID"
  readonly field: string
  readonly message: string
}

/** A step's call of an action. */
export interface ActionCall {
  /** The step's settings as they are kept: what it was saved with is what it runs by, whatever comes later. */
  readonly config: Step["config"]
  /** Null for one that leaves the process. */
  readonly evaluate: Evaluate
  /** Of one that stays within the process: what another thread is to do instead, where that is dear with these inputs; null: it is not. */
  readonly apart?: (evaluation: Evaluation) => ApartTask | null
}

/** An action as a step may call it. */
export interface Action {
  /** The inputs it takes; null: any. */
  readonly inputs: ReadonlyArray<string> | null
  /** Inputs that must have a value when it runs. */
  readonly required: ReadonlyArray<string>
  /** Whether another attempt can end otherwise: a pure one's cannot, so it takes no `retry`. */
  readonly pure: boolean
  /** JSON Schema of what it gives; absent: nobody knows. */
  readonly output?: Schema.JsonObject
  /** What a test answers in its place. */
  readonly outputSample?: Json
  /** Judges the step that calls it, once. */
  readonly compile: (step: Step) => Result.Result<ActionCall, ReadonlyArray<ActionComplaint>>
  /** Inputs as their templates are to be resolved, where a text of them is more than text with values in it. */
  readonly bind?: Bind
}

interface Values {
  readonly [input: string]: Json
}

interface WrongInput {
  readonly input: string
  readonly message: string
}

/** `judge`: of what is written out in inputs, when they are stored. `shown`: where an input was written that `inputs` has made of another. */
export interface Bind {
  readonly judge: (written: Values) => Result.Result<void, WrongInput>
  readonly inputs: (written: Values) => Result.Result<Values, WrongInput>
  readonly shown: (path: string) => string
}

/** An action that was saved, as a step calls it that names it. */
export interface SavedAction {
  readonly action: Action
  /** Those that it brings along: a step's own lie over them. */
  readonly inputs: Values
}

/** What a graph is compiled against: the actions that there are. Other resources are looked up where they are stored. */
export interface Catalog {
  readonly action: (action: InlineAction) => Action | null
  /** Null: there is none of this id, which is told by whoever looks resources up. */
  readonly saved?: (id: string) => SavedAction | null
  /** The conditions of a stored filter. Undefined: they are not at hand. */
  readonly filter?: (id: string) => Json | undefined
  /** The hash of the code that a transformation has. Undefined: it runs by what it has when it runs. */
  readonly code?: (id: string) => string | undefined
  /**
   * Whether the graph is stored: what is written out in its inputs was judged then, and fails its own step where it is wrong by now; its patterns were
   * within the limits of their time.
   */
  readonly isStored?: boolean
}

/** A catalog of several providers, by their keys. */
export const catalogOf = (providers: ReadonlyMap<string, (action: InlineAction) => Action | null>): Catalog => ({
  action: (action) => providers.get(action.provider_key)?.(action) ?? null
})
