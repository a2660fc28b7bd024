import { Clock, Context, Effect, identity, type Semaphore } from "effect"
import type { Database } from "@tidegate/storage/Database"
import { derivedId, prefixes } from "@tidegate/model/Ids"
import type { Values } from "@tidegate/model/Message"
import { cpuMillis, inSlices } from "@tidegate/runtime/EventLoopBudget"
import { isOwnInput } from "@tidegate/storage/workflows/RunInputs"
import { payloadGone } from "@tidegate/storage/Tables"
import { type Moved, RunJournal } from "@tidegate/storage/workflows/RunJournal"
import type { DueRun, StoredPart } from "@tidegate/storage/workflows/Runs"
import { advance } from "@tidegate/workflows/Advance"
import { type Effect as StepEffect, occurred } from "@tidegate/workflows/Inputs"
import { attemptsOf, type Occurrence, type RunState, type StepState } from "@tidegate/workflows/RunState"
import { type LabelTemplate, labelling } from "@tidegate/workflows/RunLabel"
import type { SecretTexts } from "@tidegate/workflows/SecretTexts"
import type { Outcome, StepError } from "@tidegate/workflows/StepKind"
import type { Workflow } from "@tidegate/workflows/Workflow"
import { carriedOf, carriedTo, carriesBeyond, unpacked } from "./Carried.ts"
import { giveUp } from "./GiveUp.ts"
import { dueAt, takenApart, longestLife, secretTextsOf, storedState, transitionOf } from "./RunRecord.ts"
import { Answering } from "./RunAnswers.ts"
import { Room } from "./RunRoom.ts"
import { OwnRuns } from "./RunsInHand.ts"
import { placeOf } from "./PlaceOf.ts"
import type { Signals } from "./Signals.ts"
import { type RunLinks, StepLinks } from "./StepLinks.ts"
import { runTelemetry } from "./RunTelemetry.ts"
import { Loops } from "../Loops.ts"

export const failed = (code: string, message: string): Outcome => ({ kind: "failed", error: { code, message } })

export const unavailable = ({ step }: StepEffect): Outcome =>
  failed("ACTION_UNAVAILABLE", `a ${step.step.kind} step cannot be carried out here yet`)

/** Ends a step's call after the step's timeout. */
export const inTime = <E, R>(
  { step: { timeoutMs } }: StepEffect,
  call: Effect.Effect<Outcome, E, R>
): Effect.Effect<Outcome, E, R> =>
  Effect.timeoutOrElse(call, {
    duration: timeoutMs,
    orElse: () => Effect.succeed(failed("TIMEOUT", `the step has not ended within ${timeoutMs} ms`))
  })

/**
 * Executes the calls that leave the process, with the step's timeout. The executor starts the timeout, because waiting for a
 * permit does not count. `key` is the same for every attempt of a step of a run, and differs for every other step.
 */
export const Effects = Context.Reference<{
  readonly carryOut: (effect: StepEffect, run: DueRun, key: string) => Effect.Effect<Outcome>
}>("@tidegate/entities/Workflow/Effects", {
  defaultValue: () => ({ carryOut: (effect) => Effect.succeed(unavailable(effect)) })
})

/** A call that a step makes for its run. `key`: the step's idempotency key. */
interface Call {
  readonly effect: StepEffect
  readonly run: DueRun
  readonly key: string
  /** The secret texts of the run. */
  readonly texts: SecretTexts
}

/**
 * Executes a call through `within`, which waits for a permit, and returns the occurrence. A defect in the call, or in reading its
 * result, fails the step with `INTERNAL_ERROR`: otherwise the run would wait forever, and keep its memory.
 */
export const carryingOut = Effect.map(
  Effects,
  ({ carryOut }) =>
    (
      { effect, key, run, texts }: Call,
      within: (call: Effect.Effect<Outcome>) => Effect.Effect<Outcome> = identity
    ): Effect.Effect<Occurrence> => {
      const { inputs, start, step } = effect
      return within(Effect.suspend(() => carryOut(effect, run, key))).pipe(
        Effect.flatMap((outcome) => {
          const made = occurred(start, outcome, inputs, texts, Math.random())
          return "type" in made ? Effect.succeed(made) : inSlices(made)
        }),
        Effect.catchDefect((defect) => {
          const about = { run_id: run.id, step_id: step.step.id, place: placeOf(defect) }
          const error = { code: "INTERNAL_ERROR", message: "the step broke down" }
          return Effect.as(Effect.logError("a step broke down", about), {
            type: "failed" as const,
            ...start,
            error,
            random: 0
          })
        })
      )
    }
)

/** The idempotency key of a step's call: the same for every attempt in a run, and different for each element of a list. */
export const keyOf = (run: DueRun, { start, step }: StepEffect): string =>
  derivedId(prefixes.workflowStep, run.id, `${step.step.id}/${start.iteration ?? ""}`)

