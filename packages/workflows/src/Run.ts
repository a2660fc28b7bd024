import type { Json } from "@tidegate/model/Rule"
import { runToEnd } from "@tidegate/runtime/Resumable"
import { shownOf } from "@tidegate/redaction/Redaction"
import { limits } from "./Limits.ts"
import { answerSize, withoutAnswer } from "./StepAnswer.ts"
import {
  attemptsOf,
  contextOf,
  type Decision,
  type EdgeState,
  type ElementNote,
  elementOf,
  type ElementUnderWay,
  type Facts,
  hasFailed,
  mayRetry,
  type Occurrence,
  reopened,
  type RunState,
  type SkipReason,
  type Start,
  type StepState,
  untouched,
  type Wait
} from "./RunState.ts"
import type { Resumable, StepError } from "./StepKind.ts"
import { isNeeded, isUndone, nextUndo } from "./Undo.ts"
import type { PlannedStep, Workflow } from "./Workflow.ts"

/**
 * A run of a workflow as a value: `decide` returns what follows from what happened. It has no clock, no side effects and no
 * randomness; its caller provides those and carries out the result. An occurrence that does not fit the state changes nothing, so
 * repeated or late messages do no harm.
 *
 * A step starts when each edge into it is settled and at least one of them is taken, so at most once in a run. An edge is settled
 * when its source step has ended, by what could be read at that moment. Steps that run at the same time have no influence, so the
 * result of a run does not depend on the order in which its steps end.
 *
 * When the run has failed and all of these steps have ended, the compensations of those that succeeded are carried out, one after
 * the other. Which one is next follows from the state of the steps, so nothing else is stored for it.
 */

/**
 * Decides what follows from `occurrence`, which happened at `now` (Unix ms): at once if no edge has conditions to judge, else as
 * resumable work, which yields after each condition.
 */
export const deciding = (
  workflow: Workflow,
  facts: Facts,
  state: RunState,
  occurrence: Occurrence,
  now: number
): Decision | Resumable<Decision> => {
  const turn = new Turn(workflow, facts, state, now)
  turn.take(occurrence)
  return turn.hasConditions ? judging(turn) : turn.end()
}

function* judging(turn: Turn): Resumable<Decision> {
  yield* turn.judge()
  return turn.end()
}

/** The same as `deciding`, in one go. */
export const decide = (...given: Parameters<typeof deciding>): Decision => {
  const decided = deciding(...given)
  return "starts" in decided ? decided : runToEnd(decided)
}

const shortened = ({ code, message, status }: StepError): ElementNote["error"] => ({
  code,
  message: (shownOf()("message", message.toWellFormed()) as string).slice(0, limits.warningLength).toWellFormed(),
  ...(status === undefined ? {} : { status })
})

const iso = (at: number): string => new Date(at).toISOString()

/** Whether an attempt of the step follows the wait. */
const isBeforeAttempt = ({ kind }: Wait): boolean => kind === "retry" || kind === "hold"

/** The processing of one occurrence. */
class Turn {
  private readonly workflow: Workflow
  private readonly facts: Facts
  private readonly before: RunState
  private readonly now: number
  private readonly steps: Array<StepState>
  private readonly edges: Array<EdgeState>
  private readonly starts: Array<Start> = []
  /** Edges that are taken if their conditions hold. */
  private readonly conditional: Array<number> = []
  private state: Omit<RunState, "steps" | "edges">
  private changed = false

  constructor(workflow: Workflow, facts: Facts, state: RunState, now: number) {
    this.workflow = workflow
    this.facts = facts
    this.before = state
    this.state = state
    this.steps = [...state.steps]
    this.edges = [...state.edges]
    this.now = now
  }

