import { Predicate, type Result } from "effect"
import type { DataVersions } from "./Versions.ts"
import type { Failure, Outcome } from "./Formatter.ts"
import { charactersIn } from "./engine/Meter.ts"
import type { Operation } from "./engine/Operation.ts"
import { operations } from "./Operations.ts"
import type { TrialAnswer, TrialFailure, TrialInvalid } from "./OperationTest.ts"

/** Work of the formatter that is carried out apart from the event loop, in a thread of its own (`entities/src/Formatting`), and what comes of it. */

/** A step of a run, with its inputs resolved. */
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

/** A body that tries a step. */
export interface TrialTask {
  readonly kind: "trial"
  readonly body: unknown
  readonly now: number
  readonly versions: DataVersions
}

export type Task = StepTask | TrialTask

export type StepResult = Result.Result<Outcome, Failure>
export type TrialResult = Result.Result<TrialAnswer, TrialInvalid | TrialFailure>

/** What a thread is sent and answers: results lose their class on the way. */
export interface Order {
  readonly id: number
  readonly task: Task
}
export type Answer = { readonly id: number } & (
  | { readonly kind: "made"; readonly value: Outcome | TrialAnswer }
  | { readonly kind: "refused"; readonly failure: Failure | TrialInvalid | TrialFailure }
  | { readonly kind: "broken"; readonly message: string }
)

/** Microseconds that a step may take on the event loop in one go with others. */
const shortMicros = 4000

/**
 * Whether an operation with these inputs is run apart from the event loop: it takes long by what its row says of its cost, or holds many times what it
 * is given while it is under way. It follows from operation and inputs alone.
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

/** The same of a body that tries a step: its inputs may be templates of its sample. */
export const isDearTrial = (body: unknown): boolean => {
  if (!Predicate.isReadonlyObject(body)) return false
  const { config, context, inputs } = body as Readonly<Record<string, unknown>>
  const key = Predicate.isReadonlyObject(config)
    ? (config as Readonly<Record<string, unknown>>)["operation"]
    : undefined
  const operation = typeof key === "string" ? operations.get(key) : undefined
  return operation !== undefined && isDear(operation, { inputs, context })
}
