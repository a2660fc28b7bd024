import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { Outcome } from "@tidegate/workflows/StepKind"
import { createDestination } from "../../storage/test/controlPlane.ts"
import { coming, create, from, receive, runOf, sent, trim, world } from "./RunsWorld.ts"
import { forget, work } from "./LaterRuns.ts"

const day = 86_400_000

const wait = (days: number) => ({ id: "wait", kind: "delay", config: { mode: "for", amount: days, unit: "days" } })

const lastOutputs = Effect.fnUntraced(function* (run: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ outputs: string | null }>`
    select outputs from workflow_steps where run_id = ${run} order by part desc limit 1`
  return row!.outputs
})

layer(world, { excludeTestServices: true })("Long workflow runs", (it) => {
  it.effect("A run that waits longer than payloads are kept continues with all its data", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflow = yield* create(
        [
          trim("before", "{{trigger.body.name}}"),
          wait(31),
          trim("after", "{{steps.before.output.result}} of {{trigger.body.name}}")
        ],
        [from(null, "before"), from("before", "wait"), from("wait", "after")]
      )
      const run = yield* receive(workflow, { name: "  a" })
      yield* work(workflow.id)
      expect(yield* runOf(run)).toMatchObject({ status: "running", parts: 1, queued: true })
      yield* forget(run)
      yield* work(workflow.id, 30.9 * day)
      expect(yield* runOf(run)).toMatchObject({ status: "running", parts: 1 })
      yield* work(workflow.id, 33 * day)
      expect(yield* runOf(run)).toMatchObject({ status: "succeeded", succeeded_steps: 3, queued: false })
      expect(yield* lastOutputs(run)).toContain('"result":"a of   a"')
      const [left] = yield* sql`select run_id from workflow_queue where run_id = ${run}`
      expect(left).toBeUndefined()
    })
  )

  it.effect("A run keeps results between one long wait and the next", () =>
    Effect.gen(function* () {
      const destination = yield* createDestination()
      const workflow = yield* create(
        [
          wait(20),
          { id: "send", kind: "destination", resource_id: destination.id },
          { ...wait(20), id: "again" },
          trim("after", "{{steps.send.output.body}} {{trigger.body.name}}")
        ],
        [from(null, "wait"), from("wait", "send"), from("send", "again"), from("again", "after")]
      )
      const run = yield* receive(workflow, { name: "b" })
      yield* work(workflow.id)
      yield* forget(run)
      coming.push(Effect.succeed<Outcome>({ kind: "succeeded", output: { body: "c" }, ports: ["out"] }))
      yield* work(workflow.id, 21 * day)
      expect(yield* runOf(run)).toMatchObject({ status: "running", succeeded_steps: 2 })
      yield* forget(run)
      yield* work(workflow.id, 42 * day)
      expect(yield* runOf(run)).toMatchObject({ status: "succeeded", succeeded_steps: 4 })
      expect(yield* lastOutputs(run)).toContain('"result":"c b"')
    })
  )

  it.effect("A run fails after sixty days", () =>
    Effect.gen(function* () {
      const workflow = yield* create([wait(31), trim("after", "a")], [from(null, "wait"), from("wait", "after")])
      const run = yield* receive(workflow, {})
      yield* work(workflow.id)
      yield* work(workflow.id, 60 * day)
      expect(yield* runOf(run)).toMatchObject({ status: "failed", outcome: "cancelled", error_code: "RUN_EXPIRED" })
    })
  )

  it.effect("A run that was held until its request was deleted fails with this cause", () =>
    Effect.gen(function* () {
      const workflow = yield* create([trim("only", "a")], [from(null, "only")])
      const run = yield* receive(workflow, {})
      yield* forget(run)
      yield* work(workflow.id)
      expect(yield* runOf(run)).toMatchObject({ status: "failed", error_code: "PAYLOAD_UNAVAILABLE", queued: false })
    })
  )

  it.effect("A step is repeated with the same key at the time that the target asked for", () =>
    Effect.gen(function* () {
      const destination = yield* createDestination()
      const retry = { strategy: "exponential", interval: 1_000, count: 2, jitter: "full" }
      const workflow = yield* create(
        [
          { id: "send", kind: "destination", resource_id: destination.id, config: { retry } },
          trim("after", "{{steps.send.error ?? 1}}")
        ],
        [from(null, "send"), from("send", "after")]
      )
      const busy = { code: "BAD_RESPONSE", message: "HTTP 429", status: 429, retry_after_ms: 600_000 }
      coming.push(Effect.succeed<Outcome>({ kind: "failed", error: busy }))
      const before = sent.length
      const run = yield* receive(workflow, {})
      yield* work(workflow.id)
      yield* work(workflow.id, 590_000)
      expect(sent.length - before).toBe(1)
      expect(yield* runOf(run)).toMatchObject({ status: "running", queued: true })
      yield* work(workflow.id, 620_000)
      expect(yield* runOf(run)).toMatchObject({ status: "succeeded", failed_steps: 0, queued: false })
      expect(new Set(sent.slice(before).map(([, key]) => key)).size).toBe(1)
      expect(sent.length - before).toBe(2)
      // It is over, and nothing of it is left for who comes after.
      expect(yield* lastOutputs(run)).toContain('"result":"1"')
    })
  )
})
