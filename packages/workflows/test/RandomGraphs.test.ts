import { describe, expect, it } from "@effect/vitest"
import type { Effect } from "../src/Inputs.ts"
import { matchedAs, waitingFor } from "../src/kinds/WaitStep.ts"
import { endedAs, waitingForRun } from "../src/kinds/WorkflowStep.ts"
import type { Outcome } from "../src/StepKind.ts"
import { branch, call, compiled, edge, facts, filter, store } from "./Graphs.ts"
import { dice, done, fails, Play } from "./Play.ts"

/**
 * Random graphs, carried out in random orders, beside an oracle that knows no order: what becomes of a step is worked out
 * from the edges into it, backwards. Steps call, wait, call workflows and store values, some of them for each element of a list.
 * `TIDEGATE_GRAPH_RUNS` sets the number of graphs.
 */

const graphs = Number(process.env["TIDEGATE_GRAPH_RUNS"] ?? 200)

type Written = Readonly<Record<string, unknown>>

interface Graph {
  readonly steps: ReadonlyArray<Written>
  readonly edges: ReadonlyArray<Written>
  /** The calls that fail, the waits in vain and the conflicts of stored values, by id. */
  readonly failing: ReadonlySet<string>
  /** By the ids of steps with a list: how often each element fails before it succeeds. */
  readonly lists: ReadonlyMap<string, ReadonlyArray<number>>
}

const configOf = (step: Written) =>
  step["config"] as {
    readonly on_error?: "fail" | "continue" | "branch"
    readonly retry?: { readonly count: number }
    readonly operation?: string
  }

/** How often an element of a step's list is called again. */
const retriesOf = (step: Written): number => configOf(step).retry?.count ?? 0

const portsOf = (step: Written): ReadonlyArray<string> => {
  if (step["kind"] === "filter") return ["matched"]
  if (step["kind"] === "wait") return ["out", "timed_out"]
  if (step["kind"] === "branch") {
    return (step["config"] as { paths: ReadonlyArray<{ key: string }> }).paths.map(({ key }) => `path_${key}`)
  }
  if (configOf(step).operation === "compare_and_set") return ["out", "conflict"]
  return configOf(step).on_error === "branch" ? ["out", "error"] : ["out"]
}

/** A list has at most this many elements. */
const longest = 5

/** `stops`: whether a failure may end the run. */
const randomGraph = (roll: () => number, stops: boolean): Graph => {
  const pick = <A>(...from: ReadonlyArray<A>): A => from[Math.floor(roll() * from.length)]!
  const count = 1 + Math.floor(roll() * 14)
  const failing = new Set<string>()
  const lists = new Map<string, ReadonlyArray<number>>()
  /** Settings of a step that runs for each element of a list. */
  const listed = (id: string): Written => {
    const elements = Array.from({ length: Math.floor(roll() * (longest + 1)) }, () =>
      roll() < 0.7 ? 0 : 1 + Math.floor(roll() * 3)
    )
    lists.set(id, elements)
    failing.delete(id)
    const retry = { interval: 1_000, count: Math.floor(roll() * 3) }
    return { for_each: `{{trigger.body.list_${elements.length}}}`, retry }
  }
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
    if (kind < 0.7) {
      const inputs = { key: "total", expected: null, value: 1 }
      if (roll() < 0.5) return store(id, { operation: "compare_and_set", on_error: "continue" }, inputs)
      failing.delete(id)
      const config = { operation: "increment", on_error: "continue" }
      return store(id, roll() < 0.5 ? { ...config, ...listed(id) } : config, { key: "total" })
    }
    if (roll() < 0.6) return call(id, { on_error })
    return call(id, { on_error, ...listed(id), concurrency: 1 + Math.floor(roll() * 3) })
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
  return { steps, edges, failing, lists }
}

