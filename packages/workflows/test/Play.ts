import { occurred, perform, type Effect } from "../src/Inputs.ts"
import { decide } from "../src/Run.ts"
import { type Facts, type Occurrence, queuedRun, type RunState, type Start } from "../src/RunState.ts"
import { SecretTexts } from "../src/SecretTexts.ts"
import type { Outcome, Resumable } from "../src/StepKind.ts"
import type { Workflow } from "../src/Workflow.ts"

/** Numbers in [0, 1) that are the same for the same seed (mulberry32). */
export const dice = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** What comes of parts, at once. */
export const allOf = <A>(parts: Resumable<A>): A => {
  for (;;) {
    const part = parts.next()
    if (part.done === true) return part.value
  }
}

/** The occurrence of a result, in one go. */
export const occurs = (...given: Parameters<typeof occurred>): Occurrence => {
  const made = occurred(...given)
  return "type" in made ? made : allOf(made)
}

export const done = (output: unknown = null): Outcome => ({
  kind: "succeeded",
  output: output as never,
  ports: ["out"]
})
export const fails = (code = "BAD_RESPONSE", status = 500): Outcome => ({
  kind: "failed",
  error: { code, message: `HTTP ${status}`, status }
})
/** A failure with the target's answer. */
export const refuses = (body: unknown, status = 422): Outcome => ({
  kind: "failed",
  error: {
    code: "BAD_RESPONSE",
    message: `HTTP ${status}`,
    status,
    response: { status, headers: { "content-type": "application/json" }, body: body as never, truncated: false }
  }
})

/** A world for one run: it carries out effects as `outcomes` says, one at a time, in an order that `roll` chooses. */
export class Play {
  readonly workflow: Workflow
  readonly facts: Facts
  state: RunState
  now = Date.UTC(2026, 0, 1)
  /** Attempts that were begun, as `id/attempt` or `id[iteration]/attempt`. */
  readonly begun: Array<string> = []
  readonly effects: Array<Effect> = []
  readonly texts = new SecretTexts()
  private readonly outcomes: (effect: Effect) => Outcome
  private readonly roll: () => number
  private under: Array<Start> = []

  constructor(
    workflow: Workflow,
    facts: Facts,
    outcomes: (effect: Effect) => Outcome = () => done(),
    roll: () => number = () => 0
  ) {
    this.workflow = workflow
    this.facts = facts
    this.outcomes = outcomes
    this.roll = roll
    this.state = queuedRun(workflow)
  }

  tell(occurrence: Occurrence): this {
    const { starts, state } = decide(this.workflow, this.facts, this.state, occurrence, this.now)
    this.state = state
    if (occurrence.type === "recovered") this.under = []
    this.under.push(...starts)
    for (const { attempt, iteration, step } of starts) {
      this.begun.push(`${this.idOf(step)}${iteration === null ? "" : `[${iteration}]`}/${attempt}`)
    }
    return this
  }

  /** Carries out one attempt that is under way; false when there is none. */
  step(): boolean {
    const [start] = this.under.splice(Math.floor(this.roll() * this.under.length), 1)
    if (start === undefined) return false
    const time = { now: this.now, clock: () => 0 }
    const performed = allOf(perform(this.workflow, this.facts, this.state, start, time, this.texts))
    if (performed.kind === "occurred") this.tell(performed.occurrence)
    else {
      this.effects.push(performed.effect)
      const { inputs } = performed.effect
      this.tell(occurs(start, this.outcomes(performed.effect), inputs, this.texts, 0.5))
    }
    return true
  }

  /** Until nothing is under way; then time goes on to whatever waits, and so on. */
  finish(): this {
    for (;;) {
      while (this.step());
      const waiting = this.state.steps.flatMap(({ wait }, step) => (wait === null ? [] : [{ step, until: wait.until }]))
      const [next] = waiting.toSorted((left, right) => left.until - right.until)
      if (next === undefined) return this
      this.now = Math.max(this.now, next.until)
      this.tell({ type: "due", step: next.step })
    }
  }

  run(): this {
    return this.tell({ type: "begun" }).finish()
  }

  /** `id: status` of each step in the plan's order; why, where it was skipped. */
  get ends(): ReadonlyArray<string> {
    return this.state.steps.map(({ skipReason, status }, i) => `${this.idOf(i)}: ${skipReason ?? status}`)
  }

  at(id: string) {
    return this.state.steps[this.workflow.plan.findIndex(({ step }) => step.id === id)]!
  }

  indexOf(id: string): number {
    return this.workflow.plan.findIndex(({ step }) => step.id === id)
  }

  private idOf(step: number): string {
    return this.workflow.plan[step]!.step.id
  }
}
