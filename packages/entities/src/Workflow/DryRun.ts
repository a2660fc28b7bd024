import { Clock, Duration, Effect, Option, Queue, type Scope } from "effect"
import { cpuMillis, inSlices } from "@tidegate/runtime/EventLoopBudget"
import type { RunTransition } from "@tidegate/storage/workflows/RunJournal"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import { advance } from "@tidegate/workflows/Advance"
import type { Effect as StepEffect } from "@tidegate/workflows/Inputs"
import { attemptsOf, type Facts, type Occurrence, type RunState, type Wait } from "@tidegate/workflows/RunState"
import type { StepError } from "@tidegate/workflows/StepKind"
import type { Workflow } from "@tidegate/workflows/Workflow"
import { secretTextsOf, transitionOf } from "./RunRecord.ts"
import { carryingOut, keyOf } from "./RunWork.ts"
import type { RunLinks } from "./StepLinks.ts"

/** The longest duration of a test, whatever its steps wait for. */
const longest = Duration.seconds(60)
/**
 * Limits of a test: its transitions, the characters of JSON in all outputs of its steps, and the characters of the previews that
 * are kept for its answer (the first ones). A step that runs once for each element of a list can make one transition for
 * each element.
 */
const max = { transitions: 2_000, outputs: 10 * 1_048_576, previews: 4 * 1_048_576 }

export interface DryRun {
  readonly workflow: Workflow
  readonly run: DueRun
  readonly facts: Facts
  /** The URLs of its steps that wait; absent: there are none. */
  readonly links?: RunLinks | null
  /** The state that it begins with, and the first occurrence. */
  readonly from: RunState
  readonly first: Occurrence
  /** Whether calls to other systems are made: then the time between attempts is real. */
  readonly live: boolean
  /** Whether the answer shows inputs and outputs of the steps. */
  readonly previews: boolean
}

export interface DryRunOutcome {
  readonly state: RunState
  readonly transitions: ReadonlyArray<RunTransition>
}

/**
 * Executes a run that is not stored, with the engine of real runs, and returns the rows that a real run would have. A delay takes
 * no time: when everything waits, the run's clock is moved forward to the end of the earliest wait.
 */
export const conduct = Effect.fnUntraced(function* (dryRun: DryRun): Effect.fn.Return<DryRunOutcome> {
  const { facts, first, from, links = null, live, run, workflow } = dryRun
  const carryOut = yield* carryingOut
  const texts = yield* inSlices(secretTextsOf(facts, from, links))
  const happened = yield* Queue.unbounded<Occurrence>()
  const transitions: Array<RunTransition> = []
  let state = from
  let underWay = 0
  let outputs = 0
  let room = dryRun.previews ? max.previews : 0
  /** How far (ms) the run's clock is ahead of the real time. */
  let ahead = 0
  const now = Effect.map(Clock.currentTimeMillis, (ms) => ms + ahead)

  const begin = (effect: StepEffect): Effect.Effect<void, never, Scope.Scope> => {
    const carriedOut = carryOut({ effect, run, key: keyOf(run, effect), texts })
    return Effect.asVoid(
      Effect.forkScoped(Effect.flatMap(carriedOut, (occurrence) => Queue.offer(happened, occurrence)))
    )
  }

  const take = Effect.fnUntraced(function* (occurrence: Occurrence) {
    const at = yield* now
    const advanced = yield* inSlices(advance(workflow, facts, state, occurrence, { now: at, clock: cpuMillis }, texts))
    if (advanced.state !== state) {
      const writing = { part: transitions.length + 1, now: at, due: null, moves: false, carried: null, resources: null }
      const transition = yield* inSlices(transitionOf(workflow, run, state, advanced, texts, writing))
      outputs += transition.outputs?.length ?? 0
      const previews = (transition.previews?.length ?? 0) > room ? null : transition.previews
      room -= previews?.length ?? 0
      // The outputs are in the state.
      transitions.push({ ...transition, outputs: null, previews })
      state = advanced.state
    }
    return advanced.effects
  })

  const takeAndBegin = Effect.fnUntraced(function* (occurrence: Occurrence) {
    const effects = yield* take(occurrence)
    underWay += effects.length
    yield* Effect.forEach(effects, begin, { discard: true })
  })

  /** Moves the clock to the next step that is due. Only the wait before another attempt of a real call takes real time. */
  const wait = Effect.gen(function* () {
    const [next] = waitsOf(state).toSorted((left, right) => left.wait.until - right.wait.until)
    if (next === undefined) return yield* Effect.die(new Error("a run that has not ended waits for nothing"))
    const left = Math.max(0, next.wait.until - (yield* now))
    if (live && next.wait.kind === "retry") yield* Effect.sleep(left)
    else ahead += left
    return yield* takeAndBegin({ type: "due", step: next.step })
  })

  const carryOn = Effect.gen(function* () {
    yield* takeAndBegin(first)
    while (state.finishedAt === null) {
      if (transitions.length > max.transitions) return tooMuch(`more than ${max.transitions} transitions`)
      if (outputs > max.outputs) return tooMuch(`more than ${max.outputs} characters of output`)
      if (underWay === 0) yield* wait
      else {
        const occurrence = yield* Queue.take(happened)
        underWay--
        yield* takeAndBegin(occurrence)
      }
    }
    return null
  })

  const ended = yield* Effect.timeoutOption(Effect.scoped(carryOn), longest)
  const error = Option.getOrElse(ended, (): StepError => ({
    code: "TIMEOUT",
    message: "the test has not ended within 60 seconds"
  }))
  if (error !== null) for (const occurrence of cutOff(state, error)) yield* take(occurrence)
  return { state, transitions }
})

const waitsOf = ({ steps }: RunState): ReadonlyArray<{ readonly step: number; readonly wait: Wait }> =>
  steps.flatMap(({ status, wait }, step) => (status === "running" && wait !== null ? [{ step, wait }] : []))

const tooMuch = (what: string): StepError => ({ code: "TEST_LIMIT_EXCEEDED", message: `the test has come to ${what}` })

/** Ends the steps that are under way, and begins no other. */
const cutOff = (state: RunState, error: StepError): ReadonlyArray<Occurrence> => [
  { type: "stopped", error },
  ...state.steps.flatMap((begun, step) =>
    attemptsOf(begun).map(({ attempt, iteration }): Occurrence => {
      return { type: "failed", step, attempt, iteration, error, random: 0 }
    })
  )
]
