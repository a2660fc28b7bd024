import { describe, expect, it } from "@effect/vitest"
import { type Part, partOf, stateOf } from "../src/Progress.ts"
import { isRetryable, type Occurrence } from "../src/Run.ts"
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
