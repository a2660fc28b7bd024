import { Predicate, type Result } from "effect"
import type { DataVersions } from "./Versions.ts"
import type { Failure, Outcome } from "./Formatter.ts"
import { charactersIn } from "./engine/Meter.ts"
import type { Operation } from "./engine/Operation.ts"
import { operations } from "./Operations.ts"
import type { TestAnswer, TestFailure, TestInvalid } from "./OperationTest.ts"

/** Formatter work that runs in a separate thread instead of the event loop (`entities/src/Formatting`), and its result. */

/** A step of a workflow run, with its inputs resolved. */
export interface StepTask {
  readonly kind: "step"
  readonly config: {
    readonly operation: string
    readonly engine_version: string
    readonly options: Readonly<Record<string, unknown>>
  }
  readonly inputs: Readonly<Record<string, unknown>>
  readonly anchor: number
  readonly timezone: string
  readonly seed: string
}

/** A body that tests a step. */
export interface TestTask {
  readonly kind: "test"
  readonly body: unknown
  readonly now: number
  readonly versions: DataVersions
}

export type Task = StepTask | TestTask

export type StepResult = Result.Result<Outcome, Failure>
export type TestResult = Result.Result<TestAnswer, TestInvalid | TestFailure>

/** The messages to and from a thread. Class instances cannot be sent, so results are plain objects. */
export interface Order {
  readonly id: number
  readonly task: Task
}
export type Answer = { readonly id: number } & (
  | { readonly kind: "made"; readonly value: Outcome | TestAnswer }
  | { readonly kind: "refused"; readonly failure: Failure | TestInvalid | TestFailure }
  | { readonly kind: "broken"; readonly message: string }
)

/** Microseconds that a step may take on the event loop without a pause. */
const shortMicros = 4000

/**
 * Whether an operation with these inputs runs in a separate thread: because it takes long by its declared cost, or because it needs many times the
 * memory of its inputs. The decision depends on operation and inputs only.
 */
export const isDear = (operation: Operation, inputs: Readonly<Record<string, unknown>>): boolean => {
  const { apart, call, character } = operation.cost
  const lengthOf = (value: unknown): number =>
    typeof value === "string" ? value.length : typeof value === "object" && value !== null ? charactersIn(value) : 0
  let characters = 0
  let elements = 1
  for (const value of Object.values(inputs)) {
    characters += lengthOf(value)
    if (Array.isArray(value)) elements = Math.max(elements, value.length)
  }
  return characters >= apart || elements * call + (characters * character) / 1000 >= shortMicros
}

/** The same for a body that tests a step: its inputs may be templates, so the sample data counts, too. */
export const isCostlyTest = (body: unknown): boolean => {
  if (!Predicate.isReadonlyObject(body)) return false
  const { config, context, inputs } = body as Readonly<Record<string, unknown>>
  const key = Predicate.isReadonlyObject(config)
    ? (config as Readonly<Record<string, unknown>>)["operation"]
    : undefined
  const operation = typeof key === "string" ? operations.get(key) : undefined
  return operation !== undefined && isDear(operation, { inputs, context })
}