  take(occurrence: Occurrence): void {
    switch (occurrence.type) {
      case "begun":
        if (this.state.status !== "queued" || this.state.stopped !== null) return
        for (const [i, { source }] of this.workflow.planEdges.entries()) if (source === null) this.settle(i, ["out"])
        return this.run({ status: "running", startedAt: this.state.startedAt ?? this.now })
      case "held":
      case "released":
        this.run({ held: occurrence.type === "held" })
        if (!this.state.held) for (const step of this.steps.keys()) this.due(step)
        return
      case "stopped":
        return this.stop(occurrence.error, null)
      case "retried":
        return this.retry(occurrence.step)
      case "recovered":
        for (const [step, state] of this.steps.entries()) {
          for (const attempt of attemptsOf(state)) this.starts.push({ step, ...attempt })
        }
        return
      case "due":
        return this.due(occurrence.step)
      case "signalled":
        return this.signalled(occurrence)
    }
    const step = this.steps[occurrence.step]
    if (step?.status !== "running" || step.wait !== null) return
    switch (occurrence.type) {
      case "expanded":
        return this.expand(occurrence.step, step, occurrence.count)
      case "waiting":
        if (step.early !== null) {
          if (step.error !== null) return this.failed(occurrence.step, step.error)
          const output = { ...(step.output as NonNullable<Wait["output"]>), released_at: iso(this.now) }
          return this.succeeded(occurrence.step, output, step.early)
        }
        return this.set(occurrence.step, {
          wait:
            occurrence.portsLate === undefined
              ? { kind: "delay", until: occurrence.until, output: occurrence.output }
              : { kind: "signal", until: occurrence.until, output: occurrence.output, ports: occurrence.portsLate }
        })
    }
    const { attempt, iteration } = occurrence
    if (!attemptsOf(step).some((begun) => begun.attempt === attempt && begun.iteration === iteration)) return
    const { warnings = step.warnings } = occurrence
    if (warnings.length + step.warnings.length > 0) this.set(occurrence.step, { warnings })
    if (occurrence.type === "succeeded") {
      this.succeed(occurrence.step, iteration, occurrence.output, occurrence.ports, occurrence.size ?? 0)
    } else this.fail(occurrence.step, iteration, occurrence.error, occurrence.random)
  }

  get hasConditions(): boolean {
    return this.conditional.length > 0
  }

  /** Settles the edges with conditions, by what could be read when their source step ended. */
  *judge(): Resumable<void> {
    for (const index of this.conditional) {
      const { holds, source } = this.workflow.planEdges[index]!
      const readable = source === null ? [] : [...this.planned(source).ancestors, source]
      const context = contextOf(this.workflow, this.facts, this.steps, readable)
      this.edges[index] = holds!(context) ? "taken" : "condition_false"
      yield
    }
  }

  end(): Decision {
    if (!this.changed) return { state: this.before, starts: this.starts }
    this.settleAll()
    this.startReady()
    this.finish()
    return { state: { ...this.state, steps: this.steps, edges: this.edges }, starts: this.starts }
  }

  private run(change: Partial<RunState>): void {
    this.state = { ...this.state, ...change }
    this.changed = true
  }

  /** A step is copied by its first change within an occurrence. */
  private set(step: number, change: Partial<StepState>): void {
    const state = this.steps[step]!
    if (state === this.before.steps[step]) this.steps[step] = { ...state, ...change }
    else Object.assign(state, change)
    this.changed = true
  }

  private planned(step: number): PlannedStep {
    return this.workflow.plan[step]!
  }

  private expand(index: number, step: StepState, count: number): void {
    if (this.planned(index).forEach === null || step.iterations !== null) return
    this.set(index, { iterations: { count, items: [], notes: [] } })
    this.iterate(index)
  }

  private isParallel(index: number): boolean {
    return this.planned(index).concurrency > 1 && this.steps[index]!.iterations !== null
  }

  /** Starts the next element of a list, or ends the step after the last one. */
  private iterate(index: number): void {
    if (this.isParallel(index)) return this.fill(index)
    const { iterations } = this.steps[index]!
    const { count, items } = iterations!
    if (elementOf({ iterations })! < count) {
      const { held, stopped } = this.state
      // In a disabled or deleted workflow no further element is started.
      if (stopped !== null && stopped.step === null) return this.failed(index, stopped.error)
      return held ? this.set(index, { wait: { kind: "hold", until: this.now } }) : this.start(index, 1)
    }
    this.succeeded(index, { items: items as ReadonlyArray<Json>, count }, ["out"])
  }

