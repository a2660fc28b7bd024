import { describe, expect } from "vitest"
import type { Body } from "../support/Gateway.ts"
import { heldMs, leastMsOf, timesSlower, watchedLoop } from "../support/LoopHeld.ts"
import { it as gatewayIt } from "../support/it.ts"

/**
 * Definitions of workflows that cost as much as one may: what judges, stores, reads and tries them holds the loop for no longer than anything else.
 * The bound leaves a busy machine a wide margin; the figures are those of the processor time of the loop's own thread.
 */

const it = gatewayIt.extend("settings", { scope: "file" }, watchedLoop)

const ids = (n: number): ReadonlyArray<string> => Array.from({ length: n }, (_, i) => `step${i}`)
const members = (n: number, of: (i: number) => unknown = (i) => i) =>
  Object.fromEntries(Array.from({ length: n }, (_, i) => [`k${i}`, of(i)]))
const edge = (source: string | null, target: string, more: object = {}) => ({
  source_type: source === null ? "trigger" : "step",
  source_step_id: source,
  target_step_id: target,
  ...more
})
const post = { provider_key: "http", action_key: "request" }
const call = (id: string, body: unknown) => ({
  id,
  kind: "action",
  action: post,
  invocation_inputs: { method: "POST", url: "https://a.example", body }
})
const inLine = (steps: ReadonlyArray<{ readonly id: string }>) => ({
  steps,
  edges: steps.map(({ id }, i) => edge(i === 0 ? null : steps[i - 1]!.id, id))
})
/** Patterns of that many characters in all. */
const patterns = (count: number, length: number) => ({
  trigger: { body: members(count, () => ({ $regex: "(a|b|c)*[0-9]{1,20}x".repeat(25).slice(0, length) })) }
})
const tree = (levels: number): unknown => (levels === 0 ? 1 : { a: tree(levels - 1), b: tree(levels - 1) })

const accepted: Readonly<
  Record<string, { readonly steps: ReadonlyArray<object>; readonly edges: ReadonlyArray<object> }>
> = {
  "members of two inputs": inLine(ids(2).map((id) => call(id, members(9_900)))),
  "elements of two inputs": inLine(
    ids(2).map((id) =>
      call(
        id,
        Array.from({ length: 9_900 }, () => 1)
      )
    )
  ),
  "members of a hundred inputs": inLine(ids(100).map((id) => call(id, members(180)))),
  "deep trees": inLine([call("tree", tree(12)), call("other", tree(12))]),
  "templates in lists": inLine([
    call(
      "many",
      Array.from({ length: 4_990 }, (_, i) => `{{trigger.body.x${i}}}`)
    )
  ]),
  "a hundred templates in a text": inLine([
    call(
      "many",
      Array.from({ length: 49 }, () => "{{trigger.body.abc}} ".repeat(100))
    )
  ]),
  "long paths": inLine([
    call(
      "long",
      Array.from({ length: 1_600 }, () => `{{trigger.body${".abcdefgh".repeat(62)}}}`)
    )
  ]),
  "the maximum number of paths of the maximum length": inLine([
    call(
      "long",
      Array.from({ length: 4_990 }, () => `{{trigger.body${".a".repeat(60)}}}`)
    )
  ]),
  filters: inLine(ids(10).map((id) => ({ id, kind: "filter", config: { conditions: patterns(10, 500) } }))),
  "many filters": inLine(ids(100).map((id) => ({ id, kind: "filter", config: { conditions: patterns(5, 100) } }))),
  "lists of values": inLine(
    ids(2).map((id) => ({
      id,
      kind: "filter",
      config: { conditions: { trigger: { body: { x: { $in: Array.from({ length: 7_000 }, (_, i) => i) } } } } }
    }))
  ),
  "a branch": {
    steps: [
      {
        id: "paths",
        kind: "branch",
        config: { paths: ids(10).map((key) => ({ key, rule: "conditions", conditions: patterns(6, 100) })) }
      }
    ],
    edges: [edge(null, "paths")]
  },
  "conditions of edges": {
    steps: ids(80).map((id) => call(id, null)),
    edges: ids(80).map((id) => edge(null, id, { condition: patterns(6, 100) }))
  }
}

