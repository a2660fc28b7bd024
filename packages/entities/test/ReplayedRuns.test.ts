import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { exactly, original } from "@tidegate/storage/bulk/Originals"
import { replay } from "../src/Replay.ts"
import { team } from "../../storage/test/controlPlane.ts"
import { create, from, receive, runOf, trim, wake, world } from "./RunsWorld.ts"

layer(world, { excludeTestServices: true })("Replayed request", (it) => {
  it.effect("A replayed request starts its own run once, and none if connections are named", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflow = yield* create([trim("only", "{{trigger.body.name}}")], [from(null, "only")])
      const first = yield* receive(workflow, { name: "a" })
      yield* wake(workflow.id)
      const [row] = yield* sql<{ request_id: string }>`select request_id from workflow_runs where id = ${first}`
      const of = yield* original(team, row!.request_id)
      const again = exactly(of, newId(prefixes.request, Date.now()), { kind: "single", operation_id: null })
      expect(yield* replay(again)).toMatchObject({ connections: [], workflows: [workflow.id] })
      yield* replay(again)
      const none = exactly(of, newId(prefixes.request, Date.now()), { kind: "single", operation_id: null })
      expect(yield* replay({ ...none, only: [] })).toMatchObject({ workflows: [] })
      const runs = sql<{ id: string; request_id: string }>`
        select id, request_id from workflow_runs where workflow_id = ${workflow.id} and id <> ${first}`
      const [second, ...others] = yield* runs
      expect(others).toEqual([])
      expect(second!.request_id).toBe(again.id)
      const ended = yield* Effect.repeat(Effect.andThen(wake(workflow.id), runOf(second!.id)), {
        until: ({ status }) => status === "succeeded"
      })
      expect(ended).toMatchObject({ parts: 1, queued: false })
    })
  )

  it.effect("A replay by an old step keeps the workflow version of its run", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflow = yield* create([trim("only", "a")], [from(null, "only")])
      const run = yield* receive(workflow, {})
      const [row] = yield* sql<{ request_id: string }>`select request_id from workflow_runs where id = ${run}`
      const of = yield* original(team, row!.request_id)
      const madeAt = Effect.fnUntraced(function* (ms: number) {
        yield* replay(exactly(of, newId(prefixes.request, ms), { kind: "single", operation_id: null }))
        return yield* sql`select version, has_run from workflow_versions where workflow_id = ${workflow.id}`
      })
      // Retention looks for the others itself, by their times.
      expect(yield* madeAt(Date.now())).toEqual([{ version: 1, has_run: false }])
      expect(yield* madeAt(Date.now() - 3_600_000)).toEqual([{ version: 1, has_run: true }])
    })
  )
})