  /**
   * Starts as many elements of a list as may be under way, and ends the step after the last one. An element that waits for another
   * attempt keeps its place. After a failure that ends the step nothing new begins, and the elements under way end.
   */
  private fill(index: number): void {
    const { concurrency, onError } = this.planned(index)
    const { held, stopped } = this.state
    const hasFailedFinally = (): boolean =>
      onError !== "continue" && this.steps[index]!.iterations!.notes.some(hasFailed)
    if (stopped !== null || hasFailedFinally()) this.endWaiting(index, onError === "continue" ? null : undefined)
    const { count, items, notes, under: before = [] } = this.steps[index]!.iterations!
    const isCancelled = stopped !== null && stopped.step === null
    const under = [...before]
    if (!held && !isCancelled && !hasFailedFinally()) {
      for (const [i, { attempt, index: at, until }] of under.entries()) {
        if (until !== undefined && until <= this.now) under[i] = this.startElement(index, at, attempt + 1)
      }
      const isUnder = new Set(under.map((element) => element.index))
      for (let at = 0; at < count && under.length < concurrency; at++) {
        if (items[at] === undefined && !isUnder.has(at)) under.push(this.startElement(index, at, 1))
      }
    }
    this.set(index, { attempt: 1, wait: null, iterations: { count, items, notes, under } })
    if (under.some(({ until }) => until === undefined)) return
    if (under.length > 0) {
      const until = Math.min(...under.map((element) => element.until!))
      return this.set(index, { wait: { kind: "retry", until } })
    }
    const { error, handled, size } = this.steps[index]!
    const isWhole = elementOf({ iterations: { count, items, notes } })! >= count
    if (held && !isWhole && !isCancelled && !hasFailedFinally()) {
      return this.set(index, { wait: { kind: "hold", until: this.now } })
    }
    if (hasFailedFinally()) return this.failed(index, error!)
    if (!isWhole) return this.failed(index, stopped!.error)
    // The errors of earlier attempts belong to those attempts.
    if (!handled) this.set(index, { error: null, size: size - answerSize(error) })
    this.succeeded(index, { items: items as ReadonlyArray<Json>, count }, ["out"])
  }

  private startElement(step: number, index: number, attempt: number): ElementUnderWay {
    this.starts.push({ step, attempt, iteration: index })
    return { index, attempt }
  }

  /** The elements that wait for another attempt end with the error of the last one. */
  private endWaiting(index: number, output: null | undefined): void {
    for (const { error, index: at } of this.steps[index]!.iterations?.under ?? []) {
      if (error === undefined) continue
      if (output === null) this.set(index, { handled: true })
      this.endElement(index, output, error, at)
    }
  }

  private succeed(
    index: number,
    iteration: number | null,
    output: Json,
    ports: ReadonlyArray<string>,
    given: number
  ): void {
    const { error, handled, iterations, size: held } = this.steps[index]!
    const answer = answerSize(error)
    const outputs = held - answer + given
    // Beside each other, elements that succeed do not end the errors of others.
    const keepsError = handled || this.isParallel(index)
    const size = keepsError ? outputs + answer : outputs
    const total = this.steps.reduce((sum, step) => sum + step.size, size - held)
    if (outputs > limits.valueLength || total > limits.runLength) {
      const [whose, most] =
        outputs > limits.valueLength ? ["the step's", limits.valueLength] : ["all steps'", limits.runLength]
      const message = `${whose} output is longer than ${most} characters`
      return this.fail(index, iteration, { code: "OUTPUT_TOO_LARGE", message }, 0)
    }
    // The error of an earlier attempt belongs to that attempt.
    this.set(index, { size, ...(keepsError ? {} : { error: null }) })
    if (iterations === null) return this.succeeded(index, output, ports)
    this.endElement(index, output, null, iteration)
    this.iterate(index)
  }

  /** The end of an element of a list. `output`: undefined when the step ends with it. `of`: its index; null: the one that it is at. */
  private endElement(index: number, output: Json | undefined, failure: StepError | null, of: number | null): void {
    const { attempt: last, iterations } = this.steps[index]!
    if (iterations === null) return
    const at = of ?? elementOf({ iterations })!
    const under = iterations.under?.filter((element) => element.index !== at)
    const attempt = iterations.under?.find((element) => element.index === at)?.attempt ?? last
    const isPlain = failure === null && attempt === 1 && at >= iterations.items.length
    const items = [...iterations.items]
    // Elements before it that are still under way are open.
    if (under !== undefined) while (items.length <= at) items.push(undefined)
    if (output !== undefined) items[at] = output
    const note: ElementNote = { index: at, attempts: attempt, error: failure === null ? null : shortened(failure) }
    this.set(index, {
      iterations: {
        ...iterations,
        items,
        notes: isPlain ? iterations.notes : [...iterations.notes, note],
        ...(under === undefined ? {} : { under })
      }
    })
  }

  private succeeded(index: number, output: Json, ports: ReadonlyArray<string>): void {
    this.set(index, { status: "succeeded", output, ports, wait: null, early: null, finishedAt: this.now })
    this.leave(index)
  }

