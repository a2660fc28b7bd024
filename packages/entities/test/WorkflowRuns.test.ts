import { hash } from "node:crypto"
import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Schedule } from "effect"
import { SqlClient } from "effect/sql"
import { createDestination, team } from "../../storage/test/controlPlane.ts"
import * as RunDetail from "@tidegate/storage/reads/RunDetail"
import * as RequestReads from "@tidegate/storage/reads/RequestReads"
import { storeActionHold } from "@tidegate/storage/workflows/ActionHolds"
import { Holds } from "../src/holds/ActionHolds.ts"
import { Room } from "../src/Workflow/RunRoom.ts"
import { coming, create, from, receive, runOf, sent, trim, wake, world } from "./RunsWorld.ts"

/** Whoever looks at it breaks down. */
const unreadable = {
  get status(): number {
    throw new Error("broken")
  }
}

layer(world, { excludeTestServices: true })("Runs of a workflow", (it) => {
  it.effect("Holds that other processes stored are known before a run starts", () =>
    Effect.gen(function* () {
      const workflow = yield* create([trim("first", "{{trigger.body.name}}")], [from(null, "first")])
      const run = yield* receive(workflow, { name: "Ada" })
      const held = { team_id: team, name: "http https://heard-elsewhere.example.com" }
      yield* storeActionHold(held.team_id, held.name, Date.now() + 60_000, Date.now())
      const holds = yield* Holds
      expect(holds.isHeld(held)).toBe(false)
      yield* wake(workflow.id)
      expect([(yield* runOf(run))["status"], holds.isHeld(held)]).toEqual(["succeeded", true])
    })
  )

  it.effect("A run with local steps is stored once, and its previews contain no secrets", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflow = yield* create(
        [trim("first", "{{trigger.body.name}}"), trim("second", "{{steps.first.output.result}}")],
        [from(null, "first"), from("first", "second")]
      )
      const run = yield* receive(workflow, { name: "  sk_live_4eC39HqLyjWDarjtT1zdp7dc " })
      yield* wake(workflow.id)
      expect(yield* runOf(run)).toEqual({
        status: "succeeded",
        outcome: "completed",
        parts: 1,
        attempts: 1,
        succeeded_steps: 2,
        failed_steps: 0,
        skipped_steps: 0,
        error_code: null,
        error_step_id: null,
        queued: false
      })
      const [part] = yield* sql<{ outputs: string; previews: string }>`
        select outputs, previews from workflow_steps where run_id = ${run}`
      expect(part!.outputs).toContain("sk_live_4eC39HqLyjWDarjtT1zdp7dc")
      expect(part!.previews).not.toContain("sk_live")
    })
  )

  it.effect("An external step is stored before and after its call, together with the steps after it", () =>
    Effect.gen(function* () {
      const destination = yield* createDestination()
      const workflow = yield* create(
        [
          trim("before", "{{trigger.body.name}}"),
          { id: "send", kind: "destination", resource_id: destination.id },
          trim("after", "{{steps.send.output.status}}")
        ],
        [from(null, "before"), from("before", "send"), from("send", "after")]
      )
      const run = yield* receive(workflow, { name: "a" })
      yield* wake(workflow.id)
      expect(yield* runOf(run)).toMatchObject({ status: "succeeded", parts: 2, succeeded_steps: 3, queued: false })
    })
  )

  it.effect("An interrupted run repeats its step with the same key when it is continued", () =>
    Effect.gen(function* () {
      const destination = yield* createDestination()
      const workflow = yield* create(
        [{ id: "send", kind: "destination", resource_id: destination.id }],
        [from(null, "send")]
      )
      const begun = yield* Deferred.make<void>()
      coming.push(Effect.andThen(Deferred.succeed(begun, undefined), Effect.never))
      const run = yield* receive(workflow, {})
      const before = sent.length
      const waking = yield* Effect.forkChild(wake(workflow.id))
      yield* Deferred.await(begun)
      expect(yield* runOf(run)).toMatchObject({ status: "running", parts: 1, queued: true })
      yield* Fiber.interrupt(waking)
      // Until the handler has noticed.
      const ended = yield* Effect.repeat(Effect.andThen(wake(workflow.id), runOf(run)), {
        until: ({ status }) => status !== "running"
      })
      expect(ended).toMatchObject({ status: "succeeded", queued: false })
      const keys = sent.slice(before).map(([, key]) => key)
      expect(keys).toHaveLength(2)
      expect(new Set(keys).size).toBe(1)
    })
  )

  it.effect("A failed step is reported by its run, and steps after it are skipped", () =>
    Effect.gen(function* () {
      const destination = yield* createDestination()
      const workflow = yield* create(
        [{ id: "send", kind: "destination", resource_id: destination.id }, trim("after", "x")],
        [from(null, "send"), from("send", "after")]
      )
      coming.push(Effect.succeed({ kind: "failed", error: { code: "BAD_RESPONSE", message: "HTTP 500", status: 500 } }))
      const run = yield* receive(workflow, {})
      yield* wake(workflow.id)
      expect(yield* runOf(run)).toMatchObject({
        status: "failed",
        outcome: "failed",
        failed_steps: 1,
        skipped_steps: 1,
        error_code: "BAD_RESPONSE",
        error_step_id: "send",
        queued: false
      })
    })
  )

  it.effect("A delay is a queue row with a later due time, and nothing is held meanwhile", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflow = yield* create(
        [{ id: "wait", kind: "delay", config: { mode: "for", amount: 1, unit: "hours" } }],
        [from(null, "wait")]
      )
      const run = yield* receive(workflow, {})
      yield* wake(workflow.id)
      expect(yield* runOf(run)).toMatchObject({ status: "running", parts: 1, queued: true })
      const [row] = yield* sql<{ later: boolean }>`
        select due_at > now() + interval '59 minutes' as later from workflow_queue where run_id = ${run}`
      expect(row).toEqual({ later: true })
      yield* wake(workflow.id)
      expect(yield* runOf(run)).toMatchObject({ parts: 1 })
    })
  )

  it.effect("Runs of a paused workflow wait, and those of a disabled one fail", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflow = yield* create([trim("only", "a")], [from(null, "only")])
      const run = yield* receive(workflow, {})
      yield* sql`update workflows set status = 'paused' where id = ${workflow.id}`
      yield* wake(workflow.id)
      expect(yield* runOf(run)).toMatchObject({ status: "queued", parts: 0, queued: true })
      yield* sql`update workflows set status = 'disabled' where id = ${workflow.id}`
      yield* wake(workflow.id)
      expect(yield* runOf(run)).toMatchObject({
        status: "failed",
        outcome: "cancelled",
        error_code: "WORKFLOW_DISABLED",
        queued: false
      })
    })
  )

  it.effect("A step that throws fails, and so does a step whose error cannot be stored as it is", () =>
    Effect.gen(function* () {
      const destination = yield* createDestination()
      const workflow = yield* create(
        [{ id: "send", kind: "destination", resource_id: destination.id }],
        [from(null, "send")]
      )
      coming.push(Effect.die(new Error("broken")))
      const broken = yield* receive(workflow, {})
      yield* wake(workflow.id)
      expect(yield* runOf(broken)).toMatchObject({ status: "failed", error_code: "INTERNAL_ERROR", queued: false })
      coming.push(Effect.succeed({ kind: "failed", error: { code: "RUNTIME_ERROR", message: "a\u0000b" } }))
      const strange = yield* receive(workflow, {})
      yield* wake(workflow.id)
      expect(yield* runOf(strange)).toMatchObject({ status: "failed", error_code: "RUNTIME_ERROR", queued: false })
    })
  )

  it.effect("A step with an unreadable answer fails, and its run ends", () =>
    Effect.gen(function* () {
      const destination = yield* createDestination()
      const workflow = yield* create(
        [{ id: "send", kind: "destination", resource_id: destination.id }, trim("after", "x")],
        [from(null, "send"), from("send", "after")]
      )
      coming.push(Effect.succeed({ kind: "succeeded", output: unreadable, ports: ["out"] }))
      const run = yield* receive(workflow, {})
      yield* wake(workflow.id).pipe(Effect.timeout("60 seconds"))
      expect(yield* runOf(run)).toMatchObject({
        status: "failed",
        outcome: "failed",
        failed_steps: 1,
        skipped_steps: 1,
        error_code: "INTERNAL_ERROR",
        error_step_id: "send",
        queued: false
      })
    })
  )

  it.effect("A run with unreadable stored data ends and does not delay others", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflow = yield* create(
        [{ id: "wait", kind: "delay", config: { mode: "for", amount: 1, unit: "hours" } }],
        [from(null, "wait")]
      )
      const run = yield* receive(workflow, {})
      yield* wake(workflow.id)
      yield* sql`update workflow_steps set steps = '{' where run_id = ${run}`
      yield* sql`update workflow_queue set due_at = now() - interval '1 second' where run_id = ${run}`
      yield* wake(workflow.id)
      expect(yield* runOf(run)).toMatchObject({ status: "failed", error_code: "INTERNAL_ERROR", queued: false })
      // Of its step nobody knows more than that it will not run.
      const detail = yield* RunDetail.get(team, workflow.id, run, true)
      expect(detail).toMatchObject({ skipped_steps: 1, steps: [{ step_id: "wait", status: "skipped" }] })
      expect(detail.retry.retryable_step_ids).toEqual([])
    })
  )

  it.effect("A run that throws after its first commit ends with all its steps and its other calls", () =>
    Effect.gen(function* () {
      const destination = yield* createDestination()
      const workflow = yield* create(
        [
          { id: "send", kind: "destination", resource_id: destination.id },
          trim("after", "{{steps.send.output.status}}")
        ],
        [from(null, "send"), from("send", "after")]
      )
      let looks = 0
      // It can be read as the answer of its step, and then no more.
      const output = {
        get status(): number {
          if (++looks > 2) throw new Error("broken")
          return 200
        }
      }
      coming.push(Effect.succeed({ kind: "succeeded", output, ports: ["out"] }))
      const run = yield* receive(workflow, {})
      yield* wake(workflow.id).pipe(Effect.timeout("60 seconds"))
      expect(yield* runOf(run)).toMatchObject({
        status: "failed",
        outcome: "cancelled",
        error_code: "INTERNAL_ERROR",
        parts: 2,
        failed_steps: 1,
        skipped_steps: 1,
        queued: false
      })
    })
  )

  it.effect("A delay of seconds ends at its time without a poll", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflow = yield* create(
        [{ id: "wait", kind: "delay", config: { mode: "for", amount: 1, unit: "seconds" } }],
        [from(null, "wait")]
      )
      const run = yield* receive(workflow, {})
      yield* wake(workflow.id)
      const [row] = yield* sql<{ due_at: Date }>`select due_at from workflow_queue where run_id = ${run}`
      const ended = Effect.gen(function* () {
        const [found] = yield* sql<{
          finished_at: Date | null
        }>`select finished_at from workflow_runs where id = ${run}`
        return found!.finished_at ?? (yield* Effect.fail("under way"))
      })
      const finished = yield* Effect.retry(ended, { schedule: Schedule.spaced("20 millis"), times: 3_000 })
      expect(finished.getTime()).toBeGreaterThanOrEqual(row!.due_at.getTime())
    })
  )

  it.effect("The trigger of a run shows the hash of the body that can be downloaded", () =>
    Effect.gen(function* () {
      const workflow = yield* create([trim("only", "a")], [from(null, "only")])
      const body = { text: "shown", password: "and not shown" }
      const run = yield* receive(workflow, body)
      const { trigger } = yield* RunDetail.get(team, workflow.id, run, true)
      const text = JSON.stringify(body)
      const downloaded = yield* RequestReads.requestBody(team, trigger.request_id)
      expect(Buffer.from(downloaded).toString()).toBe(text)
      expect(JSON.stringify(trigger.preview)).not.toContain("and not shown")
      expect(trigger.preview).toMatchObject({
        available: true,
        size_bytes: text.length,
        sha256: `sha256:${hash("sha256", downloaded)}`
      })
    })
  )

  it.effect("The trigger of a run that is too large to show still has its hash", () =>
    Effect.gen(function* () {
      const workflow = yield* create([trim("only", "a")], [from(null, "only")])
      const body = { text: "x".repeat(300_000) }
      const run = yield* receive(workflow, body)
      const { trigger } = yield* RunDetail.get(team, workflow.id, run, true)
      const text = JSON.stringify(body)
      expect(trigger.preview).toMatchObject({
        available: false,
        reason: "too_large",
        size_bytes: text.length,
        sha256: `sha256:${hash("sha256", text)}`
      })
    })
  )

  it.effect("No run is read while the memory for runs is full, and step results use this memory", () =>
    Effect.gen(function* () {
      const destination = yield* createDestination()
      const workflow = yield* create(
        [
          { id: "send", kind: "destination", resource_id: destination.id },
          { id: "more", kind: "destination", resource_id: destination.id }
        ],
        [from(null, "send"), from("send", "more")]
      )
      const all = 128 * 1_048_576
      const rooms = yield* Room
      const others = rooms.of("others")
      others.hold(all)
      const run = yield* receive(workflow, {})
      const waking = yield* Effect.forkChild(wake(workflow.id))
      yield* Effect.sleep("300 millis")
      expect(yield* runOf(run)).toMatchObject({ status: "queued", parts: 0 })
      const begun = yield* Deferred.make<void>()
      const output = "x".repeat(1_000_000)
      coming.push(Effect.succeed({ kind: "succeeded", output, ports: ["out"] }))
      const end = yield* Deferred.make<void>()
      coming.push(
        Effect.andThen(
          Deferred.succeed(begun, undefined),
          Effect.as(Deferred.await(end), { kind: "succeeded", output: null, ports: ["out"] } as const)
        )
      )
      others.release(all)
      yield* Deferred.await(begun)
      expect(others.hasRoom(all - 1_000_000)).toBe(false)
      yield* Deferred.succeed(end, undefined)
      yield* Fiber.join(waking)
      expect(yield* runOf(run)).toMatchObject({ status: "succeeded" })
      expect(others.hasRoom(all)).toBe(true)
    })
  )
})
