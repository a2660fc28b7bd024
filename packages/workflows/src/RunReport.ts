import { derivedId, idTime, prefixes } from "@tidegate/model/Ids"
import type {
  ElementExecution,
  FailureRun,
  PayloadPreview,
  RunStatus,
  RunTrigger,
  StepAttempt,
  StepExecution,
  StepSummary,
  VersionEvidence,
  WorkflowRun,
  WorkflowRunDetail
} from "@tidegate/model/WorkflowRun"
import type { RunTriggerType } from "@tidegate/model/WorkflowTriggers"
import { shownOf } from "@tidegate/redaction/Redaction"
import { undoneBy } from "./Compensation.ts"
import type { Edge, Step } from "./Definition.ts"
import { sorted } from "./Graph.ts"
import { limits } from "./Limits.ts"
import { progressIn, type StoredStep, wholeStep } from "./Progress.ts"
import type { EdgeState, ElementNote, RunState } from "./RunState.ts"
import { defaultRetries } from "./Settings.ts"
import type { StepAnswer, StepError } from "./StepKind.ts"
import { hasBegunUndo, isLeftToUndo } from "./Undo.ts"

/**
 * A run as people see it, from its row and its journal entries. It reads no outputs of steps: previews were made when those were
 * stored.
 */

/** The row of a run. */
export interface RunRecord {
  readonly id: string
  readonly workflow_id: string
  readonly request_id: string
  readonly version: number
  readonly label: string | null
  readonly status: RunStatus
  readonly outcome: RunState["outcome"]
  readonly attempts: number
  readonly steps_count: number
  readonly succeeded_steps: number
  readonly failed_steps: number
  readonly skipped_steps: number
  readonly running_steps: number
  readonly error_code: string | null
  readonly error_message: string | null
  readonly error_step_id: string | null
  readonly started_at: Date | null
  readonly finished_at: Date | null
  readonly created_at: Date
  readonly updated_at: Date
  /** Null or absent: a request. */
  readonly trigger?: Exclude<RunTriggerType, "request"> | null
  readonly rerun_of?: string | null
  readonly on_failure?: FailureRun | null
}

const longestMessage = 2_000

/** Masks secrets in error messages: targets and code write anything into them. */
export const masked = (): ((message: string) => string) => {
  const shown = shownOf()
  return (message) => shown("message", message.slice(0, longestMessage).toWellFormed()) as string
}

const lasted = (from: number | null, to: number | null): number | null =>
  from === null || to === null ? null : Math.max(0, to - from)

const written = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString())

/** `held`: its workflow is paused. */
export const runOf = (run: RunRecord, held: boolean): WorkflowRun => ({
  id: run.id,
  workflow_id: run.workflow_id,
  request_id: run.request_id,
  run_type: "workflow",
  label: run.label,
  trigger_type: run.trigger ?? "request",
  status: run.status,
  outcome: run.outcome,
  workflow_version: run.version,
  attempt_count: run.attempts,
  error_code: run.error_code,
  error_message: run.error_message === null ? null : masked()(run.error_message),
  error_step_id: run.error_step_id,
  hold_reason: held && run.finished_at === null ? "paused" : null,
  steps_count: run.steps_count,
  succeeded_steps: run.succeeded_steps,
  failed_steps: run.failed_steps,
  skipped_steps: run.skipped_steps,
  pending_steps: Math.max(
    0,
    run.steps_count - run.succeeded_steps - run.failed_steps - run.skipped_steps - run.running_steps
  ),
  running_steps: run.running_steps,
  started_at: run.started_at?.toISOString() ?? null,
  finished_at: run.finished_at?.toISOString() ?? null,
  duration_ms: lasted(run.started_at?.getTime() ?? null, run.finished_at?.getTime() ?? null),
  created_at: run.created_at.toISOString(),
  updated_at: run.updated_at.toISOString(),
  rerun_of: run.rerun_of ?? null,
  on_failure: run.on_failure ?? null
})

/** A journal entry as it is stored. */
export interface ReportedPart {
  readonly part: number
  /** When it was stored (Unix ms). */
  readonly at: number
  /** JSON, of `Progress`. */
  readonly steps: string
}

