import type { Resumable } from "@tidegate/runtime/Resumable"
import type { Json } from "@tidegate/model/Rule"
import type { Mapping } from "@tidegate/interpolation/Mapping"
import type { StepResult, StepTask } from "@tidegate/formatter/Task"
import { Predicate, type Schema } from "effect"
import type { Step } from "./Definition.ts"
import type { IssueCode } from "./Issue.ts"

/**
 * The shape of a kind of step. A kind is one row and one file: what it may be configured with, where it can be left by,
 * and, when it stays within the process, how it is evaluated. Nothing outside the table knows a kind.
 */

/** What steps and conditions read from. Only what ran before the step is in `steps`. */
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

/** How a step failed. `status` is a response's; `retry_after_ms` what it asked for. */
export interface StepError {
  readonly code: string
  readonly message: string
  readonly status?: number
  readonly retry_after_ms?: number
  /** Whoever failed knows that another attempt would, too. */
  readonly final?: boolean
}

export interface Warning {
  readonly code: string
  readonly field: string | null
  /** Of a step that goes through a list by itself: the element. */
  readonly line_item_index?: number | null
  readonly message?: string
}

/** What comes of a step. */
export type Outcome =
  | {
      readonly kind: "succeeded"
      readonly output: Json
      /** The ports it is left by. */
      readonly ports: ReadonlyArray<string>
      readonly warnings?: ReadonlyArray<Warning>
    }
  | { readonly kind: "failed"; readonly error: StepError; readonly warnings?: ReadonlyArray<Warning> }
  /** It goes on at `until`, Unix milliseconds; its output is then `output`. */
  | { readonly kind: "waits"; readonly until: number; readonly output: { readonly [member: string]: Json } }

/** What an evaluation may read. */
export interface Evaluation {
  readonly context: Context
  /** The step's inputs, resolved. */
  readonly inputs: { readonly [input: string]: Json }
  readonly time: Time
}

/** What the time is, told by whoever runs the workflow. */
export interface Time {
  /** Unix milliseconds. */
  readonly now: number
  /** Milliseconds that only grow. */
  readonly clock: () => number
}

export type { Resumable }

/** Work of a step that is carried out in another thread, and what the step comes to by that. */
export interface ApartTask {
  readonly task: StepTask
  readonly outcome: (result: StepResult) => Outcome
}

/** Null for a step that leaves the process: whoever runs the workflow carries it out, and says what came of it. */
export type Evaluate = ((evaluation: Evaluation) => Outcome | Resumable<Outcome>) | null

/** What a kind compiles with; each refuses by an issue at `field`. */
export interface Compiler {
  readonly mapping: (value: unknown, field: string) => Resumable<Mapping | null>
  readonly condition: (condition: unknown, field: string) => Resumable<(context: Context) => boolean>
  /** A stored filter's conditions, which are about what the context has as `trigger`; null: they are not at hand. */
  readonly filter: (id: string) => Resumable<((context: Context) => boolean) | null>
  readonly issue: (code: IssueCode, field: string | null, message: string) => void
}

/** The members of `config` that several kinds share. */
export type CommonSetting = "timeout_ms" | "retry" | "on_error" | "for_each"

export interface StepKind<Config> {
  readonly kind: string
  /** Its members of `config`; the common ones are added by `settings`. */
  readonly config: Schema.ConstraintDecoder<Config> & { readonly fields: Readonly<Record<string, unknown>> }
  readonly settings: ReadonlyArray<CommonSetting>
  /** The prefix of ids that `resource_id` can hold; null where there is no resource. */
  readonly resource: string | null
  /** Whether it can do without one. */
  readonly inline: boolean
  /** The inputs it takes; null: any, its action says which. */
  readonly inputs: (step: Step) => ReadonlyArray<string> | null
  /** JSON Schema of what it gives; null: its action says. */
  readonly output: Schema.JsonObject | null
  /** Whether it calls an action, a saved one or one written into it, which then has a say in its inputs and evaluation. */
  readonly callsAction: boolean
  /** Why what follows a port is skipped when the step has succeeded and is not left by it. */
  readonly notTaken: "filtered" | "path_not_taken"
  /** The ports it can be left by, but for `error`. The first is the default of its edges, unless `portRequired`. */
  readonly ports: (config: Config) => ReadonlyArray<string>
  readonly portRequired: boolean
  /** The ports that go with an output, where it says; of others it is the first. */
  readonly portsOf?: (output: Json) => ReadonlyArray<string>
  /** Null: its steps leave the process, unless their action evaluates them. Whoever runs workflows has an executor for each such kind. */
  readonly compile: ((step: Step, config: Config, compiler: Compiler) => Evaluate | Resumable<Evaluate>) | null
}

/** A row; its configuration's type stays within its file. Its name, and whether its steps leave the process, are told by its type. */
export const stepKind = <const Kind extends string, Config, Compile extends StepKind<Config>["compile"]>(
  row: StepKind<Config> & { readonly kind: Kind; readonly compile: Compile }
): StepKind<unknown> & { readonly kind: Kind; readonly compile: Compile } => row as never

/** What steps that take a request's parts can be given; without inputs they take the trigger's. */
export const envelopeInputs = ["body", "headers", "query", "path", "method"] as const

/** A member of an object; undefined of anything else. */
export const memberOf = (value: Json, name: string): Json | undefined =>
  Predicate.isReadonlyObject(value) && Object.hasOwn(value, name)
    ? (value as { readonly [name: string]: Json })[name]
    : undefined
