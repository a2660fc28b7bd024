import { describe, expect, it } from "@effect/vitest"
import { partOf, stateOf } from "../src/Progress.ts"
import type { Occurrence } from "../src/RunState.ts"
import { undoFault, undoIncomplete } from "../src/Undo.ts"
import { call, compiled, edge, facts } from "./Graphs.ts"
import { dice, done, fails, Play } from "./Play.ts"

/**
 * Random graphs whose runs are undone, beside an oracle that only knows what was called, and when each call ended. The state is read
 * from its journal entries after each commit. `TIDEGATE_UNDO_RUNS` sets the number of runs.
 */

const runs = Number(process.env["TIDEGATE_UNDO_RUNS"] ?? 150)

type Written = Readonly<Record<string, unknown>>

interface Saga {
  readonly steps: ReadonlyArray<Written>
  readonly edges: ReadonlyArray<Written>
  /** By the ids of calls: how often they fail before they succeed. */
  readonly failures: ReadonlyMap<string, number>
  /** By the ids of steps: what undoes them. */
  readonly undoneBy: ReadonlyMap<string, string>
}

/** Attempts of a compensation. */
const attempts = 2

const randomSaga = (roll: () => number): Saga => {
  const count = 1 + Math.floor(roll() * 8)
  const failures = new Map<string, number>()
  const undoneBy = new Map<string, string>()
  const steps: Array<Written> = []
  const edges: Array<Written> = []
  for (let i = 0; i < count; i++) {
    const id = `step_${i}`
    if (roll() < 0.2) failures.set(id, 1)
    const on_error = roll() < 0.3 ? "continue" : "fail"
    const undo = roll() < 0.7 ? `undo_${i}` : null
    const own = call(id, { on_error, ...(undo === null ? {} : { compensate: undo }) })
    if (undo === null) steps.push(own)
    else {
      undoneBy.set(id, undo)
      if (roll() < 0.4) failures.set(undo, 1 + Math.floor(roll() * attempts))
      const config = { retry: { interval: 1_000, count: attempts - 1 } }
      const undoing = call(undo, config, { of: `{{steps.${id}.output.n}}` })
      // The written order has no effect.
      steps.push(...(roll() < 0.5 ? [own, undoing] : [undoing, own]))
    }
    const sources = new Set(Array.from({ length: 1 + Math.floor(roll() * 2) }, () => Math.floor(roll() * (i + 1)) - 1))
    for (const source of sources) edges.push(edge(source < 0 ? "" : `step_${source}`, id))
  }
  return { steps, edges, failures, undoneBy }
}

interface Called {
  readonly id: string
  readonly succeeded: boolean
  readonly attempt: number
  readonly input: unknown
}

/** The run, and what its calls were in the order in which they ended. */
class World extends Play {
  readonly calls: Array<Called> = []

  constructor({ edges, failures, steps }: Saga, roll: () => number) {
    const left = new Map(failures)
    super(
      compiled(steps, edges),
      facts(),
      ({ inputs, start, step: { step } }) => {
        const more = left.get(step.id) ?? 0
        left.set(step.id, more - 1)
        const succeeded = more <= 0
        this.calls.push({ id: step.id, succeeded, attempt: start.attempt, input: inputs.values["of"] })
        return succeeded ? done({ n: this.calls.length }) : fails()
      },
      roll
    )
  }

  override tell(occurrence: Occurrence): this {
    const before = this.state
    super.tell(occurrence)
    if (this.state === before) return this
    const part = JSON.parse(JSON.stringify(partOf(before, this.state))) as ReturnType<typeof partOf>
    this.state = stateOf(this.workflow, [part], before)
    return this
  }
}

const disabled = { code: "WORKFLOW_DISABLED", message: "the workflow is disabled" }

interface Played {
  readonly world: World
  /** How many calls had ended when the run was stopped from outside; null: it was not. */
  readonly stoppedAfter: number | null
}

const played = (saga: Saga, roll: () => number, { clock, stops }: { clock: () => number; stops: boolean }): Played => {
  const world = new World(saga, roll)
  const stopsAfter = stops && roll() < 0.5 ? Math.floor(roll() * 10) : null
  let stoppedAfter: number | null = null
  world.tell({ type: "begun" })
  do {
    world.now += clock()
    if (roll() < 0.2) world.tell({ type: "recovered" })
    if (roll() < 0.1) world.tell({ type: "held" }).tell({ type: "released" })
    if (stopsAfter !== null && stoppedAfter === null && world.calls.length >= stopsAfter) {
      if (world.state.finishedAt === null) stoppedAfter = world.calls.length
      world.tell({ type: "stopped", error: disabled })
    }
  } while (world.step() || waited(world))
  return { world, stoppedAfter }
}

const waited = (world: World): boolean => {
  const step = world.state.steps.findIndex(({ wait }) => wait !== null)
  if (step < 0) return false
  world.now = Math.max(world.now, world.state.steps[step]!.wait!.until)
  world.tell({ type: "due", step })
  return true
}

