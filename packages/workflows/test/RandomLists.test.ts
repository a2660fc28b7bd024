import { describe, expect, it } from "@effect/vitest"
import { type Part, partOf, stateOf } from "../src/Progress.ts"
import { attemptsOf, isRetryable, type Occurrence } from "../src/RunState.ts"
import { StepReports } from "../src/RunReport.ts"
import type { Workflow } from "../src/Workflow.ts"
import { call, compiled, edge, facts } from "./Graphs.ts"
import { dice, done, fails, Play } from "./Play.ts"

/**
 * Random lists, with random failures, restarts after any commit and retries of the step, beside an oracle that only knows how
 * often each element fails. The state is read from its journal entries after each commit.
 */

class Stored extends Play {
  readonly parts: Array<Part> = []

  override tell(occurrence: Occurrence): this {
    const before = this.state
    super.tell(occurrence)
    if (this.state === before) return this
    const part = JSON.parse(JSON.stringify(partOf(before, this.state))) as Part
    this.parts.push(part)
    this.state = stateOf(this.workflow, [part], before)
    return this
  }

  get iterations() {
    const reports = new StepReports("wfr_01kak203r6v1f7q0p5n3k2j4rs", this.workflow)
    for (const [i, { progress }] of this.parts.entries()) {
      reports.take({ part: i + 1, at: this.now, steps: JSON.stringify(progress) })
    }
    return reports.executions().find(({ step_id }) => step_id === "each")!.iterations!
  }
}

interface Given {
  readonly mode: "fail" | "continue" | "branch"
  /** How often each element fails before it succeeds. */
  readonly failures: ReadonlyArray<number>
  readonly retries: number
  readonly beginnings: number
}

/** The calls in their order, as element and attempt, and what becomes of each element. */
const oracle = ({ beginnings, failures, mode, retries }: Given) => {
  const left = [...failures]
  const calls: Array<string> = []
  const ends = failures.map(() => "skipped 0")
  for (let n = 0; n < beginnings; n++) {
    if (n > 0 && !ends.some((end) => !end.startsWith("succeeded"))) break
    for (const [i, end] of ends.entries()) if (!end.startsWith("succeeded")) ends[i] = "skipped 0"
    for (const [i, end] of ends.entries()) {
      if (end.startsWith("succeeded")) continue
      const failed = Math.min(left[i]!, retries + 1)
      left[i]! -= failed
      const attempts = Math.min(failed + 1, retries + 1)
      for (let attempt = 1; attempt <= attempts; attempt++) calls.push(`${i}/${attempt}`)
      ends[i] = `${failed > retries ? "failed" : "succeeded"} ${attempts}`
      if (failed > retries && mode !== "continue") break
    }
  }
  return { calls, ends }
}

/** A graph is compiled once: it is the same for many lists. */
const workflows = new Map<string, Workflow>()

const workflowOf = (mode: Given["mode"], retries: number): Workflow => {
  const known = workflows.get(`${mode} ${retries}`)
  if (known !== undefined) return known
  const config = { for_each: "{{trigger.body}}", on_error: mode, retry: { interval: 1_000, count: retries } }
  const last = edge("each", "last", mode === "branch" ? { source_port: "error" } : {})
  const made = compiled([call("each", config), call("last")], [edge("", "each"), last])
  workflows.set(`${mode} ${retries}`, made)
  return made
}

const played = (given: Given, roll: () => number): Stored => {
  const { beginnings, failures, mode, retries } = given
  const workflow = workflowOf(mode, retries)
  const left = [...failures]
  const play = new Stored(workflow, facts(failures.map((_, i) => i)), ({ start: { iteration } }) =>
    iteration !== null && left[iteration]!-- > 0 ? fails() : done(iteration)
  )
  const run = (): void => {
    play.tell({ type: "begun" })
    do {
      // The process ends with calls under way: the next one begins them again.
      if (roll() < 0.2) play.tell({ type: "recovered" })
      if (roll() < 0.1) play.tell({ type: "held" }).tell({ type: "released" })
    } while (play.step())
    play.finish()
  }
  run()
  for (let n = 1; n < beginnings && isRetryable(play.at("each")); n++) {
    play.tell({ type: "retried", step: 0 })
    run()
  }
  return play
}

describe("Random lists", () => {
  it("A list calls each element until it has succeeded, and never again, whatever ends and is retried", () => {
    for (let seed = 0; seed < 2_000; seed++) {
      const roll = dice(seed)
      const given: Given = {
        mode: (["fail", "continue", "branch"] as const)[seed % 3]!,
        failures: Array.from({ length: Math.floor(roll() * 7) }, () => (roll() < 0.6 ? 0 : 1 + Math.floor(roll() * 4))),
        retries: Math.floor(roll() * 3),
        beginnings: 1 + Math.floor(roll() * 4)
      }
      const expected = oracle(given)
      const play = played(given, roll)
      const calls = play.effects
        .filter(({ step }) => step.step.id === "each")
        .map(({ start }) => `${start.iteration}/${start.attempt}`)
      expect([seed, calls]).toEqual([seed, expected.calls])
      const { elements, failed } = play.iterations
      expect([seed, elements?.map((one) => `${one.status} ${one.attempt_count}`)]).toEqual([seed, expected.ends])
      expect(failed).toBe(expected.ends.filter((end) => end.startsWith("failed")).length)
      const { output, size, status } = play.at("each")
      if (status !== "succeeded") continue
      const items = expected.ends.map((end, i) => (end.startsWith("succeeded") ? i : null))
      expect([seed, output]).toEqual([seed, { items, count: items.length }])
      expect(size).toBe(items.reduce<number>((sum, item) => sum + (item === null ? 0 : 1), 0))
    }
  })
})

