import type { Json } from "@tidegate/model/Rule"
import { jsonLengthWithin } from "@tidegate/templates/JsonLength"
import type { Mapping } from "@tidegate/templates/Mapping"
import { limits } from "./Limits.ts"
import { contextOf, type Facts, type Occurrence, type RunState, type Start } from "./Run.ts"
import type { SecretTexts } from "./SecretTexts.ts"
import type { Context, Outcome, Parts, StepError, Time, Warning } from "./StepKind.ts"
import type { PlannedStep, Workflow } from "./Workflow.ts"

/** What a step that starts is given, and what comes of one that stays within the process. */

export interface Inputs {
  readonly values: { readonly [input: string]: Json }
  readonly warnings: ReadonlyArray<Warning>
}

/** A step that somebody else carries out, with its inputs. */
export interface Effect {
  readonly start: Start
  readonly step: PlannedStep
  readonly inputs: Inputs
  readonly context: Context
}

export type Performed =
  /** `inputs`: what the step was given, where it came so far. */
  | { readonly kind: "occurred"; readonly occurrence: Occurrence; readonly inputs?: Inputs["values"] }
  | { readonly kind: "effect"; readonly effect: Effect }

/** Begins `start`, in parts: what occurred, where nothing has to leave the process for it. `texts`: what is secret in the run. */
export function* perform(
  workflow: Workflow,
  facts: Facts,
  state: RunState,
  start: Start,
  time: Time,
  texts: SecretTexts
): Parts<Performed> {
  const step = workflow.plan[start.step]!
  const context = contextOf(workflow, facts, state.steps, step.ancestors)
  const list = step.forEach === null ? null : listOf(step.forEach, context)
  if (list !== null && !Array.isArray(list)) return refused(start, list as StepError)
  if (list !== null && start.iteration === null) {
    return { kind: "occurred", occurrence: { type: "expanded", step: start.step, count: list.length } }
  }
  const within = list === null ? context : { ...context, item: list[start.iteration!]!, item_index: start.iteration! }
  const inputs = inputsOf(workflow, state, step, within)
  if ("code" in inputs) return refused(start, inputs)
  if (step.evaluate === null) return { kind: "effect", effect: { start, step, inputs, context: within } }
  const outcome = step.evaluate({ context: within, inputs: inputs.values, time })
  const occurrence = yield* occurred(start, "kind" in outcome ? outcome : yield* outcome, inputs, texts)
  return { kind: "occurred", occurrence, inputs: inputs.values }
}

/** A failure in our own words. */
const refused = ({ attempt, iteration, step }: Start, error: StepError): Performed => ({
  kind: "occurred",
  occurrence: { type: "failed", step, attempt, iteration, error, random: 0, warnings: [] }
})

/** Of a text that is longer nobody looks for secrets in the rest, which is left out. */
const longestLookedAt = 4 * limits.messageLength

function* told(message: string, texts: SecretTexts): Parts<string> {
  const shown = yield* texts.message(message.slice(0, longestLookedAt))
  return shown.slice(0, limits.messageLength).toWellFormed()
}

/**
 * What came of a step's attempt, as something that occurred. What its output may be is bounded here, whoever made it; and what its failure and its
 * warnings say, in the words of code and of targets, is without what is secret in the run, `texts`, wherever it goes from here.
 */
export function* occurred(
  { attempt, iteration, step }: Start,
  outcome: Outcome,
  inputs: Inputs,
  texts: SecretTexts,
  random = 0
): Parts<Occurrence> {
  if (outcome.kind === "waits") return { type: "waiting", step, until: outcome.until, output: outcome.output }
  const warnings = [...inputs.warnings, ...(outcome.warnings ?? [])].slice(0, limits.warnings)
  const size = outcome.kind === "failed" ? null : jsonLengthWithin(outcome.output, limits.valueLength)
  if (outcome.kind === "succeeded" && size !== null) yield* texts.learn(outcome.output)
  // What a template has put under a secret name for this step alone.
  if (outcome.kind === "failed" || warnings.some(({ message }) => message !== undefined)) {
    yield* texts.learn(inputs.values)
    for (const [i, warning] of warnings.entries()) {
      if (warning.message !== undefined) {
        warnings[i] = Object.assign({}, warning, { message: yield* told(warning.message, texts) })
      }
    }
  }
  if (outcome.kind === "failed") {
    const error = { ...outcome.error, message: yield* told(outcome.error.message, texts) }
    return { type: "failed", step, attempt, iteration, error, random, warnings }
  }
  if (size === null) {
    const error = { code: "OUTPUT_TOO_LARGE", message: `the output is longer than ${limits.valueLength} characters` }
    return { type: "failed", step, attempt, iteration, error, random, warnings }
  }
  const { output, ports } = outcome
  return { type: "succeeded", step, attempt, iteration, output, size, ports, warnings }
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

/** The step's own inputs, and over them what the edges that were taken bring along, in their order. */
const inputsOf = (
  { planEdges }: Workflow,
  state: RunState,
  step: PlannedStep,
  context: Context
): Inputs | StepError => {
  const mappings = [
    { at: "resource_id", mapping: step.saved },
    { at: "invocation_inputs", mapping: step.inputs },
    ...step.incoming.flatMap((edge) =>
      state.edges[edge] === "taken" ? [{ at: planEdges[edge]!.edge.id, mapping: planEdges[edge]!.mapping }] : []
    )
  ]
  let values: { readonly [input: string]: Json } = {}
  const warnings: Array<Warning> = []
  for (const { at, mapping } of mappings) {
    if (mapping === null) continue
    const resolved = mapping.resolve(context as unknown as Readonly<Record<string, unknown>>)
    if (resolved.kind === "too_large") return tooLarge
    values = Object.fromEntries([...Object.entries(values), ...Object.entries(resolved.value as object)])
    for (const path of resolved.missing) {
      const shown = step.action?.bind?.shown(path) ?? path
      warnings.push({ code: "TEMPLATE_VALUE_MISSING", field: `${at}.${shown}` })
    }
  }
  if (jsonLengthWithin(values, limits.valueLength) === null) return tooLarge
  const missing = step.action?.required.find((input) => (values[input] ?? null) === null)
  return missing === undefined
    ? { values, warnings }
    : { code: "INPUT_REQUIRED", message: `the input ${missing} has no value` }
}
