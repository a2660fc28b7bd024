import { describe, expect, it } from "@effect/vitest"
import type { Effect } from "../src/Inputs.ts"
import { matchedAs, waitingFor } from "../src/kinds/WaitStep.ts"
import { endedAs, waitingForRun } from "../src/kinds/WorkflowStep.ts"
import type { Outcome } from "../src/StepKind.ts"
import { branch, call, compiled, edge, facts, filter } from "./Graphs.ts"
import { dice, done, fails, Play } from "./Play.ts"

/**
 * Random graphs, carried out in random orders, beside an oracle that knows no order: what becomes of a step is worked out
 * from the edges into it, backwards.
 */

type Written = Readonly<Record<string, unknown>>

interface Graph {
  readonly steps: ReadonlyArray<Written>
  readonly edges: ReadonlyArray<Written>
  /** The calls that fail and the waits in vain, by id. */
  readonly failing: ReadonlySet<string>
}

const portsOf = (step: Written): ReadonlyArray<string> => {
  if (step["kind"] === "filter") return ["matched"]
  if (step["kind"] === "wait") return ["out", "timed_out"]
  if (step["kind"] === "branch") {
    return (step["config"] as { paths: ReadonlyArray<{ key: string }> }).paths.map(({ key }) => `path_${key}`)
  }
  return (step["config"] as { on_error?: string }).on_error === "branch" ? ["out", "error"] : ["out"]
}

/** `stops`: whether a failure may end the run. */
const randomGraph = (roll: () => number, stops: boolean): Graph => {
  const pick = <A>(...from: ReadonlyArray<A>): A => from[Math.floor(roll() * from.length)]!
  const count = 1 + Math.floor(roll() * 14)
  const failing = new Set<string>()
  const steps = Array.from({ length: count }, (_, i): Written => {
    const id = `step_${i}`
    const kind = roll()
    if (kind < 0.2) return filter(id, { body: { yes: pick(true, false) } })
    if (kind < 0.4) {
      const rules = Array.from({ length: 1 + Math.floor(roll() * 3) }, (_, key) => ({
        key: `${key}`,
        ...pick<object>(
          { rule: "always" },
          ...[true, false].map((yes) => ({ rule: "conditions", conditions: { body: { yes } } }))
        )
      }))
      return branch(id, roll() < 0.3 ? [...rules, { key: "rest", rule: "fallback" }] : rules)
    }
    if (roll() < 0.3) failing.add(id)
    if (kind < 0.5) {
      const config = { for: "event", amount: 1, unit: "hours" }
      return { id, kind: "wait", resource_id: "src_1", config }
    }
    const on_error = pick("continue", "branch", ...(stops ? ["fail"] : []))
    if (kind < 0.6) return { id, kind: "workflow", resource_id: "wfl_1", config: { on_error } }
    return call(id, { on_error })
  })
  const edges: Array<Written> = []
  for (const [i, step] of steps.entries()) {
    const sources = Array.from({ length: 1 + Math.floor(roll() * 3) }, () => Math.floor(roll() * (i + 1)) - 1)
    const seen = new Set<string>()
    for (const source of sources) {
      const port = source < 0 ? "out" : pick(...portsOf(steps[source]!))
      if (seen.has(`${source} ${port}`)) continue
      seen.add(`${source} ${port}`)
      const condition = roll() < 0.2 ? { condition: { body: { yes: pick(true, false) } } } : {}
      edges.push(
        edge(source < 0 ? "" : (steps[source]!["id"] as string), step["id"] as string, {
          source_port: port,
          ...condition
        })
      )
    }
  }
  // A step that goes on by its error port has an edge there.
  for (const [i, step] of steps.entries()) {
    const id = step["id"] as string
    if (!portsOf(step).includes("error")) continue
    if (edges.some((one) => one["source_step_id"] === id && one["source_port"] === "error")) continue
    const target = i + 1 < steps.length ? (steps[i + 1]!["id"] as string) : null
    if (target === null) (step["config"] as Record<string, unknown>)["on_error"] = "continue"
    else edges.push(edge(id, target, { source_port: "error" }))
  }
  return { steps, edges, failing }
}

/** Of each step whether it runs, and the ports it is left by; the trigger's body says `yes: true`. */
const oracle = ({ edges, failing, steps }: Graph): ReadonlyMap<string, ReadonlyArray<string> | null> => {
  const known = new Map<string, ReadonlyArray<string> | null>()
  const holds = (condition: unknown): boolean =>
    condition === undefined || (condition as { body: { yes: boolean } }).body.yes
  const left = (step: Written): ReadonlyArray<string> => {
    const config = step["config"] as Record<string, unknown>
    if (step["kind"] === "filter") return holds(config["conditions"]) ? ["matched"] : []
    if (step["kind"] === "branch") {
      const paths = config["paths"] as ReadonlyArray<{ key: string; rule: string; conditions?: unknown }>
      const matched = paths.filter(({ conditions, rule }) => rule === "conditions" && holds(conditions))
      return paths
        .filter(
          (path) =>
            path.rule === "always" || matched.includes(path) || (path.rule === "fallback" && matched.length === 0)
        )
        .map(({ key }) => `path_${key}`)
    }
    if (!failing.has(step["id"] as string)) return ["out"]
    if (step["kind"] === "wait") return ["timed_out"]
    return { branch: ["error"], continue: ["out"], fail: [] }[config["on_error"] as "branch"]
  }
  const outcome = (id: string): ReadonlyArray<string> | null => {
    if (known.has(id)) return known.get(id)!
    const runs = edges.some((one) => {
      if (one["target_step_id"] !== id || !holds(one["condition"])) return false
      const source = one["source_step_id"] as string | null
      return source === null || (outcome(source) ?? []).includes(one["source_port"] as string)
    })
    const result = runs ? left(steps.find((step) => step["id"] === id)!) : null
    known.set(id, result)
    return result
  }
  for (const { id } of steps) outcome(id as string)
  return known
}

