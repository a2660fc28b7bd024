import type { Json } from "@tidegate/model/Rule"
import { jsonLengthWithin } from "@tidegate/templates/JsonLength"
import type { Mapping } from "@tidegate/templates/Mapping"
import { limits } from "./Limits.ts"
import { contextOf, type Facts, type Occurrence, type RunState, type Start } from "./Run.ts"
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

/** Lists of steps that run for one, by their position: while a step runs, what it was made of stays as it is. */
export type Lists = Map<number, ReadonlyArray<Json> | StepError>

/** Begins `start`, in parts: what occurred, where nothing has to leave the process for it. `lists`: those that are known already. */
export function* perform(
  workflow: Workflow,
  facts: Facts,
  state: RunState,
  start: Start,
  time: Time,
  lists: Lists = new Map()
): Parts<Performed> {
  const step = workflow.plan[start.step]!
  const context = contextOf(workflow, facts, state.steps, step.ancestors)
  const refused = (error: StepError): Performed => occurred(start, { kind: "failed", error })
  const list = step.forEach === null ? null : (lists.get(start.step) ?? listOf(step.forEach, context))
  if (list !== null) lists.set(start.step, list)
  if (list !== null && !Array.isArray(list)) return refused(list as StepError)
  if (list !== null && start.iteration === null) {
    return { kind: "occurred", occurrence: { type: "expanded", step: start.step, count: list.length } }
  }
  const within = list === null ? context : { ...context, item: list[start.iteration!]!, item_index: start.iteration! }
  const inputs = inputsOf(workflow, state, step, within)
  if ("code" in inputs) return refused(inputs)
  if (step.evaluate === null) return { kind: "effect", effect: { start, step, inputs, context: within } }
  const outcome = step.evaluate({ context: within, inputs: inputs.values, time })
  const { occurrence } = occurred(start, "kind" in outcome ? outcome : yield* outcome, inputs.warnings)
  return { kind: "occurred", occurrence, inputs: inputs.values }
}

/** What came of a step's attempt, as something that occurred. What its output may be is bounded here, whoever made it. */
export const occurred = (
  { attempt, iteration, step }: Start,
  outcome: Outcome,
  warnings: ReadonlyArray<Warning> = [],
  random = 0
): Extract<Performed, { readonly kind: "occurred" }> => {
  if (outcome.kind === "waits") {
    return { kind: "occurred", occurrence: { type: "waiting", step, until: outcome.until, output: outcome.output } }
  }
  const all = [...warnings, ...(outcome.warnings ?? [])].slice(0, limits.warnings).map(bounded)
  if (outcome.kind === "failed") {
    const { code, message } = outcome.error
    const error = {
      ...outcome.error,
      code: code.slice(0, limits.codeLength).toWellFormed(),
      message: message.slice(0, limits.messageLength).toWellFormed()
    }
    return { kind: "occurred", occurrence: { type: "failed", step, attempt, iteration, error, random, warnings: all } }
  }
  const size = jsonLengthWithin(outcome.output, limits.valueLength)
  if (size === null) {
    const error = { code: "OUTPUT_TOO_LARGE", message: `the output is longer than ${limits.valueLength} characters` }
    return { kind: "occurred", occurrence: { type: "failed", step, attempt, iteration, error, random, warnings: all } }
  }
  const { output, ports } = outcome
  return {
    kind: "occurred",
    occurrence: { type: "succeeded", step, attempt, iteration, output, size, ports, warnings: all }
  }
}

/** Where a warning belongs and what it says is made of names that somebody has written, as long as they like. */
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
      const message = "a template stands for nothing"
      warnings.push({ code: "TEMPLATE_VALUE_MISSING", field: `${at}.${shown}`, line_item_index: null, message })
    }
  }
  if (jsonLengthWithin(values, limits.valueLength) === null) return tooLarge
  const missing = step.action?.required.find((input) => (values[input] ?? null) === null)
  return missing === undefined
    ? { values, warnings }
    : { code: "INPUT_REQUIRED", message: `the input ${missing} has no value` }
}
