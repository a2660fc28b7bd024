import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { plansOf } from "../src/Workflow/Plans.ts"
import { createDestination, team, unique } from "../../storage/test/controlPlane.ts"
import { create, from, receive, runOf, trim, wake, world } from "./RunsWorld.ts"

const createFilter = Effect.fnUntraced(function* (kind: string) {
  const sql = yield* SqlClient.SqlClient
  const id = newId(prefixes.filter, Date.now())
  yield* sql`insert into filters (id, team_id, name, conditions, hash, created_at, updated_at)
    values (${id}, ${team}, ${unique("filter")}, ${JSON.stringify({ body: { kind } })}, ${`sha256:${kind}`}, now(), now())`
  return id
})

/** What a run that is at its wait goes on after, though it is not due. */
const hurry = Effect.fnUntraced(function* (run: string) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`update workflow_steps set steps = replace(steps, '"wait":{"kind":"delay","until":', '"wait":{"kind":"delay","until":1,"was":')
    where run_id = ${run}`
  yield* sql`update workflow_queue set due_at = now() - interval '1 second' where run_id = ${run}`
})

layer(world, { excludeTestServices: true })("Pinned workflow run", (it) => {
  it.effect("A run uses the filter version from its start, and a later run uses the new version", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const filter = yield* createFilter("a")
      const workflow = yield* create(
        [
          { id: "wait", kind: "delay", config: { mode: "for", amount: 1, unit: "hours" } },
          { id: "only", kind: "filter", resource_id: filter },
          trim("after", "x")
        ],
        [from(null, "wait"), from("wait", "only"), from("only", "after")]
      )
      const before = yield* receive(workflow, { kind: "a" })
      yield* wake(workflow.id)
      yield* sql`update filters set conditions = ${JSON.stringify({ body: { kind: "b" } })}, hash = 'sha256:b' where id = ${filter}`
      const after = yield* receive(workflow, { kind: "a" })
      yield* wake(workflow.id)
      yield* Effect.forEach([before, after], hurry)
      yield* wake(workflow.id)
      expect(yield* runOf(before)).toMatchObject({ outcome: "completed", succeeded_steps: 3 })
      expect(yield* runOf(after)).toMatchObject({ outcome: "filtered", skipped_steps: 1 })
      const told = yield* sql<{ resources: string }>`
        select resources from workflow_steps where run_id = any(${[before, after]}) and part = 1 order by run_id`
      expect(new Set(told.map(({ resources }) => JSON.parse(resources)[0].content_hash))).toEqual(
        new Set(["sha256:a", "sha256:b"])
      )
      const others =
        yield* sql`select id from workflow_steps where run_id = ${before} and part > 1 and resources is not null`
      expect(others).toEqual([])
    })
  )

  it.effect("A run stores what its steps used at its start, without secrets", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const destination = yield* createDestination()
      const workflow = yield* create(
        [{ id: "send", kind: "destination", resource_id: destination.id }],
        [from(null, "send")]
      )
      const run = yield* receive(workflow, {})
      yield* wake(workflow.id)
      const [told] = yield* sql<{
        resources: string
      }>`select resources from workflow_steps where run_id = ${run} and part = 1`
      expect(JSON.parse(told!.resources)).toEqual([
        {
          step_id: "send",
          type: "destination",
          id: destination.id,
          name: destination.name,
          content_hash: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
          updated_at: destination.updated_at
        }
      ])
    })
  )

  it.effect("Runs of the same version share one plan", () =>
    Effect.gen(function* () {
      const workflow = yield* create([trim("only", "a")], [from(null, "only")])
      const plans = plansOf(workflow.id)
      expect(yield* plans.planOf(team, 1)).toBe(yield* plans.planOf(team, 1))
      expect(yield* plans.planOf(team, 2)).toBeNull()
    })
  )
})