interface Beside extends Given {
  readonly concurrency: number
}

const besideOf = ({ concurrency, mode, retries }: Beside): Workflow => {
  const name = `${mode} ${retries} ${concurrency}`
  const known = workflows.get(name)
  if (known !== undefined) return known
  const retry = { interval: 1_000, count: retries }
  const each = call("each", { for_each: "{{trigger.body}}", on_error: mode, retry, concurrency })
  const made = compiled(
    [each, call("last")],
    [edge("", "each"), edge("each", "last", mode === "branch" ? { source_port: "error" } : {})]
  )
  workflows.set(name, made)
  return made
}

describe("Random lists whose elements are called beside each other", () => {
  it("Each element is called as often as one by one, at most so many are under way, and outputs keep the list's order", () => {
    for (let seed = 0; seed < 5_000; seed++) {
      const roll = dice(seed)
      const given: Beside = {
        mode: (["fail", "continue", "branch"] as const)[seed % 3]!,
        failures: Array.from({ length: Math.floor(roll() * 7) }, () => (roll() < 0.7 ? 0 : 1 + Math.floor(roll() * 4))),
        retries: Math.floor(roll() * 3),
        beginnings: 1 + Math.floor(roll() * 4),
        concurrency: 2 + Math.floor(roll() * 3)
      }
      const { beginnings, concurrency, failures, mode } = given
      const failed = failures.map(() => 0)
      const play = new Stored(
        besideOf(given),
        facts(failures.map((_, i) => i)),
        ({ start: { iteration } }) => {
          if (iteration === null) return done(iteration)
          return failed[iteration]!++ < failures[iteration]! ? fails() : done(iteration)
        },
        roll
      )
      const each = () => play.at("each")
      /** What is not as it has to be: one comparison for each list, because thousands of them take long. */
      const faults: Array<string> = []
      const fault = (isFault: boolean, name: string): void => void (isFault && faults.push(name))
      const isEnding = (): boolean =>
        mode !== "continue" && (each().iterations?.notes.some(({ error }) => error !== null) ?? false)
      let since = 0
      let ended: number | null = null
      const check = (): void => {
        const { iterations } = each()
        fault((iterations?.under?.length ?? 0) > concurrency, "more are under way")
        if (!isEnding()) return
        const begun = play.begun.filter((one) => one.startsWith("each")).length
        fault((ended ??= begun) < begun, "something began after the failure")
      }
      const run = (): void => {
        since = play.effects.length
        ended = null
        play.tell({ type: "begun" })
        do {
          check()
          if (each().status !== "running") break
          // The process ends with calls under way: the next one begins them again, and nothing else.
          if (roll() < 0.2) {
            const { iterations } = each()
            const under = attemptsOf(each()).map(({ attempt, iteration }) => `each[${iteration}]/${attempt}`)
            const before = play.begun.length
            play.tell({ type: "recovered" })
            const again = play.begun.splice(before)
            fault(iterations !== null && again.join() !== under.join(), "other calls began again")
          }
          if (roll() < 0.1) play.tell({ type: "held" }).tell({ type: "released" })
          // Attempts that are due may begin although others are under way.
          if (roll() < 0.2) play.now += 1_000
        } while (play.step())
        play.finish()
        const calls = play.effects.slice(since).map(({ start }) => `${start.step} ${start.iteration}/${start.attempt}`)
        fault(new Set(calls).size < calls.length, "a call was made twice")
      }
      run()
      for (let n = 1; n < beginnings && isRetryable(each()); n++) {
        play.tell({ type: "retried", step: 0 })
        run()
      }
      const { error, output, ports, status } = each()
      const elements = play.iterations.elements!
      for (const [i, one] of elements.entries()) {
        fault(one.status === "succeeded" && failed[i] !== failures[i]! + 1, `${i} was not called until it succeeded`)
        fault(one.status === "failed" && (failed[i] === 0 || failed[i]! > failures[i]!), `${i} has not failed`)
        fault(one.status === "running" || one.status === "pending", `${i} has no end`)
        fault(one.status === "skipped" && mode === "continue", `${i} was skipped`)
      }
      const isWhole = elements.every((one) => one.status === "succeeded")
      fault(status !== (isWhole || mode === "continue" ? "succeeded" : "failed"), `the step has ${status}`)
      if (mode === "continue") {
        // How often each element is called does not depend on the others, so it is as one by one.
        const ends = elements.map((one) => `${one.status} ${one.attempt_count}`)
        fault(ends.join() !== oracle(given).ends.join(), `${ends.join()} differs from one by one`)
      }
      const items = elements.map((one, i) => (one.status === "succeeded" ? i : null))
      const expected = status === "failed" ? null : { items, count: items.length }
      fault(JSON.stringify(output) !== JSON.stringify(expected), "the outputs are others")
      if (status === "failed") {
        fault(
          error?.code !== "BAD_RESPONSE" || ports.join() !== (mode === "branch" ? "error" : ""),
          "it ends otherwise"
        )
      }
      expect([seed, faults]).toEqual([seed, []])
    }
  })

  it("Without a bound, or with 1, nothing of a list is stored in another way than before", () => {
    const given = { mode: "continue", failures: [0, 1, 0], retries: 1, beginnings: 1 } as const
    const plain = played(given, () => 0.5)
    const bound = new Stored(
      besideOf({ ...given, concurrency: 1 }),
      plain.facts,
      (
        (left) =>
        ({ start: { iteration } }) =>
          iteration !== null && left[iteration]!-- > 0 ? fails() : done(iteration)
      )([...given.failures] as Array<number>)
    )
    bound.run()
    expect(bound.parts).toEqual(plain.parts)
    expect(JSON.stringify(plain.parts)).not.toMatch(/"under"|"length"/)
  })
})
