import type { Json } from "@tidegate/model/Rule"
import { define } from "@tidegate/interpolation/Mapping"
import type { Context, StepError, Warning } from "./StepKind.ts"
import { isLeftToUndo, isUndone } from "./Undo.ts"
import type { Workflow } from "./Workflow.ts"

/*
 * The state of a run, what can happen to it, and what can be read of it. It is stored as JSON, so it has values alone.
 */

export type StepStatus = "pending" | "running" | "succeeded" | "failed" | "skipped"

/** `not_needed`: a compensation without anything to undo. */
export type SkipReason =
  | "filtered"
  | "path_not_taken"
  | "condition_false"
  | "upstream_failed"
  | "run_stopped"
  | "not_needed"

export interface Wait {
  /** `hold`: the next element of a list waits until the held run may go on. `signal`: it ends when somebody signals it, or at `until`. */
  readonly kind: "delay" | "retry" | "hold" | "signal"
  /** Unix milliseconds. */
  readonly until: number
  /** For a delay and a signal: its output so far; absent after a callback, whose output is the step's already. */
  readonly output?: { readonly [member: string]: Json }
  /** The ports that are taken when the wait is over; absent: `out`. */
  readonly ports?: ReadonlyArray<string>
  /** Present after a signal that fails the step. */
  readonly error?: StepError
}

export interface Iterations {
  readonly count: number
  /**
   * The outputs of the elements that ended, in order; null for one that failed and was passed over, and undefined for one that a
   * retry of the step calls again.
   */
  readonly items: ReadonlyArray<Json | undefined>
  /** What is known of elements beside their outputs; one without a note succeeded with its first attempt. */
  readonly notes: ReadonlyArray<ElementNote>
  /** The elements under way, in the order in which they began. Absent: they are called one after the other. */
  readonly under?: ReadonlyArray<ElementUnderWay>
}

/** An element of a list whose elements are called beside each other. */
export interface ElementUnderWay {
  readonly index: number
  /** Its attempts that have begun. */
  readonly attempt: number
  /** While it waits for another attempt (Unix ms). */
  readonly until?: number
  /** Why the last attempt failed, while it waits. */
  readonly error?: NonNullable<ElementNote["error"]>
}

/** The end of an element that failed, had several attempts, or was called again by a retry of its step. */
export interface ElementNote {
  readonly index: number
  readonly attempts: number
  /**
   * Null: it succeeded. Its message is shortened, because a list has many elements. What looks like a secret is masked before it is
   * shortened: a part of a secret would not be recognised, and an answer with thousands of elements masks nothing.
   */
  readonly error: Pick<StepError, "code" | "message" | "status"> | null
}

export interface StepState {
  readonly status: StepStatus
  /** Attempts of the current iteration that have begun. */
  readonly attempt: number
  /** While the step runs: what it waits for. */
  readonly wait: Wait | null
  readonly iterations: Iterations | null
  readonly output: Json
  /** The size of its output, and of the answer in its error, as JSON, in characters. */
  readonly size: number
  readonly ports: ReadonlyArray<string>
  readonly error: StepError | null
  /** Whether the run continued after its failure. */
  readonly handled: boolean
  readonly skipReason: SkipReason | null
  readonly warnings: ReadonlyArray<Warning>
  /** The ports of a callback that came before the step waited for it; its `output` is the callback's then. */
  readonly early: ReadonlyArray<string> | null
  /** Unix milliseconds. */
  readonly startedAt: number | null
  readonly finishedAt: number | null
}

export type EdgeState = "open" | "taken" | SkipReason

export interface RunState {
  readonly status: "queued" | "running" | "succeeded" | "failed"
  readonly outcome:
    | "completed"
    | "filtered"
    | "completed_with_errors"
    | "failed"
    | "cancelled"
    | "duplicate"
    | "superseded"
    | "batched"
    | null
  /** While it is true, nothing starts. */
  readonly held: boolean
  /** Why nothing starts any more, and the step whose failure was the cause, if there is one. */
  readonly stopped: {
    readonly error: StepError
    readonly step: number | null
    /** Present when the run was stopped from outside after the failure: then nothing is undone any more. */
    readonly ended?: true
  } | null
  /** By their position in the plan. */
  readonly steps: ReadonlyArray<StepState>
  readonly edges: ReadonlyArray<EdgeState>
  /** Unix milliseconds. */
  readonly startedAt: number | null
  readonly finishedAt: number | null
}

/** What a run began with; the fixed part of its context. */
export type Facts = Omit<Context, "steps" | "item" | "item_index">