/** Of each step whether it runs, and the ports it is left by; the trigger's body says `yes: true`. */
const oracle = ({ edges, failing, lists, steps }: Graph): ReadonlyMap<string, ReadonlyArray<string> | null> => {
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
    const fails = lists.get(step["id"] as string)?.some((count) => count > retriesOf(step))
    if (!(fails ?? failing.has(step["id"] as string))) return ["out"]
    if (step["kind"] === "wait") return ["timed_out"]
    if (config["operation"] === "compare_and_set") return ["conflict"]
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

/** Whether a step's list may end before each element has been called. */
const mayEndEarly = (step: Written, elements: ReadonlyArray<number>): boolean =>
  configOf(step).on_error !== "continue" && elements.some((count) => count > retriesOf(step))

/** Of the steps that run, the calls of each element and the sum that is stored. */
const oracleOfLists = ({ lists, steps }: Graph, runs: ReadonlyMap<string, unknown>) => {
  const calls: Array<string> = []
  let sum = 0
  for (const step of steps) {
    const id = step["id"] as string
    const elements = lists.get(id)
    const adds = configOf(step).operation === "increment"
    if (runs.get(id) === null) continue
    if (elements === undefined) {
      if (adds) sum++
      continue
    }
    if (mayEndEarly(step, elements)) continue
    for (const [i, count] of elements.entries()) {
      const attempts = Math.min(count, retriesOf(step)) + 1
      for (let attempt = 1; attempt <= attempts; attempt++) calls.push(`${id}[${i}]/${attempt}`)
      if (adds && count <= retriesOf(step)) sum++
    }
  }
  return { calls: calls.toSorted(), sum }
}

/** Calls of elements that the oracle knows: not those of lists that may end early, where it depends on the order. */
const callsOfLists = ({ lists, steps }: Graph, begun: ReadonlyArray<string>): ReadonlyArray<string> => {
  const early = new Set(
    steps.flatMap((step) => {
      const elements = lists.get(step["id"] as string)
      return elements !== undefined && mayEndEarly(step, elements) ? [step["id"]] : []
    })
  )
  return begun.filter((one) => one.includes("[") && !early.has(one.slice(0, one.indexOf("["))))
}

/** The trigger's body has a list of each length. */
const body = {
  yes: true,
  ...Object.fromEntries(
    Array.from({ length: longest + 1 }, (_, length) => [`list_${length}`, Array.from({ length }, (_, i) => i)])
  )
}

/** A run that has begun. A request that a step waits for comes before the step waits, or later, as `roll` says. */
class Waiting extends Play {
  /** The sum that is stored, and the keys of the changes that are in it: like the database, it makes a change once. */
  sum = 0
  private readonly added = new Set<string>()
  private readonly late: Array<number> = []
  private readonly graph: Graph

  constructor(graph: Graph, roll: () => number) {
    const left = new Map(Array.from(graph.lists, ([id, elements]) => [id, [...elements]]))
    const outcomes = ({ start: { iteration }, startedAt, step: { index, step } }: Effect): Outcome => {
      const elements = left.get(step.id)
      if (elements !== undefined && iteration !== null && elements[iteration]!-- > 0) return fails()
      if (step.kind === "store") {
        const adds = (step.config as { readonly operation: string }).operation === "increment"
        return this.stored(adds ? `${step.id} ${iteration}` : null, graph.failing.has(step.id))
      }
      const isCall = step.kind === "workflow"
      if (step.kind !== "wait" && !isCall) return graph.failing.has(step.id) ? fails() : done()
      if (isCall || !graph.failing.has(step.id)) {
        if (roll() < 0.5) this.arrive(index)
        else this.late.push(index)
      }
      const until = startedAt + 3_600_000
      return isCall ? waitingForRun(until) : waitingFor("event", until)
    }
    super(compiled(graph.steps, graph.edges), facts(body), outcomes, roll)
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

  /** `key`: the key of a change; null: nothing is added. */
  private stored(key: string | null, conflict: boolean): Outcome {
    if (key !== null && !this.added.has(key)) {
      this.sum++
      this.added.add(key)
    }
    return { kind: "succeeded", output: { conflict, value: this.sum }, ports: [conflict ? "conflict" : "out"] }
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

const played = (graph: Graph, seed: number): Waiting => {
  const play = new Waiting(graph, dice(seed))
  play.finish()
  return play
}

describe("Random graphs", () => {
  it("A random graph runs as an oracle without order predicts, and no step runs twice", () => {
    const seen = { calls: 0, retries: 0, sums: 0 }
    for (let seed = 0; seed < graphs; seed++) {
      const graph = randomGraph(dice(seed), false)
      const expected = oracle(graph)
      const ofLists = oracleOfLists(graph, expected)
      seen.calls += ofLists.calls.length
      seen.retries += ofLists.calls.filter((one) => !one.endsWith("/1")).length
      seen.sums += ofLists.sum
      for (const order of [seed * 7 + 1, seed * 7 + 2]) {
        const play = played(graph, order)
        for (const [i, { step }] of play.workflow.plan.entries()) {
          const { ports, status } = play.state.steps[i]!
          const wanted = expected.get(step.id)!
          expect([seed, step.id, status === "skipped" ? null : ports]).toEqual([seed, step.id, wanted])
        }
        expect(new Set(play.begun).size).toBe(play.begun.length)
        expect([seed, callsOfLists(graph, play.begun).toSorted()]).toEqual([seed, ofLists.calls])
        expect([seed, play.sum]).toEqual([seed, ofLists.sum])
        expect(play.state.status).toBe("succeeded")
      }
    }
    // The graphs are such that they show something.
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(graphs / 10)
  })

  it("A random graph starts the same steps in any order of completion", () => {
    for (let seed = 0; seed < graphs / 4; seed++) {
      const graph = randomGraph(dice(seed), false)
      const began = (order: number): ReadonlyArray<string> => {
        const { begun } = played(graph, order)
        return [...begun.filter((one) => !one.includes("[")), ...callsOfLists(graph, begun)].toSorted()
      }
      expect(began(0)).toEqual(began(1))
      expect(began(5)).toEqual(began(6))
    }
  })

  it("After a fatal failure a random graph starts nothing downstream and leaves no step open", () => {
    for (let seed = 0; seed < graphs; seed++) {
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
    for (let seed = 0; seed < graphs / 2; seed++) {
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
      // A restart begins attempts again, and counts none.
      for (const one of new Set(play.begun)) {
        const [id = "", attempt] = one.replace(/\[\d+\]/, "").split("/")
        const most = 1 + retriesOf(graph.steps.find((step) => step["id"] === id)!)
        expect([seed, one, Number(attempt) <= most]).toEqual([seed, one, true])
      }
      expect([seed, play.sum]).toEqual([seed, oracleOfLists(graph, expected).sum])
    }
  })
})