export interface Work {
  readonly workflow: Workflow
  readonly about: { readonly id: string; readonly name: string; readonly version: number }
  readonly run: DueRun
  /** The stored journal entries after those in its carried data. */
  readonly parts: ReadonlyArray<StoredPart>
  /** The reason why no more steps begin; null: the run continues. */
  readonly stop: StepError | null
  /** The permits for calls of one workflow. */
  readonly slots: Semaphore.Semaphore
  /** The template of the labels of the workflow's runs; null: they have none. */
  readonly label?: LabelTemplate | null
  /** For a run that begins: the current resources that its steps name, as JSON. */
  readonly resources?: string | null
  /** Called when a wait begins, with its end (Unix ms). */
  readonly waits?: (until: number, now: number) => void
  /** Called with the growth of the steps' outputs, in characters. */
  readonly grew?: (by: number) => void
  readonly signals: Signals
}

const broken = { code: "INTERNAL_ERROR", message: "the run cannot be carried on" }
const unstorable = { code: "INTERNAL_ERROR", message: "what the run has come to cannot be stored" }

const keptBy = ({ steps }: RunState): number => steps.reduce((sum, { size }) => sum + size, 0)

const whyOver = ({ run, stop }: Work, isGone: boolean, now: number): StepError | null => {
  if (stop !== null) return stop
  if (isGone) return { code: "PAYLOAD_UNAVAILABLE", message: "retention took what the run began with" }
  if (now - run.created_at.getTime() >= longestLife)
    return { code: "RUN_EXPIRED", message: "the run is older than 60 days" }
  return null
}

/** The occurrences that a run begins with when it is read from its rows. */
const arrivals = (work: Work, isGone: boolean, state: RunState, now: number): ReadonlyArray<Occurrence> => {
  const over = whyOver(work, isGone, now)
  const stopped: ReadonlyArray<Occurrence> = over === null ? [] : [{ type: "stopped", error: over }]
  // Runs of a paused workflow are not read, so a held run is released here.
  const released: ReadonlyArray<Occurrence> = state.held ? [{ type: "released" }] : []
  if (state.status === "queued") return over === null ? [...released, { type: "begun" }] : stopped
  if (over !== null && isGone) {
    // A call that was under way cannot begin again: half of its input is gone.
    const lost = state.steps.flatMap((begun, step) =>
      attemptsOf(begun).map(({ attempt, iteration }): Occurrence => {
        return { type: "failed", step, attempt, iteration, error: over, random: 0 }
      })
    )
    return [...stopped, ...lost]
  }
  const due = state.steps.flatMap(({ wait }, step): ReadonlyArray<Occurrence> =>
    wait !== null && wait.until <= now ? [{ type: "due", step }] : []
  )
  return [...stopped, { type: "recovered" }, ...released, ...due]
}

/** A run read from its rows, ready to continue. */
function* takenUp({ about, parts, run: stored, workflow }: Work, links: RunLinks | null) {
  const before = yield* unpacked(workflow, stored)
  const { run } = before
  const isGone = run.headers === payloadGone
  // A run whose payload is gone is stopped, so its payload is not parsed.
  const facts = yield* takenApart(isGone ? { ...run, headers: "{}" } : run, about, links)
  const state = yield* storedState(workflow, parts, before.state)
  return { run, isGone, facts, state, texts: yield* secretTextsOf(facts, state, links) }
}

/** What every run of a workflow is carried on with: read once, because a run is short. */
const carrying = Effect.gen(function* () {
  return {
    journal: yield* RunJournal,
    own: yield* OwnRuns,
    answers: yield* Answering,
    loops: yield* Loops,
    carryOut: yield* carryingOut,
    rooms: yield* Room,
    telemetry: yield* runTelemetry,
    links: yield* StepLinks
  }
})
type Carrying = Effect.Success<typeof carrying>

/**
 * Makes a function that continues a run until it ends, waits, or is held. Every change is stored before a call that follows from it leaves the process,
 * and again when the call has a result: wherever a process dies, the next one can continue the run. If a commit fails, this ends
 * early and returns why: another process has the run, the poller will find it again, or the refused run was ended.
 */
export const carryOn = Effect.map(
  carrying,
  (using) =>
    (work: Work): Effect.Effect<Moved, never, RunJournal | Database> =>
      Effect.suspend(() => {
        const { run } = work
        const stored = { parts: run.parts }
        return Effect.catchDefect(goOn(using, work, stored), (defect) =>
          Effect.andThen(
            Effect.logError("a run of a workflow broke down", { run_id: run.id, place: placeOf(defect) }),
            giveUp({ ...run, parts: stored.parts }, broken)
          )
        )
      })
)