export type Occurrence =
  | { readonly type: "begun" }
  /** The length of the list that a step with `for_each` runs for. */
  | { readonly type: "expanded"; readonly step: number; readonly count: number }
  | {
      readonly type: "succeeded"
      readonly step: number
      readonly attempt: number
      /** The iteration that was started. */
      readonly iteration: number | null
      readonly output: Json
      /** The size of the output as JSON, in characters. */
      readonly size?: number
      readonly ports: ReadonlyArray<string>
      readonly warnings?: ReadonlyArray<Warning>
    }
  | {
      readonly type: "failed"
      readonly step: number
      readonly attempt: number
      readonly iteration: number | null
      readonly error: StepError
      /** In [0, 1), for a wait with jitter. */
      readonly random: number
      readonly warnings?: ReadonlyArray<Warning>
    }
  | {
      readonly type: "waiting"
      readonly step: number
      readonly until: number
      readonly output: NonNullable<Wait["output"]>
      /** Present when a signal may end the wait: the ports that are taken when none comes in time. */
      readonly portsLate?: ReadonlyArray<string>
    }
  /**
   * The signal that a step waits for. The step ends when it is due next, which is at once: so a signal evaluates nothing, and can
   * be stored without the run's request and outputs.
   */
  | {
      readonly type: "signalled"
      readonly step: number
      readonly output: NonNullable<Wait["output"]>
      readonly ports: ReadonlyArray<string>
      /** Present when the signal fails the step. */
      readonly error?: StepError
      /**
       * Present for a callback: the size of its output as JSON, in characters. It is stored as other outputs are, not with the run's
       * record, and it counts also when it comes before the step waits, as one with an error does.
       */
      readonly size?: number
    }
  /** The wait of a step is over; when it comes too early, it changes nothing. */
  | { readonly type: "due"; readonly step: number }
  | { readonly type: "held" }
  | { readonly type: "released" }
  /** The workflow is disabled or deleted, or the run is too old: steps under way end, and nothing else begins. */
  | { readonly type: "stopped"; readonly error: StepError }
  /** A failed step of an ended run will run again, with everything that follows from it: the run is queued until it begins. */
  | { readonly type: "retried"; readonly step: number }
  /** The run continues in another process: what was under way there begins again. */
  | { readonly type: "recovered" }

/**
 * An attempt of a step to carry out. `iteration` is null for a step that does not run for a list, or whose list is not known yet.
 */
export interface Start {
  readonly step: number
  readonly attempt: number
  readonly iteration: number | null
}

export interface Decision {
  readonly state: RunState
  readonly starts: ReadonlyArray<Start>
}

/** A step that has not begun. */
export const untouched: StepState = {
  status: "pending",
  attempt: 0,
  wait: null,
  iterations: null,
  output: null,
  size: 0,
  ports: [],
  error: null,
  handled: false,
  skipReason: null,
  warnings: [],
  early: null,
  startedAt: null,
  finishedAt: null
}

/** The element of its list that a step is at: the first that has not ended. Null: it has no list, or none that is known yet. */
export const elementOf = ({ iterations }: Pick<StepState, "iterations">): number | null => {
  if (iterations === null) return null
  const open = iterations.items.indexOf(undefined)
  return open < 0 ? iterations.items.length : open
}

/** The attempts of a step that have begun and have not ended. */
export const attemptsOf = (step: StepState): ReadonlyArray<Pick<Start, "attempt" | "iteration">> => {
  if (step.status !== "running" || step.wait !== null) return []
  const under = step.iterations?.under
  if (under === undefined) return [{ attempt: step.attempt, iteration: elementOf(step) }]
  return under.flatMap(({ attempt, index, until }) => (until === undefined ? [{ attempt, iteration: index }] : []))
}

/** Whether a retry of the step has something to do: it failed, or elements of its list failed and were passed over. */
export const isRetryable = ({ iterations, status }: StepState): boolean =>
  status === "failed" || (status === "succeeded" && iterations !== null && iterations.notes.some(hasFailed))

/**
 * Whether a step of an ended run may be retried. Of a run that was undone only a compensation may, which failed or never began
 * because the run was stopped.
 */
export const mayRetry = (workflow: Workflow, { steps }: Pick<RunState, "steps">, index: number): boolean => {
  const step = steps[index]
  if (step === undefined) return false
  if (!isUndone(workflow, steps)) return isRetryable(step)
  return workflow.plan[index]!.undoes !== null && isLeftToUndo(step)
}

export const hasFailed = ({ error }: ElementNote): boolean => error !== null

/**
 * A step before its retry: elements of its list that succeeded keep their outputs, and the others begin again. It is as if it had
 * not begun when it has no such list.
 */
export const reopened = ({ iterations, size }: StepState): StepState => {
  if (iterations === null) return untouched
  const items = [...iterations.items]
  for (const { error, index } of iterations.notes) if (error !== null) items[index] = undefined
  const notes = iterations.notes.filter((note) => !hasFailed(note))
  const again = { count: iterations.count, items, notes }
  return elementOf({ iterations: again })! < again.count ? { ...untouched, size, iterations: again } : untouched
}

/** A run that has not begun. */
export const queuedRun = ({ plan, planEdges }: Workflow, held = false): RunState => ({
  status: "queued",
  outcome: null,
  held,
  stopped: null,
  steps: plan.map(() => untouched),
  edges: planEdges.map(() => "open"),
  startedAt: null,
  finishedAt: null
})

/** The context of a step: only steps that led to it are in it. */
export const contextOf = (
  { plan }: Workflow,
  facts: Facts,
  steps: ReadonlyArray<StepState>,
  readable: Iterable<number>
): Context => {
  const read: Record<string, Context["steps"][string]> = {}
  for (const index of readable) {
    const { error, output, status } = steps[index]!
    if (status !== "succeeded" && status !== "failed") continue
    define(read, plan[index]!.step.id, { status, output, error })
  }
  return { ...facts, steps: read }
}
