import type { Json } from "@tidegate/model/Rule"
import type { Result, Schema } from "effect"
import type { InlineAction, Step } from "./Definition.ts"
import type { ApartTask, Evaluate, Evaluation } from "./StepKind.ts"

/** A fault of a step's settings for its action; `field` is a path within the step. */
export interface ActionComplaint {
  readonly code: "ACTION_UNKNOWN" | "FORMATTER_CONFIG_INVALID" | "STEP_CONFIG_INVALID"
  readonly field: string
  readonly message: string
}

/** A step's call of an action. */
export interface ActionCall {
  /** The step's settings as they are stored: the run uses what was saved, whatever the defaults become later. */
  readonly config: Step["config"]
  /** Null for a call that leaves the process. */
  readonly evaluate: Evaluate
  /** For a call within the process: the task for another thread when these inputs make it expensive; null: they do not. */
  readonly apart?: (evaluation: Evaluation) => ApartTask | null
}

/** An action that a step may call. */
export interface Action {
  /** The names of its inputs; null: any. */
  readonly inputs: ReadonlyArray<string> | null
  /** Inputs that must have a value when it runs. */
  readonly required: ReadonlyArray<string>
  /** Whether another attempt always has the same result: then the step takes no `retry`. */
  readonly pure: boolean
  /** JSON Schema of its output; absent: not known. */
  readonly output?: Schema.JsonObject
  /** Its output in a dry run. */
  readonly outputSample?: Json
  /** Checks the step that calls it, once. */
  readonly compile: (step: Step) => Result.Result<ActionCall, ReadonlyArray<ActionComplaint>>
  /** How to resolve the templates of inputs in which a text is more than text with values. */
  readonly bind?: Bind
}

interface Values {
  readonly [input: string]: Json
}

interface WrongInput {
  readonly input: string
  readonly message: string
}

/**
 * `judge`: checks the literal parts of inputs when they are stored. `shown`: the written path of an input that `inputs` has
 * derived from another one.
 */
export interface Bind {
  readonly judge: (written: Values) => Result.Result<void, WrongInput>
  readonly inputs: (written: Values) => Result.Result<Values, WrongInput>
  readonly shown: (path: string) => string
}

/** A saved action, for the step that names it. */
export interface SavedAction {
  readonly action: Action
  /** The inputs of the saved action: a step's own inputs override them. */
  readonly inputs: Values
}

/** What a graph is compiled with: the available actions. Storage looks up the other resources. */
export interface Catalog {
  readonly action: (action: InlineAction) => Action | null
  /** Null: there is none with this id; the code that looks resources up reports that. */
  readonly saved?: (id: string) => SavedAction | null
  /** The conditions of a stored filter. Undefined: they are not loaded. */
  readonly filter?: (id: string) => Json | undefined
  /** The hash of a transformation's code. Undefined: it runs the code that it has at that time. */
  readonly code?: (id: string) => string | undefined
  /** JSON Schema of the body of what begins the runs. Absent or null: not known. */
  readonly body?: Schema.JsonObject | null
  /**
   * Whether the graph is stored. Then the literal parts of its inputs were checked already: a step whose literals are invalid by
   * now fails on its own when it runs. Its patterns were within the limits of their time.
   */
  readonly isStored?: boolean
}

/** One catalog from several providers, by their keys. */
export const catalogOf = (providers: ReadonlyMap<string, (action: InlineAction) => Action | null>): Catalog => ({
  action: (action) => providers.get(action.provider_key)?.(action) ?? null
})
