import type { Json } from "@tidegate/model/Rule"
import { jsonLengthWithin } from "@tidegate/interpolation/JsonLength"
import { define, type Mapping } from "@tidegate/interpolation/Mapping"
import { limits } from "./Limits.ts"
import { contextOf, type Facts, type Occurrence, type RunState, type Start } from "./RunState.ts"
import { mayTeach, type SecretTexts } from "./SecretTexts.ts"
import { maskedAnswer } from "./StepAnswer.ts"
import type { ApartTask, Context, Outcome, Resumable, StepError, Time, Warning } from "./StepKind.ts"
import type { PlannedStep, Workflow } from "./Workflow.ts"

/** The inputs of a step that starts, and the result of a step within the process. */

export interface Inputs {
  readonly values: { readonly [input: string]: Json }
  readonly warnings: ReadonlyArray<Warning>
}

/** A step for others to carry out, with its inputs. */
export interface Effect {
  readonly start: Start
  readonly step: PlannedStep
  readonly inputs: Inputs
  readonly context: Context
  /** When the step began (Unix ms): the same for its attempts, also after a crash. */
  readonly startedAt: number
  /** For a step within the process: a task for another thread. */
  readonly apart?: ApartTask
}

export type Performed =
  /** `inputs`: the step's inputs, if they were resolved. */
  | { readonly kind: "occurred"; readonly occurrence: Occurrence; readonly inputs?: Inputs["values"] }
  | { readonly kind: "effect"; readonly effect: Effect }

/** The lists of steps that run for one, by their position: a list stays fixed while its step runs. */
export type Lists = Map<number, ReadonlyArray<Json> | StepError>

/**
 * Begins `start`, as resumable work. Returns an occurrence when the step need not leave the process. `texts`: the secrets in the
 * run; `lists`: the known lists.
 */
export function* perform(
  workflow: Workflow,
  facts: Facts,
  state: RunState,
  start: Start,
  time: Time,
  texts: SecretTexts,
  lists: Lists = new Map()
): Resumable<Performed> {
  const step = workflow.plan[start.step]!
  const context = contextOf(workflow, facts, state.steps, step.ancestors)
  const list = step.forEach === null ? null : (lists.get(start.step) ?? listOf(step.forEach, context))
  if (list !== null) lists.set(start.step, list)
  if (list !== null && !Array.isArray(list)) return refused(start, list as StepError)
  if (list !== null && start.iteration === null) {
    return { kind: "occurred", occurrence: { type: "expanded", step: start.step, count: list.length } }
  }
  const within = list === null ? context : { ...context, item: list[start.iteration!]!, item_index: start.iteration! }
  const inputs = inputsOf(workflow, state, step, within)
  if ("code" in inputs) return refused(start, inputs)
  const startedAt = state.steps[start.step]!.startedAt ?? time.now
  const effect = { start, step, inputs, context: within, startedAt }
  if (step.evaluate === null) return { kind: "effect", effect }
  const evaluation = { context: within, inputs: inputs.values, time }
  const apart = step.apart?.(evaluation) ?? null
  if (apart !== null) return { kind: "effect", effect: { ...effect, apart } }
  const outcome = step.evaluate(evaluation)
  const made = occurred(start, "kind" in outcome ? outcome : yield* outcome, inputs, texts)
  return { kind: "occurred", occurrence: "type" in made ? made : yield* made, inputs: inputs.values }
}

/** A failure with the gateway's own message. */
const refused = ({ attempt, iteration, step }: Start, error: StepError): Performed => ({
  kind: "occurred",
  occurrence: { type: "failed", step, attempt, iteration, error, random: 0, warnings: [] }
})

/** Secrets are searched only in this much of a text; the rest of a longer text is left out. */
const longestLookedAt = 4 * limits.messageLength

function* withoutSecrets(message: string, texts: SecretTexts): Resumable<string> {
  const shown = yield* texts.message(message.slice(0, longestLookedAt))
  return shown.slice(0, limits.messageLength).toWellFormed()
}

/**
 * Converts the result of a step's attempt to an occurrence: at once, or as resumable work if secrets have to be looked for. Here
 * the output is limited, whoever made it. The messages of failures and warnings, by code and targets, get the run's secrets
 * (`texts`) masked before they go anywhere.
 */
export const occurred = (
  start: Start,
  outcome: Outcome,
  inputs: Inputs,
  texts: SecretTexts,
  random = 0
): Occurrence | Resumable<Occurrence> => {
  const { attempt, iteration, step } = start
  if (outcome.kind === "waits") {
    const { output, portsLate, until } = outcome
    return { type: "waiting", step, until, output, ...(portsLate === undefined ? {} : { portsLate }) }
  }
  const warnings = joined(inputs.warnings, outcome.warnings ?? noWarnings)
  if (outcome.kind === "failed" || warnings.length > 0 || mayTeach(outcome.output)) {
    return looked(start, outcome, inputs, texts, warnings, random)
  }
  const size = jsonLengthWithin(outcome.output, limits.valueLength)
  if (size === null) return tooLong(start, random, warnings)
  const { output, ports } = outcome
  return { type: "succeeded", step, attempt, iteration, output, size, ports, warnings }
}

