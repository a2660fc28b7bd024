import { readJson } from "@tidegate/json/JsonText"
import type { Json } from "@tidegate/model/Rule"
import { runToEnd } from "@tidegate/runtime/Resumable"
import { type EdgeState, queuedRun, type RunState, type StepState, untouched } from "./Run.ts"
import { withoutAnswer } from "./StepAnswer.ts"
import type { Resumable, StepAnswer } from "./StepKind.ts"
import type { Workflow } from "./Workflow.ts"

/**
 * The stored form of a run: a journal entry (`Part`) for each commit, with the changes of that commit. Nothing is stored twice
 * unless it changes again, however many steps a run has. The next process restores the run from its journal entries.
 */
export interface Part {
  /** Small, and kept as long as the run's record. */
  readonly progress: Progress
  /** The outputs of steps, and the answers in their errors, by their position; null: nothing new. Kept as long as payloads. */
  readonly outputs: { readonly [step: string]: Output } | null
}

export interface Progress {
  readonly run: Omit<RunState, "steps" | "edges">
  /** Steps by position. Members that are the same as in a step that has not begun are left out: most of them usually are. */
  readonly steps: { readonly [step: string]: Partial<StoredStep> }
  readonly edges: { readonly [edge: string]: EdgeState }
}

/** A step without its output, so that readers who only show it need not read outputs. */
export type StoredStep = Omit<StepState, "output" | "iterations"> & {
  readonly iterations: { readonly count: number; readonly completed: number } | null
  /** The status of the response that its output, or its error, is about. */
  readonly responseStatus: number | null
}

const { output: _output, ...notBegun } = untouched
const plain: StoredStep = { ...notBegun, iterations: null, responseStatus: null }
const members = Object.keys(plain) as ReadonlyArray<keyof StoredStep>

/** Completes a stored step with the members that were left out. */
export const wholeStep = (stored: Partial<StoredStep>): StoredStep => ({ ...plain, ...stored })

/** The progress in a stored journal entry; empty when it cannot be parsed. */
export const progressIn = (text: string): Partial<Progress> => {
  try {
    const progress: unknown = readJson(text)
    return typeof progress === "object" && progress !== null ? progress : {}
  } catch {
    return {}
  }
}

const isPlain = (value: unknown, member: keyof StoredStep): boolean =>
  value === plain[member] || (Array.isArray(value) && value.length === 0)

const storedOf = (step: StepState): Partial<StoredStep> => {
  const stored: Record<string, unknown> = {}
  for (const member of members) {
    const value = storedMember(step, member)
    if (!isPlain(value, member)) stored[member] = value
  }
  return stored
}

const storedMember = (step: StepState, member: keyof StoredStep): unknown => {
  if (member === "responseStatus") return statusOf(step)
  if (member === "error") return step.error === null ? null : withoutAnswer(step.error)
  if (member !== "iterations" || step.iterations === null) return step[member]
  return { count: step.iterations.count, completed: step.iterations.items.length }
}

interface Output {
  /** Present when it has changed. */
  readonly output?: Json
  /** For a step that runs for a list: the outputs since, and how many there were before. */
  readonly after?: number
  readonly items?: ReadonlyArray<Json>
  /** The answer in its error when it has changed; null: there is none any more. */
  readonly answer?: StepAnswer | null
}

/** The changes between two states of one run. */
export const partOf = (before: RunState, after: RunState): Part => {
  const steps: Record<string, Partial<StoredStep>> = {}
  const outputs: Record<string, Output> = {}
  const edges: Record<string, EdgeState> = {}
  let hasGiven = false
  for (let i = 0; i < after.steps.length; i++) {
    const step = after.steps[i]!
    const was = before.steps[i]!
    if (step === was) continue
    steps[i] = storedOf(step)
    const given = outputOf(was, step)
    if (given === null) continue
    outputs[i] = given
    hasGiven = true
  }
  for (let i = 0; i < after.edges.length; i++) if (after.edges[i] !== before.edges[i]) edges[i] = after.edges[i]!
  const { edges: _edges, steps: _steps, ...run } = after
  return { progress: { run, steps, edges }, outputs: hasGiven ? outputs : null }
}

