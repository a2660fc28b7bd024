import { Clock, Context, Effect, Queue, type Semaphore } from "effect"
import { derivedId, prefixes } from "@tidegate/model/Ids"
import { inTurns } from "@tidegate/model/LoopTurn"
import { payloadGone } from "@tidegate/storage/Tables"
import { RunJournal } from "@tidegate/storage/RunJournal"
import type { DueRun, StoredPart } from "@tidegate/storage/Runs"
import { advance } from "@tidegate/workflows/Advance"
import { type Effect as StepEffect, occurred } from "@tidegate/workflows/Inputs"
import type { Occurrence, RunState } from "@tidegate/workflows/Run"
import type { Outcome, StepError } from "@tidegate/workflows/StepKind"
import type { Workflow } from "@tidegate/workflows/Workflow"
import { factsOf, storedState, transitionOf } from "./RunRecord.ts"

export const failed = (code: string, message: string): Outcome => ({ kind: "failed", error: { code, message } })

export const unavailable = ({ step }: StepEffect): Outcome =>
  failed("ACTION_UNAVAILABLE", `a ${step.step.kind} step cannot be carried out here yet`)

/** Ends a call that a step makes after the time that the step gives it. */
export const inTime = <E, R>(
  { step: { timeoutMs } }: StepEffect,
  call: Effect.Effect<Outcome, E, R>
): Effect.Effect<Outcome, E, R> =>
  Effect.timeoutOrElse(call, {
    duration: timeoutMs,
    orElse: () => Effect.succeed(failed("TIMEOUT", `the step has not ended within ${timeoutMs} ms`))
  })

/**
 * What leaves the process for a step, in time: when that begins only who does it knows, because one that waits for its turn does not use it
 * up. `key` is the same for every attempt of a step of a run, and another one for any other.
 */
export const Effects = Context.Reference<{
  readonly carryOut: (effect: StepEffect, run: DueRun, key: string) => Effect.Effect<Outcome>
}>("@tidegate/entities/Workflow/Effects", {
  defaultValue: () => ({ carryOut: (effect) => Effect.succeed(unavailable(effect)) })
})

/** So long a run may go on. */
const longestLife = 60 * 86_400_000

export interface Work {
  readonly workflow: Workflow
  readonly about: { readonly id: string; readonly name: string; readonly version: number }
  readonly run: DueRun
  readonly parts: ReadonlyArray<StoredPart>
  /** Why nothing begins any more; null: it goes on. */
  readonly stop: StepError | null
  /** What runs of one workflow have under way at once. */
  readonly slots: Semaphore.Semaphore
}

const whyOver = ({ run, stop }: Work, now: number): StepError | null => {
  if (stop !== null) return stop
  if (run.headers === payloadGone)
    return { code: "PAYLOAD_UNAVAILABLE", message: "retention took what the run began with" }
  if (now - run.created_at.getTime() > longestLife)
    return { code: "RUN_EXPIRED", message: "the run is older than 60 days" }
  return null
}

/** What has happened to a run that comes from its rows. */
const arrivals = (work: Work, state: RunState, now: number): ReadonlyArray<Occurrence> => {
  const over = whyOver(work, now)
  const stopped: ReadonlyArray<Occurrence> = over === null ? [] : [{ type: "stopped", error: over }]
  if (state.status === "queued") return over === null ? [{ type: "begun" }] : stopped
  if (over !== null && work.run.headers === payloadGone) {
    // What was under way cannot begin again: of what it would be given, nobody has the half.
    const lost = state.steps.flatMap(({ attempt, iterations, status, wait }, step): ReadonlyArray<Occurrence> => {
      if (status !== "running" || wait !== null) return []
      return [{ type: "failed", step, attempt, iteration: iterations?.items.length ?? null, error: over, random: 0 }]
    })
    return [...stopped, ...lost]
  }
  const due = state.steps.flatMap(({ wait }, step): ReadonlyArray<Occurrence> =>
    wait !== null && wait.until <= now ? [{ type: "due", step }] : []
  )
  return [...stopped, { type: "recovered" }, ...due]
}

/**
 * Takes a run on until it is at its end, or waits. What changes is stored before anything leaves the process for it, and as soon as that has
 * come to something: a process that dies anywhere leaves a run that the next one takes on. It ends early where a commit does not succeed:
 * somebody else has the run, or the sweep comes back to it.
 */
export const carryOn = Effect.fnUntraced(function* (work: Work): Effect.fn.Return<void, never, RunJournal> {
  const { about, parts, run, slots, workflow } = work
  const journal = yield* RunJournal
  const { carryOut } = yield* Effects
  // A run whose payload is gone is stopped, and reads nothing.
  const facts = factsOf(run.headers === payloadGone ? { ...run, headers: "{}" } : run, about)
  const clock = (): number => performance.now()
  const happened = yield* Queue.unbounded<Occurrence>()
  let state = yield* storedState(workflow, parts)
  let part = run.parts
  let underWay = 0

  const begin = (effect: StepEffect): Effect.Effect<void> => {
    const { inputs, start, step } = effect
    const key = derivedId(prefixes.workflowStep, run.id, `${step.step.id}/${start.iteration ?? ""}`)
    const carriedOut = Effect.flatMap(slots.withPermits(1)(carryOut(effect, run, key)), (outcome) =>
      Queue.offer(happened, occurred(start, outcome, inputs.warnings, Math.random()).occurrence)
    )
    return Effect.asVoid(Effect.forkChild(carriedOut))
  }

  /** False: the run is no longer this process's. */
  const take = Effect.fnUntraced(function* (occurrence: Occurrence) {
    const now = yield* Clock.currentTimeMillis
    const advanced = yield* inTurns(advance(workflow, facts, state, occurrence, { now, clock }))
    if (advanced.state !== state) {
      const transition = yield* transitionOf(workflow, run, state, advanced, part + 1, now)
      if ((yield* journal.move(transition)) !== "stored") return false
      state = advanced.state
      part++
    }
    underWay += advanced.effects.length
    yield* Effect.forEach(advanced.effects, begin, { discard: true })
    return true
  })

  for (const occurrence of arrivals(work, state, yield* Clock.currentTimeMillis)) {
    if (!(yield* take(occurrence))) return
  }
  while (underWay > 0) {
    const occurrence = yield* Queue.take(happened)
    underWay--
    if (!(yield* take(occurrence))) return
  }
})