  /** A failed attempt of an element that is called beside others. The step keeps the error that ends it. */
  private failElement(index: number, at: number, given: StepError, random: number): void {
    const { onError, retry } = this.planned(index)
    const { count, items, notes, under = [] } = this.steps[index]!.iterations!
    const { attempt } = under.find((element) => element.index === at)!
    const isEnding = onError !== "continue" && notes.some(hasFailed)
    const error = isEnding ? given : this.err(index, given)
    const wait = this.state.stopped === null && !isEnding ? retry.waitAfter(attempt, error, random) : null
    if (wait !== null) {
      const waits = { index: at, attempt, until: this.now + wait, error: shortened(error)! }
      const others = under.map((element) => (element.index === at ? waits : element))
      this.set(index, { iterations: { count, items, notes, under: others } })
    } else if (onError === "continue") {
      this.set(index, { handled: true })
      this.endElement(index, null, error, at)
    } else this.endElement(index, undefined, error, at)
    this.fill(index)
  }

  private fail(index: number, iteration: number | null, given: StepError, random: number): void {
    if (iteration !== null && this.isParallel(index)) return this.failElement(index, iteration, given, random)
    const { onError, retry } = this.planned(index)
    const { attempt, iterations } = this.steps[index]!
    const error = this.err(index, given)
    const wait = this.isStopped(index) ? null : retry.waitAfter(attempt, error, random)
    if (wait !== null) return this.set(index, { wait: { kind: "retry", until: this.now + wait } })
    if (iterations !== null && onError === "continue") {
      this.set(index, { handled: true })
      this.endElement(index, null, error, null)
      return this.iterate(index)
    }
    this.endElement(index, undefined, error, null)
    this.failed(index, error)
  }

  /** The step's error. Its answer counts toward the size of the run; when there is no room for it, it is left out. */
  private err(index: number, given: StepError): StepError {
    const { error: last, size: held } = this.steps[index]!
    if (given === last) return given
    const outputs = held - answerSize(last)
    const answer = answerSize(given)
    const hasRoom = this.steps.reduce((sum, step) => sum + step.size, outputs - held + answer) <= limits.runLength
    const error = hasRoom ? given : withoutAnswer(given)
    this.set(index, { error, size: hasRoom ? outputs + answer : outputs })
    return error
  }

  /** The final failure of a step, without further attempts. */
  private failed(index: number, given: StepError): void {
    const { onError } = this.planned(index)
    const error = this.err(index, given)
    const ports = { fail: [], continue: ["out"], branch: ["error"] }[onError]
    this.set(index, { status: "failed", ports, handled: onError !== "fail", wait: null, finishedAt: this.now })
    if (onError === "fail" && !this.isCompensation(index)) this.stop(error, index)
    this.leave(index)
  }

  private isCompensation(index: number): boolean {
    return this.planned(index).undoes !== null
  }

  /** Whether the step has no other attempt, and nothing that it waits for counts any more. A failure does not stop its undo. */
  private isStopped(index: number): boolean {
    const { stopped } = this.state
    return stopped !== null && (!this.isCompensation(index) || stopped.step === null || stopped.ended === true)
  }

  private due(index: number): void {
    const step = this.steps[index]
    if (step?.status !== "running" || step.wait === null || step.wait.until > this.now || this.state.held) return
    // A retry starts when the limit of parallel steps allows it.
    if (isBeforeAttempt(step.wait)) return this.run({})
    if (step.wait.error !== undefined) return this.failed(index, step.wait.error)
    const given = step.wait.output ?? (step.output as NonNullable<Wait["output"]>)
    const output = { ...given, released_at: iso(this.now) }
    this.succeeded(index, output, step.wait.ports ?? ["out"])
  }

  /** A signal that comes too late, or a second one, changes nothing. */
  private signalled({
    error,
    output,
    ports,
    size,
    step: index
  }: Extract<Occurrence, { readonly type: "signalled" }>): void {
    const step = this.steps[index]
    if (step === undefined || this.isStopped(index) || this.state.finishedAt !== null) return
    const { status, wait } = step
    const isBefore = status === "pending" || (status === "running" && wait === null)
    if (isBefore && step.early === null && (size !== undefined || error !== undefined)) {
      return this.set(index, { early: ports, output, size: size ?? 0, ...(error === undefined ? {} : { error }) })
    }
    if (status !== "running" || wait?.kind !== "signal" || wait.until <= this.now) return
    const over = { kind: "delay", until: this.now, ports, ...(error === undefined ? {} : { error }) } as const
    this.set(index, size === undefined ? { wait: { ...over, output } } : { wait: over, output, size })
  }