/** The previews of a step. */
export interface StepPreviews {
  readonly input: PayloadPreview | null
  readonly output: PayloadPreview | null
  /** The answers of the calls that were refused, by the journal entries that have them; null: the last one was replaced by none. */
  readonly answers: ReadonlyMap<number, StepAnswer | null>
}

/** The previews of the step at a position; null: not requested. */
export type PreviewsOf = (index: number) => StepPreviews | null

interface Attempt {
  readonly number: number
  readonly startedAt: number
  finished: {
    readonly at: number
    readonly part: number
    readonly status: "succeeded" | "failed"
    readonly error: StepError | null
  } | null
}

interface Known {
  state: StoredStep | null
  attempts: Array<Attempt>
  /** The journal entry with which it was last started again; earlier entries belong to an earlier execution of the step. */
  since: number
  /** The journal entries in which it began to run, and ended. */
  begunIn: number | null
  endedIn: number | null
  /** Of the elements of its list: what is known beside their number, and which are to be called again. */
  notes: Map<number, ElementNote>
  open: Set<number>
}

/** Elements of lists shown in one answer: those of ten full lists. */
const maxElements = 5_000

/** Attempts shown for one step. */
const maxAttempts = 50

const resourceTypes: Readonly<Record<string, string>> = {
  act: "action",
  des: "destination",
  trs: "transformation",
  flt: "filter"
}

/** The parts of a definition that are needed here: every stored definition has them. */
export interface Outline {
  readonly steps: ReadonlyArray<Pick<Step, "id" | "kind" | "name" | "resource_id" | "config">>
  readonly edges: ReadonlyArray<
    Pick<Edge, "source_type" | "source_step_id" | "source_port" | "target_step_id" | "position"> &
      Partial<Pick<Edge, "condition">>
  >
}

/** The report about a run's steps from its journal entries. To be given in their order; some in the middle may be left out. */
export class StepReports {
  readonly #runId: string
  /** In the order in which they are started. */
  readonly #steps: Outline["steps"]
  readonly #edges: Outline["edges"]
  /** By the ids of compensations: those of the steps that they undo. */
  readonly #undone: ReadonlyMap<string, string>
  readonly #known: ReadonlyArray<Known>
  readonly #edgeStates: Array<EdgeState | undefined> = []
  /** When they reached their status (Unix ms). */
  readonly #settledAt: Array<number> = []
  readonly #masked = masked()
  /** Whether the run was stopped from outside: then no element of a list has to have failed where a list ended. */
  #isCancelled = false