/** `stored.parts`: the number of stored journal entries; updated here. */
const goOn = Effect.fnUntraced(function* (
  { answers, carryOut, journal, links, loops, own, rooms, telemetry }: Carrying,
  work: Work,
  stored: { parts: number }
): Effect.fn.Return<Moved, never, RunJournal | Database> {
  const { signals, slots, workflow } = work
  const room = rooms.of(work.run.team_id)
  const place = { team_id: work.run.team_id, workflow_id: work.about.id, run_id: work.run.id }
  const begun = yield* inSlices(takenUp(work, links.of(workflow, place)))
  const { facts, isGone, run, texts } = begun
  const tell = telemetry.of(work.about.id, isGone ? { ...run, headers: "{}" } : run, workflow)
  let { state } = begun
  answers.moved(run.id, workflow, state)
  const createdAt = run.created_at.getTime()
  const since = run.due_at.getTime()
  let due: number | null = since
  /** Whether steps have outputs that the carried data does not contain yet. */
  let hasMore = carriedTo(run) === 0 || work.parts.some(({ outputs }) => outputs !== null)
  let underWay = 0

  const within = (call: Effect.Effect<Outcome>): Effect.Effect<Outcome> => slots.withPermits(1)(room.within(call))

  const begin = (effect: StepEffect): Effect.Effect<void> => {
    const carriedOut = carryOut({ effect, run, key: keyOf(run, effect), texts }, within)
    const ended = Effect.map(carriedOut, (occurrence) => signals.offer({ occurrence, endsEffect: true }))
    return Effect.asVoid(Effect.forkChild(ended))
  }

  /** The state after an occurrence, and the rows that record it. */
  function* following(occurrence: Occurrence, now: number) {
    const advanced = yield* advance(workflow, facts, state, occurrence, { now, clock: cpuMillis }, texts)
    if (advanced.state === state) return { advanced, written: null }
    const next = dueAt(advanced.state, createdAt, Math.min(since, now))
    const isGiven = ({ error, size }: StepState, i: number): boolean =>
      size !== state.steps[i]!.size || error?.response !== state.steps[i]!.error?.response
    const hasGiven = hasMore || advanced.state.steps.some(isGiven)
    const carries = next !== null && next - createdAt > carriesBeyond && hasGiven && !isGone
    const carried = carries ? yield* carriedOf(workflow, run, advanced.state, stored.parts + 1) : null
    const moves = next !== null && (next !== due || carried !== null)
    const isFirst = stored.parts === 0
    const resources = isFirst ? (work.resources ?? null) : null
    const label = isFirst && work.label != null && !isGone ? yield* labelling(work.label, facts, texts) : null
    const writing = { part: stored.parts + 1, now, due: next, moves, carried, resources, label }
    const made = yield* transitionOf(workflow, run, state, advanced, texts, writing)
    const isSilent = made.status === "failed" && loops.isSystem(facts.trigger.headers as Values, run.team_id)
    const transition = isSilent ? { ...made, silent: true } : made
    return { advanced, written: { transition, hasMore: hasGiven && carried === null } }
  }

  /** Returns whether the run continues here; otherwise the result of the commit. */
  const take = Effect.fnUntraced(function* (occurrence: Occurrence) {
    const { advanced, written } = yield* inSlices(following(occurrence, yield* Clock.currentTimeMillis))
    if (written !== null) {
      const { dueAt: next, moves } = written.transition
      const moved = yield* journal.move(written.transition)
      if (moved === "refused") return yield* giveUp({ ...run, parts: stored.parts }, unstorable)
      if (moved !== "stored") return moved
      if (moves && next !== null) {
        own.waits(next)
        work.waits?.(next, written.transition.at)
      }
      // A step of another run may wait for its end, and its failure may begin a run: the poller looks for the arrival.
      const { finishedAt, status } = advanced.state
      if (finishedAt !== null && (isOwnInput(run.request_id) || status === "failed")) own.waits(written.transition.at)
      work.grew?.(keptBy(advanced.state) - keptBy(state))
      tell(state, advanced.state, written.transition)
      state = advanced.state
      answers.moved(run.id, workflow, state)
      due = next
      hasMore = written.hasMore
      stored.parts++
    }
    underWay += advanced.effects.length
    for (const effect of advanced.effects) yield* begin(effect)
    return "goes on"
  })

  for (const occurrence of arrivals(work, isGone, state, yield* Clock.currentTimeMillis)) {
    const taken = yield* take(occurrence)
    if (taken !== "goes on") return taken
  }
  while (underWay > 0 || signals.size > 0) {
    const { endsEffect, occurrence, taken: told } = yield* signals.take
    if (endsEffect) underWay--
    const before = stored.parts
    const taken = yield* take(occurrence)
    told?.(taken === "goes on" && stored.parts > before)
    if (taken !== "goes on") return taken
    // The step that was signalled ends now.
    if (occurrence.type !== "signalled") continue
    const ended = yield* take({ type: "due", step: occurrence.step })
    if (ended !== "goes on") return ended
  }
  return "stored"
})