  /** Nothing begins any more; steps that only wait end now. */
  private stop(error: StepError, step: number | null): void {
    const { finishedAt, stopped } = this.state
    if (finishedAt !== null) return
    if (stopped === null) this.run({ stopped: { error: withoutAnswer(error), step } })
    else if (step === null && this.hasUndo && stopped.step !== null && stopped.ended !== true) {
      this.run({ stopped: { ...stopped, ended: true } })
    } else return
    for (const [index, { error: last, status, wait }] of this.steps.entries()) {
      if (status !== "running" || wait === null) continue
      if (wait.kind === "retry" && last !== null) {
        if (this.isParallel(index)) this.endWaiting(index, undefined)
        else this.endElement(index, undefined, last, null)
        this.failed(index, last)
      } else if (step === null || wait.kind === "hold") this.failed(index, error)
      else {
        this.set(index, { status: "skipped", skipReason: "run_stopped", wait: null, finishedAt: this.now })
        this.leave(index)
      }
    }
  }

  /** Whether a compensation has not ended. */
  private get hasUndo(): boolean {
    return this.workflow.undoing.some((index) => {
      const { status } = this.steps[index]!
      return status === "pending" || status === "running"
    })
  }

  private retry(index: number): void {
    const asked = this.steps[index]
    if (this.state.finishedAt === null || asked === undefined || !mayRetry(this.workflow, this.before, index)) return
    if (isUndone(this.workflow, this.steps)) return this.retryUndo(index)
    const again = ({ ancestors, index: other }: PlannedStep): boolean =>
      other === index || ancestors.has(index) || this.isLeftOut(other)
    // Steps that never ran because the run was stopped run now, with everything that follows from them.
    const reset = new Set<number>()
    for (const step of this.workflow.plan) {
      if (again(step) || [...step.ancestors].some((ancestor) => reset.has(ancestor))) reset.add(step.index)
    }
    for (const step of reset) this.set(step, step === index ? reopened(asked) : untouched)
    for (const [i, { source }] of this.workflow.planEdges.entries()) {
      if (source === null) continue
      if (reset.has(source)) this.edges[i] = "open"
      // In a run that was given up, the edges of its ended steps were not settled.
      else if (this.edges[i] === "open") this.edges[i] = this.whyNotLeft(source)
    }
    this.queue()
  }

  /** Of a run that was undone only a compensation that failed can run again; with it those that were left out. */
  private retryUndo(index: number): void {
    for (const other of this.workflow.undoing) {
      if (other === index || this.isLeftOut(other)) this.set(other, untouched)
    }
    this.queue()
  }

  /** Whether the step never ran because of how the run ended. */
  private isLeftOut(index: number): boolean {
    const { skipReason } = this.steps[index]!
    return skipReason === "run_stopped" || skipReason === "not_needed"
  }

  private queue(): void {
    this.run({ status: "queued", outcome: null, stopped: null, finishedAt: null })
  }

  /** Settles the edges out of a step that has ended. */
  private leave(index: number): void {
    const { ports } = this.steps[index]!
    for (const edge of this.planned(index).outgoing) this.settle(edge, ports)
  }

  private settle(index: number, ports: ReadonlyArray<string>): void {
    const { edge, holds, source } = this.workflow.planEdges[index]!
    if (!ports.includes(edge.source_port)) {
      this.edges[index] = this.whyNotLeft(source!)
    } else if (holds === null) {
      this.edges[index] = "taken"
    } else {
      this.conditional.push(index)
    }
  }

  /** Why a port of an ended step was not taken. */
  private whyNotLeft(source: number): SkipReason {
    const { skipReason, status } = this.steps[source]!
    if (skipReason !== null) return skipReason
    if (status === "failed") return "upstream_failed"
    return this.planned(source).kind.notTaken
  }

  /** Whether a step can start, has to wait for an edge, or why it never will start. */
  private fate(index: number): "open" | "ready" | SkipReason {
    if (this.isCompensation(index)) return "open"
    let isTaken = false
    let reason: SkipReason | null = null
    for (const edge of this.planned(index).incoming) {
      const state = this.edges[edge]!
      if (state === "open") return "open"
      if (state === "taken") isTaken = true
      else if (reason === null || state === "upstream_failed") reason = state
    }
    return isTaken ? "ready" : reason!
  }