  /** `outline`: that of the version that ran. */
  constructor(runId: string, { edges, steps }: Outline) {
    this.#runId = runId
    this.#steps = sorted(steps, edges)
    this.#edges = edges
    this.#undone = undoneBy(steps)
    this.#known = this.#steps.map(() => ({
      state: null,
      attempts: [],
      since: 0,
      begunIn: null,
      endedIn: null,
      ...newList()
    }))
  }

  take({ at, part, steps }: ReportedPart): void {
    const progress = progressIn(steps)
    const stopped = progress.run?.stopped ?? null
    this.#isCancelled = stopped !== null && stopped.step === null
    for (const [edge, state] of Object.entries(progress.edges ?? {})) {
      this.#edgeStates[Number(edge)] = state
      this.#settledAt[Number(edge)] = at
    }
    for (const [index, state] of Object.entries(progress.steps ?? {})) {
      const known = this.#known[Number(index)]
      if (known !== undefined) takeStep(known, wholeStep(state), part, at)
    }
  }

  /** The journal entries that describe a step's last execution, by its position. */
  lifeOf(index: number): Readonly<Pick<Known, "since" | "begunIn" | "endedIn">> {
    return this.#known[index] ?? { since: 0, begunIn: null, endedIn: null }
  }

  /** The steps as lists show them. `whole`: include steps that no journal entry mentions. */
  summaries(whole: boolean): ReadonlyArray<StepSummary> {
    return this.#inOrder()
      .filter((index) => whole || this.#known[index]!.state !== null)
      .map((index) => this.#summary(index))
  }

  /** `previewsOf`: the previews of a step's input and output, by its position. `held`: no step of the run may begin now. */
  executions(previewsOf: PreviewsOf = () => null, held = false): ReadonlyArray<StepExecution> {
    const room = { left: maxElements }
    return this.#inOrder().map((index) => this.#execution(index, previewsOf(index), held, room))
  }

  /**
   * The steps that can be retried: those that failed, and those with failed elements of their list. Of a run that was undone:
   * the compensations that have not succeeded.
   */
  retryable(): ReadonlyArray<string> {
    const isFailed = ({ notes, state }: Known): boolean =>
      state?.status === "failed" || (state?.status === "succeeded" && failedElements(notes) > 0)
    const isLeft = ({ state }: Known, id: string): boolean =>
      this.#undone.has(id) && state !== null && isLeftToUndo(state)
    const isUndone = this.#hasBegunUndo()
    return this.#steps.flatMap(({ id }, index) => {
      const known = this.#known[index]!
      return (isUndone ? isLeft(known, id) : isFailed(known)) ? [id] : []
    })
  }

  #hasBegunUndo(): boolean {
    const statesOf = (isCompensation: boolean): ReadonlyArray<StoredStep> =>
      this.#steps.flatMap(({ id }, index) => {
        const { state } = this.#known[index]!
        return state !== null && this.#undone.has(id) === isCompensation ? [state] : []
      })
    return this.#undone.size > 0 && hasBegunUndo(statesOf(true), statesOf(false))
  }

  /** Those that ran, in the order in which they are started; then the others in the order of the graph. */
  #inOrder(): ReadonlyArray<number> {
    const all = [...this.#steps.keys()]
    const ran = (index: number): boolean => (this.#known[index]!.state?.startedAt ?? null) !== null
    return [...all.filter(ran), ...all.filter((index) => !ran(index))]
  }

  #summary(index: number): StepSummary {
    const { id, kind, name } = this.#steps[index]!
    const state = this.#known[index]!.state
    // The errors of earlier attempts are shown with the attempts.
    const error = state?.status === "succeeded" && !state.handled ? null : (state?.error ?? null)
    const taken = this.#edges
      .flatMap((edge, i) => (edge.target_step_id === id && this.#edgeStates[i] === "taken" ? [edge] : []))
      .toSorted((left, right) => left.position - right.position)[0]
    return {
      id: derivedId(prefixes.workflowStep, this.#runId, `${id}/`),
      step_id: id,
      name,
      kind,
      status: state?.status ?? "pending",
      execution_index: index,
      input:
        taken === undefined
          ? null
          : {
              source_type: taken.source_type,
              source_step_id: taken.source_step_id,
              source_port: taken.source_port
            },
      compensates: this.#undone.get(id) ?? null,
      output_port: state?.ports[0] ?? null,
      response_status: state?.responseStatus ?? error?.status ?? null,
      error_code: error?.code ?? null,
      error_message: error === null ? null : this.#masked(error.message),
      started_at: written(state?.startedAt ?? null),
      finished_at: written(state?.finishedAt ?? null)
    }
  }

  /** What a step waits for: its own wait, or a held run that keeps it from starting. */
  #waitOf(index: number, held: boolean): StepExecution["wait"] {
    const state = this.#known[index]!.state
    if (state?.wait != null) return { kind: state.wait.kind, until: new Date(state.wait.until).toISOString() }
    if (!held || (state !== null && state.status !== "pending")) return null
    const { id } = this.#steps[index]!
    const into = this.#edges.flatMap((edge, i) => (edge.target_step_id === id ? [i] : []))
    // Before the first step nothing is stored: a step that only the trigger leads to would be the first, whatever the trigger
    // contains.
    const begunAt = idTime(this.#runId)
    if (this.#edgeStates.length === 0 && this.#known.every((known) => known.state === null) && begunAt !== null) {
      const first = into.every(
        (i) => this.#edges[i]!.source_type === "trigger" && (this.#edges[i]!.condition ?? null) === null
      )
      return into.length > 0 && first ? { kind: "hold", until: new Date(begunAt).toISOString() } : null
    }
    const isSettled = into.every((i) => (this.#edgeStates[i] ?? "open") !== "open")
    if (!isSettled || !into.some((i) => this.#edgeStates[i] === "taken")) return null
    return { kind: "hold", until: new Date(Math.max(...into.map((i) => this.#settledAt[i]!))).toISOString() }
  }

  #errorOf(
    { error_code: code, error_message: message, response_status: status }: StepSummary,
    { since }: Known,
    answers: StepPreviews["answers"] = new Map()
  ): StepExecution["error"] {
    if (code === null || message === null) return null
    const last = Math.max(...[...answers.keys()].filter((part) => part >= since))
    return { code, message, status, response: answers.get(last) ?? null }
  }

  /** A step's progress in its list. `room`: the elements that the answer can still show. */
  #iterations({ notes, open, state }: Known, room: { left: number }): StepExecution["iterations"] {
    if (state === null || state.iterations === null) return null
    const { completed, count } = state.iterations
    const failed = failedElements(notes)
    // Journal entries of earlier versions do not tell which elements failed.
    const isUntold = notes.size === 0 && (state.handled || (state.status === "failed" && !this.#isCancelled))
    if (isUntold || room.left < count) return { count, completed, failed, elements: null }
    room.left -= count
    const { length: reached = completed + open.size, under } = state.iterations
    const [at = reached] = [...open].toSorted((left, right) => left - right)
    const isUnderWay = state.status === "running" && state.wait?.kind !== "hold"
    const failure = state.wait?.kind === "retry" ? state.error : null
    const lastError = failure && {
      ...failure,
      message: this.#masked(failure.message).slice(0, limits.warningLength).toWellFormed()
    }
    const elements = Array.from({ length: count }, (_, index): ElementExecution => {
      const note = notes.get(index)
      if (note !== undefined) return element(index, note.error === null ? "succeeded" : "failed", note)
      const begun = under?.find((other) => other.index === index)
      if (isUnderWay && begun !== undefined) {
        return element(index, "running", { attempts: begun.attempt, error: begun.error ?? null })
      }
      if (isUnderWay && under === undefined && index === at) {
        return element(index, "running", { attempts: state.attempt, error: lastError })
      }
      if (index < reached && !open.has(index)) return element(index, "succeeded", { attempts: 1, error: null })
      return element(index, hasEnded(state) ? "skipped" : "pending", { attempts: 0, error: null })
    })
    return { count, completed, failed, elements }
  }

  #execution(index: number, previews: ReturnType<PreviewsOf>, held: boolean, room: { left: number }): StepExecution {
    const { config, resource_id } = this.#steps[index]!
    const known = this.#known[index]!
    const state = known.state
    const summary = this.#summary(index)
    const of = resource_id === null ? undefined : resourceTypes[resource_id.slice(0, 3)]
    return {
      ...summary,
      output_ports: state?.ports ?? [],
      skip_reason: state?.skipReason ?? null,
      handled: state?.handled ?? false,
      attempt_count: state?.attempt ?? 0,
      max_attempts: maxAttemptsOf(config),
      attempts: known.attempts.map((attempt) =>
        shownAttempt(attempt, summary.response_status, this.#masked, previews?.answers)
      ),
      wait: this.#waitOf(index, held),
      warnings: (state?.warnings ?? []).map((warning) =>
        warning.message === undefined ? warning : Object.assign({}, warning, { message: this.#masked(warning.message) })
      ),
      iterations: this.#iterations(known, room),
      resource: resource_id === null || of === undefined ? null : { type: of, id: resource_id },
      queued_at: summary.started_at,
      duration_ms: lasted(state?.startedAt ?? null, state?.finishedAt ?? null),
      error: this.#errorOf(summary, known, previews?.answers),
      input_preview: previews?.input ?? null,
      output_preview: previews?.output ?? null
    }
  }
}

const maxAttemptsOf = (config: Step["config"]): number => {
  const retry = config["retry"]
  if (typeof retry !== "object" || retry === null) return 1
  const count = "count" in retry ? Number(retry["count"]) : defaultRetries
  return (Number.isInteger(count) && count > 0 ? count : 0) + 1
}

const hasEnded = ({ status }: StoredStep): boolean =>
  status === "succeeded" || status === "failed" || status === "skipped"

/** Applies a journal entry to a step. A step that changes after its end runs again: its data starts anew. */
const takeStep = (known: Known, state: StoredStep, part: number, at: number): void => {
  const isAgain = known.state !== null && hasEnded(known.state)
  if (isAgain) {
    known.attempts = []
    known.since = part
    known.begunIn = null
  }
  const isFirst = isAgain || known.state?.startedAt == null
  known.state = state
  takeElements(known, state)
  known.endedIn = hasEnded(state) ? part : null
  if (state.attempt === 0) return
  known.begunIn ??= part
  // The next element of a list counts its attempts anew.
  const isNext = state.iterations !== null && state.status === "running" && state.wait === null
  if (isNext && state.attempt === 1) known.attempts = []
  if (known.attempts.at(-1)?.number !== state.attempt) {
    known.attempts.push({ number: state.attempt, startedAt: isFirst ? (state.startedAt ?? at) : at, finished: null })
    if (known.attempts.length > maxAttempts) known.attempts.shift()
  }
  const current = known.attempts.at(-1)!
  if (current.finished !== null) return
  if (state.wait?.kind === "retry") current.finished = { at, part, status: "failed", error: state.error }
  else if (state.status === "succeeded" || state.status === "failed") {
    const error = state.status === "failed" ? state.error : null
    current.finished = { at: state.finishedAt ?? at, part, status: state.status, error }
  }
}

const newList = (): Pick<Known, "notes" | "open"> => ({ notes: new Map(), open: new Set() })

/** The messages of notes have been masked. */
const element = (
  index: number,
  status: ElementExecution["status"],
  { attempts, error }: Omit<ElementNote, "index">
): ElementExecution => ({
  index,
  status,
  attempt_count: attempts,
  response_status: error?.status ?? null,
  error_code: error?.code ?? null,
  error_message: error?.message ?? null
})

const failedElements = (notes: Known["notes"]): number => {
  let failed = 0
  for (const { error } of notes.values()) if (error !== null) failed++
  return failed
}

/** Applies a journal entry to the elements of a step's list. */
const takeElements = (known: Known, { iterations }: StoredStep): void => {
  if (iterations === null) return void Object.assign(known, newList())
  for (const index of iterations.open ?? []) {
    known.open.add(index)
    known.notes.delete(index)
  }
  for (const note of iterations.notes ?? []) {
    known.notes.set(note.index, note)
    known.open.delete(note.index)
  }
}

const shownAttempt = (
  { finished, number, startedAt }: Attempt,
  lastStatus: number | null,
  shown: (message: string) => string,
  answers: StepPreviews["answers"] | undefined
): StepAttempt => ({
  number,
  status: finished?.status ?? "running",
  response_status:
    finished === null ? null : finished.status === "succeeded" ? lastStatus : (finished.error?.status ?? null),
  error_code: finished?.error?.code ?? null,
  error_message: finished?.error == null ? null : shown(finished.error.message),
  response: finished?.error == null ? null : (answers?.get(finished.part) ?? null),
  started_at: written(startedAt),
  finished_at: written(finished?.at ?? null),
  duration_ms: lasted(startedAt, finished?.at ?? null)
})

/** Combines all parts of a run's detail. */
export const detailOf = (
  run: WorkflowRun,
  about: {
    readonly version: VersionEvidence
    readonly trigger: RunTrigger
    readonly retriedStepId: string | null
    readonly retriedAt: Date | null
    readonly reports: StepReports
    readonly previewsOf?: PreviewsOf
  }
): WorkflowRunDetail => ({
  ...run,
  version: about.version,
  trigger: about.trigger,
  retry: {
    count: run.attempt_count - 1,
    last_requested_at: about.retriedAt?.toISOString() ?? null,
    last_step_id: about.retriedStepId,
    retryable_step_ids:
      run.finished_at === null || run.attempt_count >= limits.beginnings ? [] : about.reports.retryable()
  },
  steps: about.reports.executions(about.previewsOf, run.hold_reason !== null)
})
