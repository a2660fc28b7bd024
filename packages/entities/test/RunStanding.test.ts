import { expect, layer } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { WorkflowStatus } from "@tidegate/model/Workflow"
import type { Outcome } from "@tidegate/workflows/StepKind"
import { WorkflowEntity } from "../src/Workflow/WorkflowProtocol.ts"
import { createDestination, team } from "../../storage/test/controlPlane.ts"
import { coming, create, from, receive, runOf, sent, trim, wake, world } from "./RunsWorld.ts"

const done: Outcome = { kind: "succeeded", output: { status: 200 }, ports: ["out"] }

const send = (destination: string, id: string) => ({ id, kind: "destination", resource_id: destination })

/** The way of a change through the actor, so that it tells its runs itself. */
const turnTo = Effect.fnUntraced(function* (id: string, status: WorkflowStatus) {
  const client = yield* WorkflowEntity.client
  yield* client(id).Update({ team_id: team, input: { status } })
})

/** Looks until it is so; the actor works on its own. */
const until = <A, E, R>(look: Effect.Effect<A, E, R>, isSo: (seen: A) => boolean) =>
  Effect.repeat(Effect.delay(look, "5 millis"), { until: isSo })

/** A run whose first of two steps is under way until it is let go. */
const underWay = Effect.gen(function* () {
  const destination = yield* createDestination()
  const workflow = yield* create(
    [send(destination.id, "one1"), send(destination.id, "two2")],
    [from(null, "one1"), from("one1", "two2")]
  )
  const begun = yield* Deferred.make<void>()
  const release = yield* Deferred.make<Outcome>()
  coming.push(Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(release)))
  const run = yield* receive(workflow, {})
  yield* Effect.forkChild(wake(workflow.id))
  yield* Deferred.await(begun)
  return { workflow, run, release: Deferred.succeed(release, done) }
})

layer(world, { excludeTestServices: true })("Runs of a workflow whose status changes", (it) => {
  it.effect("A run of a paused workflow ends its step and continues when the workflow does", () =>
    Effect.gen(function* () {
      const { release, run, workflow } = yield* underWay
      const before = sent.length
      yield* turnTo(workflow.id, "paused")
      // It has been told, which is stored.
      yield* until(runOf(run), ({ parts }) => parts === 2)
      yield* release
      yield* until(runOf(run), ({ parts }) => parts === 3)
      expect(yield* runOf(run)).toMatchObject({ status: "running", succeeded_steps: 1, queued: true })
      yield* wake(workflow.id)
      expect(sent.slice(before)).toEqual([])
      yield* turnTo(workflow.id, "active")
      yield* until(runOf(run), ({ status }) => status !== "running")
      expect(yield* runOf(run)).toMatchObject({ status: "succeeded", succeeded_steps: 2, queued: false })
      expect(sent.slice(before).map(([step]) => step)).toEqual(["two2"])
    })
  )

  it.effect("A run of a disabled workflow ends after its current step and skips the others", () =>
    Effect.gen(function* () {
      const { release, run, workflow } = yield* underWay
      yield* turnTo(workflow.id, "disabled")
      yield* until(runOf(run), ({ parts }) => parts === 2)
      yield* release
      yield* until(runOf(run), ({ status }) => status !== "running")
      expect(yield* runOf(run)).toMatchObject({
        status: "failed",
        outcome: "cancelled",
        error_code: "WORKFLOW_DISABLED",
        succeeded_steps: 1,
        skipped_steps: 1,
        queued: false
      })
    })
  )

  it.effect("All waiting runs of a resumed workflow start once", () =>
    Effect.gen(function* () {
      const destination = yield* createDestination()
      const workflow = yield* create([send(destination.id, "only")], [from(null, "only")])
      yield* turnTo(workflow.id, "paused")
      const runs: Array<string> = []
      for (let i = 0; i < 12; i++) runs.push(yield* receive(workflow, { i }))
      const before = sent.length
      yield* wake(workflow.id)
      for (const run of runs) expect(yield* runOf(run)).toMatchObject({ status: "queued", parts: 0 })
      yield* turnTo(workflow.id, "active")
      for (const run of runs) yield* until(runOf(run), ({ status }) => status === "succeeded")
      expect(sent.length - before).toBe(runs.length)
    })
  )

  it.effect("Waiting runs of a disabled or deleted workflow end at once", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const delay = { id: "wait", kind: "delay", config: { mode: "for", amount: 1, unit: "days" } }
      const workflow = yield* create([delay, trim("after", "a")], [from(null, "wait"), from("wait", "after")])
      const run = yield* receive(workflow, {})
      yield* wake(workflow.id)
      expect(yield* runOf(run)).toMatchObject({ status: "running", queued: true })
      yield* turnTo(workflow.id, "disabled")
      yield* until(runOf(run), ({ status }) => status === "failed")
      expect(yield* runOf(run)).toMatchObject({ error_code: "WORKFLOW_DISABLED", failed_steps: 1, queued: false })
      yield* turnTo(workflow.id, "active")
      const another = yield* receive(workflow, {})
      yield* wake(workflow.id)
      const client = yield* WorkflowEntity.client
      yield* client(workflow.id).Delete({ team_id: team })
      const left = sql<{ n: number }>`
        select (select count(*) from workflow_runs where id = any(${[run, another]}))::int4
          + (select count(*) from workflow_steps where run_id = any(${[run, another]}))::int4
          + (select count(*) from workflow_queue where workflow_id = ${workflow.id})::int4
          + (select count(*) from workflow_versions where workflow_id = ${workflow.id})::int4 as n`
      yield* until(left, ([row]) => row!.n === 0)
    })
  )
})
