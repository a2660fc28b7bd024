import { Result } from "effect"
import { type FormatterCode, formatterCodes, type FormatterStage } from "@tidegate/model/FormatterCode"
import { didYouMean } from "@tidegate/model/NearestName"
import { Fault, type FaultDetails } from "./engine/Fault.ts"
import type { Reading, Warning } from "./engine/Field.ts"
import { limits } from "./engine/Limits.ts"
import { linesOf } from "./engine/Lines.ts"
import { charactersIn, Meter, withinElement, withinOutput } from "./engine/Meter.ts"
import type { Operation, Output, Parts } from "./engine/Operation.ts"
import { seeded } from "./engine/Random.ts"
import type { Step } from "./engine/Step.ts"
import { checkZone } from "./date/Zone.ts"
import { operations } from "./Operations.ts"

/**
 * The formatter: `compile` a step once, and `run` it for every event. The same step, inputs and context give the same result: it uses no
 * clock, randomness or network. The caller's clock is read only in repeated pattern searches, and only to stop them.
 */

export type { Step } from "./engine/Step.ts"

export const engineVersion = "1.0.0"
export const supportedVersions: ReadonlyArray<string> = [engineVersion]

export interface StepConfig {
  readonly operation: string
  /** The version with which the step was saved. Default: the present one. */
  readonly engine_version?: string | undefined
  readonly options?: Readonly<Record<string, unknown>> | undefined
}

export interface Context {
  /** The present time, in milliseconds since 1970. In a run it is the time at which the request was received. */
  readonly anchor: number
  /** The default time zone. */
  readonly timezone: string
  /** The seed of random values. */
  readonly seed: string
  /** Milliseconds of processor time that this thread has used. */
  readonly clock: () => number
}

export interface Outcome {
  readonly output: Output
  readonly warnings: ReadonlyArray<Warning>
  readonly lineItems: { readonly applied: boolean; readonly count: number }
}

export interface Failure {
  readonly code: FormatterCode
  readonly stage: FormatterStage
  readonly message: string
  readonly details: FaultDetails
}

const failureOf = (cause: unknown, isConfig: boolean): Failure => {
  // Any other error is a bug of ours. Fails closed for this step only, and does not reveal the exception's message.
  const fault =
    cause instanceof Fault ? cause : new Fault("FORMATTER_INPUT_INVALID", "the operation cannot handle this input")
  const { stage } = formatterCodes[fault.code]
  return {
    code: isConfig && stage === "input" ? "FORMATTER_CONFIG_INVALID" : fault.code,
    stage: isConfig ? "config" : stage === "config" ? "input" : stage,
    message: fault.message,
    details: fault.details
  }
}

const attempt = <A>(make: () => A, isConfig: boolean): Result.Result<A, Failure> => {
  try {
    return Result.succeed(make())
  } catch (cause) {
    return Result.fail(failureOf(cause, isConfig))
  }
}

/** Validates a step's options. */
export const compile = (config: StepConfig): Result.Result<Step, Failure> =>
  attempt(() => {
    const operation = operations.get(config.operation)
    if (operation === undefined) throw new Fault("FORMATTER_UNKNOWN_OPERATION", "there is no such operation")
    const version = config.engine_version ?? engineVersion
    if (!supportedVersions.includes(version)) {
      throw new Fault("FORMATTER_VERSION_UNSUPPORTED", `the versions are ${supportedVersions.join(", ")}`)
    }
    const options = optionsOf(operation, config.options ?? {})
    operation.judge?.(options)
    return {
      operation,
      version,
      options,
      lines: operation.linesFor === null ? operation.lines : operation.linesFor(options),
      inputs: Object.entries(operation.fields).filter(([, { mappable }]) => mappable)
    }
  }, true)

const quiet = { timezone: "UTC", warn: () => {} }

const optionsOf = (operation: Operation, given: Readonly<Record<string, unknown>>): Record<string, unknown> => {
  for (const name of Object.keys(given)) {
    const field = Object.hasOwn(operation.fields, name) ? operation.fields[name] : undefined
    if (field === undefined || field.mappable) {
      const why =
        field === undefined
          ? `there is no such option${didYouMean(name, Object.keys(operation.fields))}`
          : "it is an input, and no option"
      throw new Fault("FORMATTER_CONFIG_INVALID", `${name.slice(0, 64)}: ${why}`, { field: name.slice(0, 64) })
    }
  }
  const options: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(operation.fields)) {
    if (field.mappable) continue
    const value = Object.hasOwn(given, name) ? given[name] : undefined
    const at = { ...quiet, field: name }
    if (value !== undefined && value !== null) options[name] = field.read(value, at)
    else if (field.required) throw new Fault("FORMATTER_CONFIG_INVALID", `${name} is required`, { field: name })
    else options[name] = field.absent(at)
  }
  return options
}

