import { expect, layer } from "@effect/vitest"
import { Effect, Fiber, Latch } from "effect"
import { SqlClient } from "effect/sql"
import type { Outcome } from "@tidegate/workflows/StepKind"
import { createDestination } from "../../storage/test/controlPlane.ts"
import * as LocalEntities from "../src/dispatch/LocalEntities.ts"
import { coming, create, from, receive, runOf, sent, wake, world } from "./RunsWorld.ts"

const ok: Outcome = { kind: "succeeded", output: null, ports: ["out"] }

layer(world, { excludeTestServices: true })("Runs that are stored late", (it) => {
  it.effect("A run that was due long before the last one that was read begins when the poller finds it", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflows = yield* LocalEntities.Workflows
      const destination = yield* createDestination()
      const workflow = yield* create(
        [{ id: "send", kind: "destination", resource_id: destination.id }],
        [from(null, "send")]
      )
      const target = yield* Latch.make(false)
      const both = yield* Latch.make(false)
      coming.push(Effect.as(target.await, ok), Effect.as(both.open, ok))
      const first = yield* receive(workflow, {})
      const working = yield* Effect.forkChild(wake(workflow.id))
      yield* Effect.repeat(runOf(first), { until: ({ status }) => status === "running" })

      const late = yield* receive(workflow, {})
      yield* sql`update workflow_queue set due_at = now() - interval '1 hour' where run_id = ${late}`
      expect(workflows.give(workflow.id)).toBe(true)
      // As the poller wakes it.
      yield* wake(workflow.id)
      yield* both.await
      expect(sent).toHaveLength(2)
      yield* target.open
      yield* Fiber.join(working)
      for (const run of [first, late]) expect(yield* runOf(run)).toMatchObject({ status: "succeeded", queued: false })
    })
  )
})