/** The failure of an attempt whose output is too long. */
const tooLong = ({ attempt, iteration, step }: Start, random: number, warnings: ReadonlyArray<Warning>): Occurrence => {
  const error = { code: "OUTPUT_TOO_LARGE", message: `the output is longer than ${limits.valueLength} characters` }
  return { type: "failed", step, attempt, iteration, error, random, warnings }
}

/** The occurrence of a result that may contain secrets. */
function* looked(
  start: Start,
  outcome: Exclude<Outcome, { kind: "waits" }>,
  inputs: Inputs,
  texts: SecretTexts,
  warnings: Array<Warning>,
  random: number
): Resumable<Occurrence> {
  const { attempt, iteration, step } = start
  const size = outcome.kind === "failed" ? null : jsonLengthWithin(outcome.output, limits.valueLength)
  if (outcome.kind === "succeeded" && size !== null) yield* texts.learn(outcome.output)
  // Values that a template has put under a secret name for this step only.
  if (outcome.kind === "failed" || warnings.some(({ message }) => message !== undefined)) {
    yield* texts.learn(inputs.values)
    for (const [i, warning] of warnings.entries()) {
      if (warning.message !== undefined) {
        warnings[i] = Object.assign({}, warning, { message: yield* withoutSecrets(warning.message, texts) })
      }
    }
  }
  const all = warnings.length === 0 ? warnings : warnings.map(bounded)
  if (outcome.kind === "failed") {
    const code = outcome.error.code.slice(0, limits.codeLength).toWellFormed()
    const { response, ...rest } = outcome.error
    const message = yield* withoutSecrets(outcome.error.message, texts)
    const answer = response === undefined ? {} : { response: yield* maskedAnswer(response, texts) }
    const error = { ...rest, code, message, ...answer }
    return { type: "failed", step, attempt, iteration, error, random, warnings: all }
  }
  if (size === null) return tooLong(start, random, all)
  const { output, ports } = outcome
  return { type: "succeeded", step, attempt, iteration, output, size, ports, warnings: all }
}

const noWarnings: ReadonlyArray<Warning> = []

const joined = (first: ReadonlyArray<Warning>, second: ReadonlyArray<Warning>): Array<Warning> =>
  first.length + second.length === 0 ? [] : [...first, ...second].slice(0, limits.warnings)

/** The place and the message of a warning contain names that users wrote, which may be long. */
const bounded = (warning: Warning): Warning => {
  const { field, message } = warning
  const most = limits.warningLength
  if ((field?.length ?? 0) <= most && (message?.length ?? 0) <= most) return warning
  return {
    ...warning,
    field: field?.slice(0, most).toWellFormed() ?? null,
    ...(message === undefined ? {} : { message: message.slice(0, most).toWellFormed() })
  }
}

const tooLarge: StepError = {
  code: "INPUT_TOO_LARGE",
  message: `the inputs are longer than ${limits.valueLength} characters`
}

const listOf = (forEach: Mapping, context: Context): ReadonlyArray<Json> | StepError => {
  const resolved = forEach.resolve(context as unknown as Readonly<Record<string, unknown>>)
  if (resolved.kind === "too_large") return tooLarge
  if (!Array.isArray(resolved.value)) return { code: "FOR_EACH_NOT_ARRAY", message: "for_each did not give a list" }
  return resolved.value.length > limits.iterations
    ? { code: "FOR_EACH_TOO_LARGE", message: `for_each gave more than ${limits.iterations} elements` }
    : resolved.value
}

/** The step's own inputs, overridden by those of the taken edges, in their order. */
const inputsOf = (
  { planEdges }: Workflow,
  state: RunState,
  step: PlannedStep,
  context: Context
): Inputs | StepError => {
  const values: { [input: string]: Json } = {}
  const warnings: Array<Warning> = []
  /** Adds a mapping; returns whether its values could be resolved. */
  const add = (at: string, mapping: Mapping | null): boolean => {
    if (mapping === null) return true
    const resolved = mapping.resolve(context as unknown as Readonly<Record<string, unknown>>)
    if (resolved.kind === "too_large") return false
    const given = resolved.value as { readonly [input: string]: Json }
    for (const name of Object.keys(given)) define(values, name, given[name]!)
    for (const path of resolved.missing) {
      const shown = step.action?.bind?.shown(path) ?? path
      const message = "a template stands for nothing"
      warnings.push({ code: "TEMPLATE_VALUE_MISSING", field: `${at}.${shown}`, line_item_index: null, message })
    }
    return true
  }
  if (!add("resource_id", step.saved) || !add("invocation_inputs", step.inputs)) return tooLarge
  for (const edge of step.incoming) {
    const { edge: taken, mapping } = planEdges[edge]!
    if (state.edges[edge] === "taken" && !add(taken.id, mapping)) return tooLarge
  }
  if (jsonLengthWithin(values, limits.valueLength) === null) return tooLarge
  const missing = step.action?.required.find((input) => (values[input] ?? null) === null)
  return missing === undefined
    ? { values, warnings }
    : { code: "INPUT_REQUIRED", message: `the input ${missing} has no value` }
}