/** Runs a step without pauses. */
export const run = (
  step: Step,
  inputs: Readonly<Record<string, unknown>>,
  context: Context
): Result.Result<Outcome, Failure> => {
  const work = inParts(step, inputs, context)
  for (;;) {
    const part = work.next()
    if (part.done === true) return part.value
  }
}

/**
 * The same, resumable: yields every few milliseconds. It yields after each line item, or more often if the operation does so, and after loading
 * each library.
 */
export function* inParts(
  step: Step,
  inputs: Readonly<Record<string, unknown>>,
  context: Context
): Generator<void, Result.Result<Outcome, Failure>, void> {
  const { operation, options } = step
  const warnings: Array<Warning> = []
  let element = -1
  const warn: Reading["warn"] = (code, message, field) => {
    if (warnings.length < limits.warnings) {
      warnings.push({ code, field: field ?? null, line_item_index: element < 0 ? null : element, message })
    } else if (warnings.length === limits.warnings) {
      warnings.push({ code: "WARNINGS_CAPPED", field: null, line_item_index: null, message: "there are more" })
    }
  }
  for (const library of operation.loads) {
    if (library.isLoaded()) continue
    library()
    yield
  }
  try {
    checkZone(context.timezone, "timezone")
    const { count, valueAt } = linesOf(step, inputs, warn)
    const meter = new Meter()
    let random: (() => number) | null = null
    const call = {
      anchor: context.anchor,
      clock: context.clock,
      warn,
      spend: meter.spend,
      random: () => (random ??= seeded(context.seed, Math.max(element, 0)))()
    }
    const at = { field: "", timezone: context.timezone, warn }
    const once = function* (): Parts {
      meter.begin()
      const values: Record<string, unknown> = { ...options }
      let isEmpty = false
      let length = 0
      for (const [name, field] of step.inputs) {
        const given = valueAt(name, element)
        at.field = name
        if (given === null || given === undefined || (given === "" && field.required && field.type === "integer")) {
          if (field.required && (element < 0 || !field.lines)) {
            throw new Fault("FORMATTER_INPUT_REQUIRED", `${name} is required`, { field: name })
          }
          isEmpty ||= field.required && field.lines
          values[name] = field.absent(at)
        } else {
          length += typeof given === "object" ? charactersIn(given) : typeof given === "string" ? given.length : 0
          isEmpty ||= given === "" && field.required && field.lines
          values[name] = field.read(given, at)
        }
      }
      meter.spend(withinElement(operation, length))
      if (isEmpty) {
        warn("INPUT_EMPTY", "the input is empty", step.inputs[0]?.[0])
        if (operation.empty !== null) return operation.empty
      }
      const made = operation.run(values, call)
      if (!isParts(made)) return made
      for (;;) {
        const part = made.next()
        if (part.done === true) return part.value
        yield
        meter.begin()
      }
    }
    if (count === null) {
      const output = yield* once()
      withinOutput(output)
      return Result.succeed({ output, warnings, lineItems: { applied: false, count: 0 } })
    }
    const outputs: Array<Output> = []
    for (element = 0; element < count; element++) {
      if (element > 0) yield
      outputs.push(yield* once())
    }
    element = -1
    const output = gathered(operation, outputs)
    withinOutput(output)
    return Result.succeed({ output, warnings, lineItems: { applied: true, count } })
  } catch (cause) {
    const failure = failureOf(cause, false)
    const details = element < 0 ? failure.details : { ...failure.details, line_item_index: element }
    return Result.fail({ ...failure, details })
  }
}

const isParts = (made: Output | Parts): made is Parts => Symbol.iterator in made

/** Combines the outputs of all elements: every member becomes a list. */
const gathered = ({ output }: Operation, outputs: ReadonlyArray<Output>): Output => {
  const names = new Set(Object.keys(output["properties"] as object))
  for (const one of outputs) for (const name of Object.keys(one)) names.add(name)
  const members: Array<readonly [string, Output[string]]> = []
  for (const name of names) {
    const column = outputs.map((one) => (Object.hasOwn(one, name) ? one[name]! : null))
    if (outputs.length === 0 || outputs.some((one) => Object.hasOwn(one, name))) members.push([name, column])
  }
  return Object.fromEntries(members)
}
