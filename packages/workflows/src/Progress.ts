import { readJson } from "@tidegate/json/JsonText"
import type { Json } from "@tidegate/model/Rule"
import { runToEnd } from "@tidegate/runtime/Resumable"
import {
  type EdgeState,
  type ElementNote,
  type ElementUnderWay,
  queuedRun,
  type RunState,
  type StepState,
  untouched
} from "./RunState.ts"
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
  readonly iterations: StoredIterations | null
  /** The status of the response that its output, or its error, is about. */
  readonly responseStatus: number | null
}

/** A list's progress: how many elements ended, and what is new since the last journal entry. */
export interface StoredIterations {
  readonly count: number
  readonly completed: number
  /** The elements that have to be called again: they do not count as ended any more. */
  readonly open?: ReadonlyArray<number>
  readonly notes?: ReadonlyArray<ElementNote>
  /** Of a list whose elements are called beside each other: those under way, and the number of elements up to the last that ended. */
  readonly under?: ReadonlyArray<ElementUnderWay>
  readonly length?: number
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

const storedOf = (was: StepState, step: StepState): Partial<StoredStep> => {
  const stored: Record<string, unknown> = {}
  for (const member of members) {
    const value = storedMember(was, step, member)
    if (!isPlain(value, member)) stored[member] = value
  }
  return stored
}

const storedMember = (was: StepState, step: StepState, member: keyof StoredStep): unknown => {
  if (member === "responseStatus") return statusOf(step)
  if (member === "error") return step.error === null ? null : withoutAnswer(step.error)
  if (member !== "iterations" || step.iterations === null) return step[member]
  const { count, items, notes, under } = step.iterations
  const known = knownItems(was, step)
  const before = new Set(was.iterations?.notes)
  const forgotten = new Set(before.values().map(({ index }) => index))
  for (const { index } of notes) forgotten.delete(index)
  const open: Array<number> = []
  let completed = 0
  for (let i = 0; i < items.length; i++) {
    if (items[i] !== undefined) completed++
    else if (i >= known.length || known[i] !== undefined || forgotten.has(i)) open.push(i)
  }
  const added = notes.filter((note) => !before.has(note))
  return {
    count,
    completed,
    ...(open.length === 0 ? {} : { open }),
    ...(added.length === 0 ? {} : { notes: added }),
    ...(under === undefined ? {} : { under, length: items.length })
  }
}

/** The outputs of a list's elements that earlier journal entries have; none for a step that runs its list again from the start. */
const knownItems = (was: StepState, { iterations }: Pick<StepState, "iterations">): ReadonlyArray<Json | undefined> => {
  if (iterations === null || was.iterations === null) return []
  const { items } = iterations
  const isSame = (item: Json | undefined, i: number): boolean =>
    item === items[i] || item === undefined || items[i] === undefined
  return was.iterations.items.every(isSame) ? was.iterations.items : []
}

interface Output {
  /** Present when it has changed. */
  readonly output?: Json
  /** For a step that runs for a list: the outputs since, and how many there were before. */
  readonly after?: number
  /** Null in the place of an element that is open. */
  readonly items?: ReadonlyArray<Json>
  /** The outputs of elements that were open. */
  readonly filled?: ReadonlyArray<readonly [index: number, output: Json]>
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
    steps[i] = storedOf(was, step)
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

/** A progress as JSON. It is made of its members, because `JSON.stringify` is slow with objects whose names are numbers. */
export const progressText = ({ edges, run, steps }: Progress): string =>
  `{"run":${JSON.stringify(run)},"steps":${membersText(steps)},"edges":${membersText(edges)}}`

const membersText = (by: { readonly [at: string]: Partial<StoredStep> | EdgeState }): string => {
  const written: Array<string> = []
  for (const at of Object.keys(by)) written.push(`"${at}":${JSON.stringify(by[at])}`)
  return `{${written.join(",")}}`
}

/** The outputs of steps as text, one line each, so that nobody has to read or write all of it at once. Null: nothing. */
export function* linesOf(outputs: Part["outputs"]): Resumable<string | null> {
  if (outputs === null) return null
  const lines: Array<string> = []
  for (const at of Object.keys(outputs)) {
    lines.push(lineOf(at, outputs[at]!))
    yield
  }
  return lines.join("\n")
}

/** The line of one step. `text`: its output as JSON, if that is known. */
export const lineOf = (at: string, given: Output, text?: string): string => {
  const { answer, output } = given
  const isAlone = answer === undefined && output !== undefined && !isOfList(given)
  return isAlone ? `["${at}",{"output":${text ?? JSON.stringify(output)}}]` : JSON.stringify([at, given])
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
  const list = iterations === null ? null : listOf(was, iterations)
  const answer = error === null || error.response === was.error?.response ? undefined : (error.response ?? null)
  if (list === null && answer === undefined) return isNew ? { output } : null
  return { ...(isNew ? { output } : {}), ...list, ...(answer === undefined ? {} : { answer }) }
}

/** What is new in the outputs of a list; null: nothing. */
const listOf = (
  was: StepState,
  iterations: NonNullable<StepState["iterations"]>
): Pick<Output, "after" | "items" | "filled"> | null => {
  const known = knownItems(was, { iterations })
  const items = iterations.items.slice(known.length).map((item) => item ?? null)
  const filled: Array<readonly [number, Json]> = []
  for (let i = 0; i < known.length; i++) {
    if (known[i] === undefined && iterations.items[i] !== undefined) filled.push([i, iterations.items[i]!])
  }
  // A step that runs again starts its list again.
  const isListed = items.length > 0 || known.length < (was.iterations?.items.length ?? 0)
  if (!isListed && filled.length === 0) return null
  return { ...(isListed ? { after: known.length, items } : {}), ...(filled.length === 0 ? {} : { filled }) }
}

const isOfList = ({ filled, items }: Output): boolean => items !== undefined || filled !== undefined

/** Whether it is more than the answer in an error. */
export const hasOutput = (given: Output): boolean => given.output !== undefined || isOfList(given)

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
      const { answer = was.error?.response ?? null, output = was.output } = given
      steps[i] = {
        ...rest,
        error: rest.error === null || answer === null ? rest.error : { ...rest.error, response: answer },
        output: rest.status === "pending" && rest.early === null ? null : output,
        iterations: iterations === null ? null : foldedList(was, iterations, given)
      }
    }
  }
  const { held, finishedAt, outcome, startedAt, status, stopped } = run
  return { status, outcome, held, stopped, steps, edges, startedAt, finishedAt }
}

const foldedList = (
  { iterations: was }: StepState,
  { count, notes = [], open = [], under }: StoredIterations,
  { after = was?.items.length ?? 0, filled = [], items: added = [] }: Output
): StepState["iterations"] => {
  const items: Array<Json | undefined> = [...(was?.items ?? []).slice(0, after), ...added]
  for (const [index, output] of filled) items[index] = output
  for (const index of open) items[index] = undefined
  const kept = (was?.notes ?? []).filter(({ index }) => !open.includes(index))
  return { count, items, notes: [...kept, ...notes], ...(under === undefined ? {} : { under }) }
}

/** The same as `folding`, in one go. */
export const stateOf = (...given: Parameters<typeof folding>): RunState => runToEnd(folding(...given))