const statusOf = ({ error, output }: StepState): number | null => {
  const status = error === null ? (output as { readonly status?: unknown } | null)?.status : error.status
  return typeof status === "number" ? status : null
}

/** The outputs of steps as text, one line each, so that nobody has to read or write all of it at once. Null: nothing. */
export function* linesOf(outputs: Part["outputs"]): Resumable<string | null> {
  if (outputs === null) return null
  const lines: Array<string> = []
  for (const entry of Object.entries(outputs)) {
    lines.push(JSON.stringify(entry))
    yield
  }
  return lines.join("\n")
}

/** Parses the text of outputs. */
export function* outputsIn(lines: string | null): Resumable<Part["outputs"]> {
  if (lines === null) return null
  const entries: Array<readonly [step: string, output: Output]> = []
  for (const line of lines.split("\n")) {
    entries.push(readJson(line) as readonly [string, Output])
    yield
  }
  return Object.fromEntries(entries)
}

const outputOf = (was: StepState, { error, iterations, output }: StepState): Output | null => {
  const isNew = output !== was.output
  // A step that runs again starts its list again.
  const before = was.iterations ?? { items: [] }
  const known = iterations === null ? 0 : Math.min(before.items.length, iterations.items.length)
  const isGoingOn = iterations !== null && iterations.items.slice(0, known).every((item, i) => item === before.items[i])
  const after = isGoingOn ? known : 0
  const items = iterations === null ? [] : iterations.items.slice(after)
  const isListed = items.length > 0 || (iterations !== null && after < before.items.length)
  const answer = error === null || error.response === was.error?.response ? undefined : (error.response ?? null)
  if (!isNew && !isListed && answer === undefined) return null
  return {
    ...(isNew ? { output } : {}),
    ...(isListed ? { after, items } : {}),
    ...(answer === undefined ? {} : { answer })
  }
}

/** Journal entries between two yields. */
const partsAtOnce = 100

/**
 * The state of a run with these journal entries, in their order, applied to an earlier state; a list step has several entries for
 * each element. Outputs that retention has removed are null.
 */
export function* folding(
  workflow: Workflow,
  parts: ReadonlyArray<Part>,
  begun: RunState = queuedRun(workflow)
): Resumable<RunState> {
  const steps = [...begun.steps]
  const edges = [...begun.edges]
  let run: Progress["run"] = begun
  for (const [part, { outputs, progress }] of parts.entries()) {
    if (part % partsAtOnce === partsAtOnce - 1) yield
    run = progress.run
    for (const [edge, state] of Object.entries(progress.edges)) edges[Number(edge)] = state
    for (const [at, stored] of Object.entries(progress.steps)) {
      const i = Number(at)
      const { iterations, responseStatus: _, ...rest } = wholeStep(stored)
      const was = steps[i]!
      const given = outputs?.[at] ?? {}
      const { after = was.iterations?.items.length ?? 0, items = [], output = was.output } = given
      const { answer = was.error?.response ?? null } = given
      const kept = (was.iterations?.items ?? []).slice(0, after)
      steps[i] = {
        ...rest,
        error: rest.error === null || answer === null ? rest.error : { ...rest.error, response: answer },
        output: rest.status === "pending" ? null : output,
        iterations: iterations === null ? null : { count: iterations.count, items: [...kept, ...items] }
      }
    }
  }
  const { held, finishedAt, outcome, startedAt, status, stopped } = run
  return { status, outcome, held, stopped, steps, edges, startedAt, finishedAt }
}

/** The same as `folding`, in one go. */
export const stateOf = (...given: Parameters<typeof folding>): RunState => runToEnd(folding(...given))