/** The calls of compensations that are expected, in their order, and the ids of those that fail for good. */
const oracle = ({ failures, steps, undoneBy }: Saga, calls: ReadonlyArray<Called>) => {
  const endsRun = new Set(
    steps.flatMap(({ config, id }) => ((config as { readonly on_error?: string }).on_error === "fail" ? [id] : []))
  )
  const own = calls.filter(({ id }) => id.startsWith("step_"))
  const hasFailed = own.some(({ id, succeeded }) => !succeeded && endsRun.has(id))
  const undos: Array<string> = []
  const left: Array<string> = []
  const done = hasFailed ? own.filter(({ id, succeeded }) => succeeded && undoneBy.has(id)).toReversed() : []
  for (const { id } of done) {
    const undo = undoneBy.get(id)!
    const failed = failures.get(undo) ?? 0
    for (let attempt = 1; attempt <= Math.min(failed + 1, attempts); attempt++) undos.push(`${undo}/${attempt}`)
    if (failed >= attempts) left.push(undo)
  }
  return { hasFailed, undos, left, all: done.length }
}

describe("Random undos", () => {
  it(`${runs} random runs are undone in reverse order, step by step, as an oracle predicts`, () => {
    const seen = { undone: 0, incomplete: 0, several: 0 }
    for (let seed = 0; seed < runs; seed++) {
      const roll = dice(seed)
      const saga = randomSaga(roll)
      const { world } = played(saga, roll, { clock: () => 1, stops: false })
      const { calls, state, workflow } = world
      const expected = oracle(saga, calls)
      if (expected.all > 0) seen.undone++
      if (expected.all > 1) seen.several++
      if (expected.left.length > 0) seen.incomplete++
      const first = calls.findIndex(({ id }) => id.startsWith("undo_"))
      const undos = first < 0 ? [] : calls.slice(first)
      expect([seed, undos.map(({ attempt, id }) => `${id}/${attempt}`)]).toEqual([seed, expected.undos])
      expect([seed, state.outcome === "failed"]).toEqual([seed, expected.hasFailed])
      // Each compensation reads the output of what it undoes.
      for (const { id, input } of undos) {
        const of = calls.findIndex((one) => one.id === id.replace("undo_", "step_") && one.succeeded)
        expect([seed, id, input]).toEqual([seed, id, of + 1])
      }
      const fault = undoFault(workflow, state, disabled)
      expect([seed, fault?.error.code]).toEqual([seed, expected.left.length === 0 ? undefined : undoIncomplete])
      if (fault !== null) {
        expect(fault.error.message).toContain(`${expected.left.length} of ${expected.all} steps are not undone`)
        expect(expected.left).toContain(workflow.plan[fault.step]!.step.id)
      }
      for (const [i, { step }] of workflow.plan.entries()) {
        const { skipReason, status } = state.steps[i]!
        if (!step.id.startsWith("undo_")) continue
        const ran = expected.undos.some((one) => one.startsWith(`${step.id}/`))
        const wanted = !ran ? "not_needed" : expected.left.includes(step.id) ? "failed" : "succeeded"
        expect([seed, step.id, skipReason ?? status]).toEqual([seed, step.id, wanted])
      }
    }
    // The runs are such that they show something.
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(runs / 15)
  })

  it("A stop from outside ends an undo: what is under way ends, and nothing else begins", () => {
    for (let seed = 0; seed < runs; seed++) {
      const roll = dice(seed)
      const saga = randomSaga(roll)
      const { stoppedAfter, world } = played(saga, roll, { clock: () => 1, stops: true })
      const { calls, state, workflow } = world
      expect([seed, state.finishedAt === null]).toEqual([seed, false])
      const open = state.steps.filter(({ status }) => status === "pending" || status === "running")
      expect([seed, open]).toEqual([seed, []])
      const undos = calls.filter(({ id }) => id.startsWith("undo_"))
      if (state.outcome === "cancelled") expect([seed, undos]).toEqual([seed, []])
      if (stoppedAfter === null || state.outcome !== "failed") continue
      const since = calls.slice(stoppedAfter).filter(({ id }) => id.startsWith("undo_"))
      // At most the call that was under way.
      expect([seed, since.length <= 1]).toEqual([seed, true])
      const isLeft = [...saga.undoneBy].some(
        ([id, undo]) => world.at(id).status === "succeeded" && world.at(undo).status !== "succeeded"
      )
      expect([seed, undoFault(workflow, state, null) !== null]).toEqual([seed, isLeft])
    }
  })

  it("When clocks of processes differ, a step is still undone before the steps that led to it", () => {
    for (let seed = 0; seed < runs; seed++) {
      const roll = dice(seed)
      const saga = randomSaga(roll)
      const clock = (): number => Math.floor(roll() * 20_000) - 10_000
      const { world } = played(saga, roll, { clock, stops: false })
      const order = world.calls.flatMap(({ attempt, id }) => (id.startsWith("undo_") && attempt === 1 ? [id] : []))
      expect([seed, new Set(order).size]).toEqual([seed, order.length])
      for (const [at, id] of order.entries()) {
        const of = world.workflow.plan[world.indexOf(id.replace("undo_", "step_"))]!
        const later = order.slice(at + 1).map((other) => world.indexOf(other.replace("undo_", "step_")))
        const follows = later.filter((other) => world.workflow.plan[other]!.ancestors.has(of.index))
        expect([seed, id, follows]).toEqual([seed, id, []])
      }
    }
  })
})