  /** Skips steps that no edge can lead to any more. They are in order, so that one pass finds everything that follows. */
  private settleAll(): void {
    for (const { index } of this.workflow.plan) {
      if (this.steps[index]!.status !== "pending") continue
      const fate = this.fate(index)
      if (fate !== "open" && fate !== "ready") this.skip(index, fate)
    }
  }

  private skip(index: number, skipReason: SkipReason): void {
    this.set(index, { status: "skipped", skipReason, finishedAt: this.now })
    this.leave(index)
  }

  private startReady(): void {
    if (this.state.status !== "running" || this.state.held || this.state.stopped !== null) return
    let running = 0
    for (const { status, wait } of this.steps) if (status === "running" && wait === null) running++
    for (const { index } of this.workflow.plan) {
      if (running >= limits.parallelSteps) return
      const { attempt, status, wait } = this.steps[index]!
      if (status === "running" && wait !== null && isBeforeAttempt(wait) && wait.until <= this.now) {
        this.set(index, { wait: null })
        this.start(index, wait.kind === "retry" ? attempt + 1 : 1)
      } else if (status === "pending" && this.fate(index) === "ready") {
        this.set(index, { status: "running", startedAt: this.now })
        this.start(index, 1)
      } else continue
      running++
    }
  }

  private start(step: number, attempt: number): void {
    if (this.isParallel(step)) return this.fill(step)
    this.set(step, { attempt })
    this.starts.push({ step, attempt, iteration: elementOf(this.steps[step]!) })
  }

  private finish(): void {
    const { finishedAt, status, stopped } = this.state
    if (finishedAt !== null || (status === "queued" && stopped === null)) return
    const { own } = this.workflow
    if (own.some(({ index }) => this.steps[index]!.status === "running")) return
    if (stopped !== null) {
      for (const { index } of own) {
        if (this.steps[index]!.status !== "pending") continue
        const failed = this.planned(index).incoming.some((edge) => this.edges[edge] === "upstream_failed")
        this.skip(index, failed ? "upstream_failed" : "run_stopped")
      }
    }
    if (own.some(({ index }) => this.steps[index]!.status === "pending")) return
    const outcome = this.outcome()
    if (this.undo(outcome)) return
    const ended = outcome === "failed" || outcome === "cancelled" ? "failed" : "succeeded"
    this.run({ status: ended, outcome, finishedAt: this.now })
  }

  /** Begins and continues the undo of a run that has failed; returns whether it goes on. Compensations of other runs are skipped. */
  private undo(outcome: RunState["outcome"]): boolean {
    const { undoing } = this.workflow
    const begins = outcome === "failed" && this.state.stopped?.ended !== true
    const under = undoing.find((index) => this.steps[index]!.status === "running")
    if (under !== undefined) {
      const { attempt, wait } = this.steps[under]!
      if (wait?.kind === "retry" && wait.until <= this.now && !this.state.held) {
        this.set(under, { wait: null })
        this.start(under, attempt + 1)
      }
      return true
    }
    const next = begins ? nextUndo(this.workflow, this.steps) : null
    if (next !== null) {
      if (this.state.held) return true
      this.set(next, { status: "running", startedAt: this.now })
      this.start(next, 1)
      return true
    }
    const isLeft = outcome === "failed" || outcome === "cancelled"
    for (const index of undoing) {
      if (this.steps[index]!.status !== "pending") continue
      this.skip(index, isLeft && isNeeded(this.workflow, this.steps, index) ? "run_stopped" : "not_needed")
    }
    return false
  }

  private outcome(): NonNullable<RunState["outcome"]> {
    if (this.state.stopped !== null && this.state.stopped.step === null) return "cancelled"
    // When a run was retried for one step, another failed step may remain.
    if (this.steps.some(({ handled, status }) => status === "failed" && !handled)) return "failed"
    if (this.steps.some(({ handled }) => handled)) return "completed_with_errors"
    const filteredAt = ({ index, kind }: PlannedStep): boolean =>
      kind.notTaken === "filtered" && this.steps[index]!.status === "succeeded" && this.steps[index]!.ports.length === 0
    const reachedEnd = (step: PlannedStep): boolean =>
      step.outgoing.length === 0 && this.steps[step.index]!.status === "succeeded" && !filteredAt(step)
    const { plan } = this.workflow
    return plan.some(filteredAt) && !plan.some(reachedEnd) ? "filtered" : "completed"
  }
}
