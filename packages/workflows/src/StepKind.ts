import type { Resumable } from "@tidegate/runtime/Resumable"
import type { Json } from "@tidegate/model/Rule"
import type { Mapping } from "@tidegate/interpolation/Mapping"
import type { StepResult, StepTask } from "@tidegate/formatter/Task"
import { Predicate, type Schema } from "effect"
import type { Step } from "./Definition.ts"
import type { IssueCode } from "./Issue.ts"
import type { Ports } from "./Ports.ts"

/**
 * A kind of step. A kind is one row and one file: its config, its ports and, when it stays within the process, its evaluation.
 * Nothing outside the table knows a particular kind.
 */

/** What steps and conditions read. `steps` has only steps that ran before. */
export interface Context {
  readonly trigger: {
    readonly headers: Readonly<Record<string, unknown>>
    readonly body: Json
    readonly query: Readonly<Record<string, unknown>>
    readonly path: string
    readonly [member: string]: unknown
  }
  readonly steps: Readonly<
    Record<string, { readonly status: string; readonly output: Json; readonly error: StepError | null }>
  >
  readonly run: Readonly<Record<string, unknown>>
  readonly workflow: Readonly<Record<string, unknown>>
  readonly source: Readonly<Record<string, unknown>>
  readonly item?: Json
  readonly item_index?: number
}

/** The answer of a target that refused a step's call, without secrets. */
export interface StepAnswer {
  readonly status: number
  readonly headers: { readonly [name: string]: string }
  /** Parsed if it is JSON. */
  readonly body: Json
  /** Whether only a part of the body is here. */
  readonly truncated: boolean
}

/** How a step failed. `status` is a response's; `retry_after_ms` is the wait that it asked for. */
export interface StepError {
  readonly code: string
  readonly message: string
  readonly status?: number
  readonly retry_after_ms?: number
  /** It is known that another attempt would fail too. */
  readonly final?: boolean
  /** The answer to the call; absent when there was none. */
  readonly response?: StepAnswer
}

export interface Warning {
  readonly code: string
  readonly field: string | null
  /** For a step that processes a list within one attempt: the index of the element. */
  readonly line_item_index?: number | null
  readonly message?: string
}

/** The result of a step. */
export type Outcome =
  | {
      readonly kind: "succeeded"
      readonly output: Json
      /** The ports that are taken. */
      readonly ports: ReadonlyArray<string>
      readonly warnings?: ReadonlyArray<Warning>
    }
  | { readonly kind: "failed"; readonly error: StepError; readonly warnings?: ReadonlyArray<Warning> }
  /**
   * The step continues at `until` (Unix ms); its output is then `output`. `portsLate`: a signal may end the wait; these ports are
   * taken when none comes in time.
   */
  | {
      readonly kind: "waits"
      readonly until: number
      readonly output: { readonly [member: string]: Json }
      readonly portsLate?: ReadonlyArray<string>
    }

/** What an evaluation may read. */
export interface Evaluation {
  readonly context: Context
  /** The step's inputs, resolved. */
  readonly inputs: { readonly [input: string]: Json }
  readonly time: Time
}

/** The time, provided by the caller that runs the workflow. */
export interface Time {
  /** Unix milliseconds. */
  readonly now: number
  /** A monotonic clock in milliseconds. */
  readonly clock: () => number
}

export type { Resumable }

/** Work of a step for another thread, and how its answer becomes the step's result. */
export interface ApartTask {
  readonly task: StepTask
  readonly outcome: (result: StepResult) => Outcome
}

/** Null for a step that leaves the process: the caller that runs the workflow carries it out and reports the result. */
export type Evaluate = ((evaluation: Evaluation) => Outcome | Resumable<Outcome>) | null

/** What a kind compiles its config with; each function reports a fault as an issue at `field`. */
export interface Compiler {
  readonly mapping: (value: unknown, field: string) => Resumable<Mapping | null>
  readonly condition: (condition: unknown, field: string) => Resumable<(context: Context) => boolean>
  /** The conditions of a stored filter, which read the context's `trigger`; null: they are not loaded. */
  readonly filter: (id: string) => Resumable<((context: Context) => boolean) | null>
  readonly issue: (code: IssueCode, field: string | null, message: string) => void
}

/** The members of `config` that several kinds share. */
export type CommonSetting = "timeout_ms" | "retry" | "on_error" | "for_each" | "concurrency" | "compensate"

export interface StepKind<Config> {
  readonly kind: string
  /** Its own members of `config`; `settings` adds the common ones. */
  readonly config: Schema.ConstraintDecoder<Config> & { readonly fields: Readonly<Record<string, unknown>> }
  readonly settings: ReadonlyArray<CommonSetting>
  /** The prefix of ids in `resource_id`; null: the kind has no resource. */
  readonly resource: string | null
  /** Whether the resource is optional. */
  readonly inline: boolean
  /** The names of its inputs; null: any, its action decides. `noInputs`: its steps never take any, and the document says so. */
  readonly inputs: (step: Step) => ReadonlyArray<string> | null
  /** JSON Schema of its output; null: its action has it. */
  readonly output: Schema.JsonObject | null
  /** Whether it calls a saved or inline action, which then affects its inputs and evaluation. */
  readonly callsAction: boolean
  /** Why the steps after a port are skipped when the step has succeeded without taking that port. */
  readonly notTaken: "filtered" | "path_not_taken"
  /** Its ports without `error`. The first is the default of its edges, unless `portRequired`. */
  readonly ports: Ports
  readonly portRequired: boolean
  /** The ports that an output takes, if the output determines them; otherwise it is the first. */
  readonly portsOf?: (output: Json) => ReadonlyArray<string>
  /** For a kind that only somebody outside can end: its output in tests. */
  readonly sample?: (config: Config) => Json
  /**
   * Null: its steps leave the process, unless their action evaluates them. The code that runs workflows has an executor for each
   * such kind.
   */
  readonly compile: ((step: Step, config: Config, compiler: Compiler) => Evaluate | Resumable<Evaluate>) | null
}

/** Makes a row; the type of its config stays within its file. Its type has its name, and whether its steps leave the process. */
export const stepKind = <const Kind extends string, Config, Compile extends StepKind<Config>["compile"]>(
  row: StepKind<Config> & { readonly kind: Kind; readonly compile: Compile }
): StepKind<unknown> & { readonly kind: Kind; readonly compile: Compile } => row as never

/** Of kinds whose steps take no inputs. */
export const noInputs = (): ReadonlyArray<string> => []

/** The inputs of steps that take the parts of a request; a part without an input is the trigger's. */
export const envelopeInputs = ["body", "headers", "query", "path", "method"] as const

/** A member of an object; undefined for any other value. */
export const memberOf = (value: Json, name: string): Json | undefined =>
  Predicate.isReadonlyObject(value) && Object.hasOwn(value, name)
    ? (value as { readonly [name: string]: Json })[name]
    : undefined
