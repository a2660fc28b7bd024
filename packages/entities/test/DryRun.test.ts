import { expect, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { newId, prefixes } from "@tidegate/model/Ids"
import { catalogFor } from "@tidegate/actions/ActionCatalog"
import type { DueRun } from "@tidegate/storage/workflows/Runs"
import { queuedRun } from "@tidegate/workflows/RunState"
import { rehearsalOf } from "@tidegate/workflows/Mocks"
import { previewsIn } from "@tidegate/workflows/Preview"
import { compileWorkflow } from "@tidegate/workflows/Workflow"
import { factsOf } from "../src/Workflow/RunRecord.ts"
import { Effects } from "../src/Workflow/RunWork.ts"
import { conduct } from "../src/Workflow/DryRun.ts"
import { from } from "./RunsWorld.ts"

const runOn = (body: unknown): DueRun => {
  const now = new Date()
  return {
    id: newId(prefixes.workflowRun, now.getTime()),
    team_id: "tm_a",
    request_id: newId(prefixes.request, now.getTime()),
    source_id: "",
    source_name: "test",
    version: 0,
    parts: 0,
    attempts: 1,
    kept: 0,
    status: "queued",
    created_at: now,
    due_at: now,
    carried: null,
    batch_id: null,
    found: 1,
    ingested_at: now,
    method: "POST",
    path: "/",
    query: "",
    headers: JSON.stringify({ "content-type": "application/json" }),
    body: Buffer.from(JSON.stringify(body)),
    presented: null
  }
}

/** A test of steps that are given something large, and fail as often as they may. */
const tried = (previews: boolean) =>
  Effect.gen(function* () {
    const ids = Array.from({ length: 10 }, (_, i) => `step_${i}`)
    const steps = ids.map((id) => ({
      id,
      kind: "destination",
      resource_id: "des_00000000000000000000000000",
      invocation_inputs: { body: "{{trigger.body.large}}" },
      config: { on_error: "continue", retry: { interval: 1_000, count: 10 } }
    }))
    const edges = ids.map((id) => from(null, id))
    const mocks = new Map(ids.map((id) => [id, { error: { code: "TIMEOUT", message: "simulated" } }]))
    const compiled = Result.getOrThrow(compileWorkflow(steps, edges, yield* catalogFor(steps)))
    const { workflow } = rehearsalOf(compiled, mocks, true)
    const large = Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`member_${i}`, "x".repeat(1_000)]))
    const run = runOn({ large })
    return yield* conduct({
      workflow,
      facts: yield* factsOf(run, { id: "wfl_test", name: "test", version: 0 }),
      run,
      from: queuedRun(workflow),
      first: { type: "begun" },
      live: false,
      previews
    })
  }).pipe(Effect.provideService(Effects, { carryOut: () => Effect.die("nothing leaves") }))

const charactersOf = (transitions: ReadonlyArray<{ readonly previews: string | null }>): ReadonlyArray<number> =>
  transitions.flatMap(({ previews }) => (previews === null ? [] : [previews.length]))

it.live("A dry run keeps only as many input previews as its answer can show", () =>
  Effect.gen(function* () {
    const { state, transitions } = yield* tried(true)
    expect(state).toMatchObject({ outcome: "completed_with_errors" })
    expect(transitions.length).toBeGreaterThan(10)
    const kept = charactersOf(transitions)
    expect(Math.max(...kept)).toBeGreaterThan(100_000)
    const all = kept.reduce((sum, length) => sum + length, 0)
    expect(all).toBeGreaterThan(1_000_000)
    expect(all).toBeLessThanOrEqual(4 * 1_048_576)
  })
)

it.live("The inputs of the steps of one transition are shown as far as all fit together", () =>
  Effect.gen(function* () {
    const ids = Array.from({ length: 50 }, (_, i) => `step_${i}`)
    const steps = [...ids, "join"].map((id) => ({
      id,
      kind: "destination",
      resource_id: "des_00000000000000000000000000",
      invocation_inputs: { body: "{{trigger.body.large}}" }
    }))
    const edges = ids.flatMap((id) => [from(null, id), from(id, "join")])
    const compiled = Result.getOrThrow(compileWorkflow(steps, edges, yield* catalogFor(steps)))
    const { workflow } = rehearsalOf(compiled, new Map(), true)
    const large = Object.fromEntries(Array.from({ length: 150 }, (_, i) => [`member_${i}`, "x".repeat(1_000)]))
    const { transitions } = yield* conduct({
      workflow,
      facts: yield* factsOf(runOn({ large }), { id: "wfl_test", name: "test", version: 0 }),
      run: runOn({ large }),
      from: queuedRun(workflow),
      first: { type: "begun" },
      live: false,
      previews: true
    })
    expect(transitions).toHaveLength(1)
    const [length] = charactersOf(transitions)
    expect(length).toBeGreaterThan(900_000)
    expect(length).toBeLessThan(1_200_000)
    const previews = previewsIn(transitions[0]!.previews!)
    expect(previews).toHaveLength(51)
    expect(new Set(previews.map(([, { input }]) => input?.size_bytes)).size).toBe(1)
  }).pipe(Effect.provideService(Effects, { carryOut: () => Effect.die("nothing leaves") }))
)

it.live("A dry run without previews keeps none", () =>
  Effect.gen(function* () {
    expect(charactersOf((yield* tried(false)).transitions)).toEqual([])
  })
)

const unreadable = {
  get status(): number {
    throw new Error("broken")
  }
}

for (const [what, comes] of [
  ["that throws", Effect.die("broken")],
  ["with an unreadable answer", Effect.succeed({ kind: "succeeded" as const, output: unreadable, ports: ["out"] })]
] as const) {
  it.live(`A dry-run step ${what} fails as in a run, and the dry run continues`, () =>
    Effect.gen(function* () {
      const steps = [{ id: "call", kind: "destination", resource_id: "des_00000000000000000000000000" }]
      const workflow = Result.getOrThrow(compileWorkflow(steps, [from(null, "call")], yield* catalogFor(steps)))
      const { state } = yield* conduct({
        workflow,
        facts: yield* factsOf(runOn({}), { id: "wfl_test", name: "test", version: 0 }),
        run: runOn({}),
        from: queuedRun(workflow),
        first: { type: "begun" },
        live: true,
        previews: false
      })
      expect(state.steps).toMatchObject([{ status: "failed", error: { code: "INTERNAL_ERROR" } }])
    }).pipe(Effect.provideService(Effects, { carryOut: () => comes }), Effect.timeout("60 seconds"))
  )
}