/** A run that has begun. A request that a step waits for comes before the step waits, or later, as `roll` says. */
class Waiting extends Play {
  private readonly late: Array<number> = []
  private readonly graph: Graph

  constructor(graph: Graph, roll: () => number) {
    const outcomes = ({ startedAt, step: { index, step } }: Effect): Outcome => {
      const isCall = step.kind === "workflow"
      if (step.kind !== "wait" && !isCall) return graph.failing.has(step.id) ? fails() : done()
      if (isCall || !graph.failing.has(step.id)) {
        if (roll() < 0.5) this.arrive(index)
        else this.late.push(index)
      }
      const until = startedAt + 3_600_000
      return isCall ? waitingForRun(until) : waitingFor("event", until)
    }
    super(compiled(graph.steps, graph.edges), facts({ yes: true }), outcomes, roll)
    this.graph = graph
    this.tell({ type: "begun" })
  }

  override step(): boolean {
    if (super.step()) return true
    const [first] = this.late.splice(0, 1)
    if (first === undefined) return false
    this.arrive(first)
    // A second one, which comes too late.
    this.arrive(first)
    this.tell({ type: "due", step: first })
    return true
  }

  private arrive(index: number): void {
    const { id, kind } = this.workflow.plan[index]!.step
    if (kind === "workflow") {
      const error = this.graph.failing.has(id) ? { code: "TIMEOUT", message: "late" } : null
      const run = { run_id: "wfr_1", workflow_id: "wfl_1", outcome: "completed", error, result: 1 }
      return void this.tell({ type: "signalled", step: index, ...endedAs(run) })
    }
    const request = { request_id: "req_1", method: "POST", path: "/", headers: {}, query: {}, body: null }
    this.tell({ type: "signalled", step: index, ...matchedAs({ ...request, receivedAt: this.now }) })
  }
}

const played = (graph: Graph, seed: number): Play => new Waiting(graph, dice(seed)).finish()

describe("Random graphs", () => {
  it("A random graph runs as an oracle without order predicts, and no step runs twice", () => {
    for (let seed = 0; seed < 200; seed++) {
      const graph = randomGraph(dice(seed), false)
      const expected = oracle(graph)
      for (const order of [seed * 7 + 1, seed * 7 + 2]) {
        const play = played(graph, order)
        for (const [i, { step }] of play.workflow.plan.entries()) {
          const { ports, status } = play.state.steps[i]!
          const wanted = expected.get(step.id)!
          expect([seed, step.id, status === "skipped" ? null : ports]).toEqual([seed, step.id, wanted])
        }
        expect(new Set(play.begun).size).toBe(play.begun.length)
        expect(play.state.status).toBe("succeeded")
      }
    }
  })

  it("A random graph starts the same steps in any order of completion", () => {
    for (let seed = 0; seed < 50; seed++) {
      const graph = randomGraph(dice(seed), false)
      expect(played(graph, 0).begun.length).toBe(played(graph, 1).begun.length)
      expect(played(graph, 5).begun.toSorted()).toEqual(played(graph, 6).begun.toSorted())
    }
  })

  it("After a fatal failure a random graph starts nothing downstream and leaves no step open", () => {
    for (let seed = 0; seed < 200; seed++) {
      const graph = randomGraph(dice(seed), true)
      const play = played(graph, seed)
      const { finishedAt, outcome, steps } = play.state
      expect(finishedAt).not.toBeNull()
      expect(steps.filter(({ status }) => status === "pending" || status === "running")).toEqual([])
      expect(new Set(play.begun).size).toBe(play.begun.length)
      const fatal = steps.some(({ handled, status }) => status === "failed" && !handled)
      expect([seed, outcome === "failed"]).toEqual([seed, fatal])
      const expected = oracle(graph)
      for (const [i, { step }] of play.workflow.plan.entries()) {
        const { status } = steps[i]!
        // What ran would have run without the failure, too.
        if (status !== "skipped") expect([seed, step.id, expected.get(step.id) !== null]).toEqual([seed, step.id, true])
      }
    }
  })

  it("A random graph has the same result after any number of restarts", () => {
    for (let seed = 0; seed < 100; seed++) {
      const graph = randomGraph(dice(seed), false)
      const roll = dice(seed + 1)
      const play = new Waiting(graph, roll)
      do {
        if (roll() < 0.3) play.tell({ type: "recovered" })
      } while (play.step())
      play.finish()
      const expected = oracle(graph)
      for (const [i, { step }] of play.workflow.plan.entries()) {
        const { ports, status } = play.state.steps[i]!
        expect([seed, step.id, status === "skipped" ? null : ports]).toEqual([seed, step.id, expected.get(step.id)])
      }
      expect(play.begun.every((one) => one.endsWith("/1"))).toBe(true)
    }
  })
})