const maxMs = 100

describe("Workflow of the maximum size", () => {
  for (const [name, graph] of Object.entries(accepted)) {
    it(`A workflow of the maximum size does not block the event loop in any call: ${name}`, async ({ gateway }) => {
      const calls = async (): Promise<number> => {
        const source = await gateway.source()
        const held: Record<string, number> = {}
        const done = async (method: string, path: string, body: object): Promise<Body> => {
          const answer = await gateway.call(method, path, body)
          expect(answer.status, JSON.stringify(answer.body).slice(0, 1_000)).toBe(200)
          return answer.body
        }
        const watched = async <A>(what: string, work: () => Promise<A>): Promise<A> => {
          await heldMs()
          const done = await work()
          held[what] = Math.round((await heldMs()).processorMs)
          return done
        }
        const body = { name: gateway.name("large"), source_id: source.id, ...graph }
        const made = await watched("create", () => done("POST", "/workflows", body))
        const path = `/workflows/${made.id}`
        await watched("get", () => gateway.call("GET", path))
        await watched("patch", () => done("PATCH", path, { steps: graph.steps, edges: graph.edges }))
        await watched("put", () => done("PUT", path, { ...body, description: "other" }))
        const aggregate = { workflow: { ...body, name: gateway.name("large") } }
        await watched("aggregate", () => done("PUT", "/workflows/aggregate", aggregate))
        await watched("validate", () => done("POST", "/workflows/validate", { ...graph, workflow_id: made.id }))
        await watched("test", () => done("POST", "/workflows/test", { ...graph, trigger: { body: {} } }))
        console.log(`${name}: the loop was held ${JSON.stringify(held)} ms`)
        return Math.max(...Object.values(held))
      }
      const boundMs = (): number => maxMs * timesSlower()
      expect(await leastMsOf(boundMs, calls)).toBeLessThan(boundMs())
    })
  }
})

describe("Workflow above the maximum size", () => {
  const larger = (values: number) =>
    inLine(
      ids(3).map((id) =>
        call(
          id,
          Array.from({ length: values / 3 }, () => 1)
        )
      )
    )

  it.for([
    [21_000, "WORKFLOW_GRAPH_INVALID", "20000 values"],
    [26_000, "VALIDATION_ERROR", "25000 JSON values"]
  ] as const)("A workflow of %i values is refused by every call", async ([values, code, limit], { gateway }) => {
    const source = await gateway.source()
    const graph = larger(values)
    const small = await gateway.api("POST", "/workflows", { name: gateway.name("small"), source_id: source.id })
    const body = { name: gateway.name("large"), source_id: source.id, ...graph }
    for (const [method, path] of [
      ["POST", "/workflows"],
      ["PUT", "/workflows"],
      ["PUT", `/workflows/${small.id}`],
      ["PATCH", `/workflows/${small.id}`]
    ] as const) {
      const answer = await gateway.call(method, path, body)
      expect(answer.status, path).toBe(400)
      expect(answer.body.code, path).toBe(code)
      expect(JSON.stringify(answer.body), path).toContain(limit)
    }
    for (const [method, path, body] of [
      ["PUT", "/workflows/aggregate", { workflow: { name: gateway.name("large"), source_id: source.id, ...graph } }],
      ["POST", "/workflows/test", { ...graph, trigger: { body: {} } }],
      ["POST", `/workflows/${small.id}/test`, { ...graph, trigger: { body: {} } }]
    ] as const) {
      const answer = await gateway.call(method, path, body)
      expect(answer.body.code, path).toBe("WORKFLOW_GRAPH_INVALID")
      expect(JSON.stringify(answer.body), path).toContain("20000 values")
    }
    expect((await gateway.call("GET", `/workflows/${small.id}`)).body).toMatchObject({ version: 1, steps_count: 0 })
  })
})
