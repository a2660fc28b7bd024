import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import type { Sharding } from "effect/cluster"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import type { Journal } from "@tidegate/storage/Journal"
import { Sources } from "@tidegate/storage/control/Sources"
import type { Outcome } from "@tidegate/workflows/StepKind"
import { createDestination, otherTeam, sourceFields, team, unique } from "../../storage/test/controlPlane.ts"
import { makeWaitStep } from "../src/Workflow/effects/WaitEffect.ts"
import { accept, createSource } from "./AwaitedSource.ts"
import {
  giveArrivals,
  coming,
  create,
  ended,
  executors,
  from,
  receive,
  runOf,
  sent,
  trim,
  wake,
  world
} from "./RunsWorld.ts"

const orderOf = { body: { order: "{{trigger.body.order}}" } }

/** A run that waits for a request at `source` about its order. `before`: steps that run before the wait. */
const workflowOf = Effect.fnUntraced(function* (source: string, filter: unknown = orderOf, beside = false) {
  executors.set("wait", yield* makeWaitStep)
  const destination = yield* createDestination()
  return yield* create(
    [
      {
        id: "wait",
        kind: "wait",
        resource_id: source,
        config: { for: "event", amount: 1, unit: "hours" },
        ...(filter === null ? {} : { invocation_inputs: { filter } })
      },
      trim("by_out", "{{steps.wait.output.request_id}}"),
      trim("by_timed_out", "late"),
      ...(beside ? [{ id: "beside", kind: "destination", resource_id: destination.id }] : [])
    ],
    [
      from(null, "wait"),
      { ...from("wait", "by_out"), source_port: "out" },
      { ...from("wait", "by_timed_out"), source_port: "timed_out" },
      ...(beside ? [from(null, "beside")] : [])
    ]
  )
})

const counted = Effect.fnUntraced(function* (source: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ waits: number; arrivals: number }>`
    select (select count(*)::int4 from workflow_waits where source_id = ${source}) as waits,
      (select count(*)::int4 from workflow_arrivals a join workflow_awaited w on w.workflow_id = a.workflow_id
        where w.source_id = ${source} and a.due_at <= now()) as arrivals`
  return row!
})

const outputOf = Effect.fnUntraced(function* (run: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{
    outputs: string | null
  }>`select outputs from workflow_steps where run_id = ${run} order by part`
  const lines = rows.flatMap(({ outputs }) => (outputs === null ? [] : outputs.split("\n")))
  return lines.map((line) => JSON.parse(line) as [string, { output: Record<string, unknown> }])
})

layer(world, { excludeTestServices: true })("Step that waits for a request", (it) => {
  it.effect("The first request that matches ends the wait, with the request as output and its credentials masked", () =>
    Effect.gen(function* () {
      const source = yield* createSource()
      const workflow = yield* workflowOf(source.id)
      const run = yield* receive(workflow, { order: 7 })
      const other = yield* receive(workflow, { order: 8 })
      yield* wake(workflow.id)
      expect(yield* runOf(run)).toMatchObject({ status: "running", queued: true })
      yield* accept(source.id, { order: 9 })
      const paid = yield* accept(source.id, { order: 7, state: " paid " })
      yield* accept(source.id, { order: 7, state: "again" })
      yield* giveArrivals(workflow.id)
      expect(yield* ended(workflow.id, run)).toMatchObject({
        outcome: "completed",
        succeeded_steps: 2,
        skipped_steps: 1
      })
      const outputs = yield* outputOf(run)
      expect(outputs.map(([, { output }]) => output)).toContainEqual(
        expect.objectContaining({
          request_id: paid,
          body: { order: 7, state: " paid " },
          body_omitted: false,
          headers: { "content-type": "application/json", authorization: "[PRESENTED]" }
        })
      )
      expect(yield* runOf(other)).toMatchObject({ status: "running" })
      expect(yield* counted(source.id)).toEqual({ waits: 1, arrivals: 0 })
    })
  )

  it.effect(
    "A request that ingress stored before it knew of the wait counts from the begin of the step on, and none before it",
    () =>
      Effect.gen(function* () {
        const source = yield* createSource()
        const workflow = yield* workflowOf(source.id)
        yield* accept(source.id, { order: 1, state: "too early" }, Date.now() - 10_000)
        const run = yield* receive(workflow, { order: 1 })
        const real = executors.get("wait")!
        let between = ""
        // Between the begin of the step and its row.
        executors.set("wait", (...given) =>
          Effect.andThen(
            Effect.map(accept(source.id, { order: 1 }, Date.now(), false), (id) => {
              between = id
            }).pipe(Effect.provideContext(context), Effect.orDie),
            real(...given)
          )
        )
        const context = yield* Effect.context<SqlClient.SqlClient | Journal | Sharding.Sharding>()
        yield* wake(workflow.id)
        yield* giveArrivals(workflow.id)
        expect(yield* ended(workflow.id, run)).toMatchObject({ outcome: "completed", skipped_steps: 1 })
        expect((yield* outputOf(run)).map(([, { output }]) => output["request_id"])).toContain(between)
      })
  )

  it.effect(
    "Ingress learns of the first wait by the version of the source, and what it missed until then is looked for again",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const source = yield* createSource()
        const version = Effect.map(
          sql<{ v: number }>`select version::int4 as v from sources where id = ${source.id}`,
          ([row]) => row!.v
        )
        const workflow = yield* workflowOf(source.id)
        const before = yield* version
        const run = yield* receive(workflow, { order: 1 })
        yield* wake(workflow.id)
        yield* giveArrivals(workflow.id)
        const first = yield* version
        expect(first).toBeGreaterThan(before)
        const second = yield* receive(workflow, { order: 2 })
        yield* wake(workflow.id)
        yield* giveArrivals(workflow.id)
        expect(yield* version).toBe(first)
        // By a statement that had begun before the wait was stored.
        yield* accept(source.id, { order: 1 }, Date.now(), false)
        yield* giveArrivals(workflow.id)
        expect(yield* runOf(run)).toMatchObject({ status: "running" })
        yield* sql`update workflow_arrivals set due_at = now() where workflow_id = ${workflow.id}`
        yield* giveArrivals(workflow.id)
        expect(yield* ended(workflow.id, run)).toMatchObject({ outcome: "completed" })
        expect(yield* runOf(second)).toMatchObject({ status: "running" })
      })
  )

  it.effect("A request is given again after a crash, and ends each wait once", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const source = yield* createSource()
      const workflow = yield* workflowOf(source.id, null)
      const runs = [yield* receive(workflow, {}), yield* receive(workflow, {})]
      yield* wake(workflow.id)
      const request = yield* accept(source.id, { state: "x" })
      const [arrival] = yield* sql<{ about: string }>`
        select * from workflow_arrivals where workflow_id = ${workflow.id} and about = ${request}`
      yield* giveArrivals(workflow.id)
      for (const run of runs) expect(yield* ended(workflow.id, run)).toMatchObject({ outcome: "completed" })
      const parts = yield* Effect.forEach(runs, (run) => Effect.map(runOf(run), ({ parts }) => parts))
      // The rows that a process that died has not removed.
      yield* sql`insert into workflow_arrivals ${sql.insert(arrival! as never)}`
      for (const run_id of runs) {
        yield* sql`insert into workflow_waits (run_id, step_id, workflow_id, team_id, source_id, since, expires_at)
          values (${run_id}, 'wait', ${workflow.id}, ${team}, ${source.id}, now() - interval '1 minute', now() + interval '1 hour')`
      }
      yield* giveArrivals(workflow.id)
      expect(yield* Effect.forEach(runs, (run) => Effect.map(runOf(run), (row) => row["parts"]))).toEqual(parts)
      expect(yield* counted(source.id)).toEqual({ waits: 0, arrivals: 0 })
    })
  )

  it.effect("A run with a call under way takes the request, and makes its call once", () =>
    Effect.gen(function* () {
      const source = yield* createSource()
      const workflow = yield* workflowOf(source.id, orderOf, true)
      const run = yield* receive(workflow, { order: 3 })
      const calls = sent.length
      const begun = yield* Deferred.make<void>()
      const answer = yield* Deferred.make<Outcome>()
      coming.push(Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(answer)))
      const working = yield* Effect.forkChild(wake(workflow.id))
      yield* Deferred.await(begun)
      const waits = Effect.map(counted(source.id), (counts) => counts.waits)
      yield* Effect.repeat(waits, { until: (count) => count === 1 })
      yield* accept(source.id, { order: 3 })
      yield* Effect.repeat(Effect.andThen(giveArrivals(workflow.id), waits), { until: (count) => count === 0 })
      yield* Deferred.succeed(answer, { kind: "succeeded", output: { status: 200 }, ports: ["out"] })
      yield* Fiber.join(working)
      expect(yield* ended(workflow.id, run)).toMatchObject({ outcome: "completed", succeeded_steps: 3 })
      expect(sent.slice(calls).map(([step]) => step)).toEqual(["beside"])
    })
  )

  it.effect("Without a request in time the run continues by timed_out", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const source = yield* createSource()
      const workflow = yield* workflowOf(source.id)
      const run = yield* receive(workflow, { order: 4 })
      const hour = 3_600_000
      const real = executors.get("wait")!
      // A run that began an hour ago.
      executors.set("wait", (effect, ...given) => real({ ...effect, startedAt: effect.startedAt - hour }, ...given))
      yield* wake(workflow.id)
      yield* accept(source.id, { order: 4 })
      yield* giveArrivals(workflow.id)
      expect(yield* ended(workflow.id, run)).toMatchObject({ outcome: "completed", skipped_steps: 1 })
      const outputs = (yield* outputOf(run)).map(([, { output }]) => output)
      expect(outputs).toContainEqual(expect.objectContaining({ request_id: null, received_at: null }))
      yield* sql`delete from workflow_waits where source_id = ${source.id}`
    })
  )

  it.effect(
    "A template in the filter stands for one value: neither nothing nor operators of a sender are accepted",
    () =>
      Effect.gen(function* () {
        const source = yield* createSource()
        const workflow = yield* workflowOf(source.id)
        for (const [body, code] of [
          [{}, "INPUT_REQUIRED"],
          [{ order: { $exist: true } }, "INPUT_INVALID"],
          [{ order: [1, 2] }, "INPUT_INVALID"],
          [{ order: null }, "INPUT_INVALID"]
        ] as const) {
          const run = yield* receive(workflow, body)
          expect(yield* ended(workflow.id, run)).toMatchObject({
            status: "failed",
            error_code: code,
            error_step_id: "wait"
          })
        }
        expect(yield* counted(source.id)).toEqual({ waits: 0, arrivals: 0 })
      })
  )

  it.effect("A source has a limit of steps that wait, which ended runs do not count in", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const source = yield* createSource()
      const workflow = yield* workflowOf(source.id)
      const waiting = yield* receive(workflow, { order: 1 })
      yield* wake(workflow.id)
      const fill = (run: string) => sql`
        insert into workflow_waits (run_id, step_id, workflow_id, team_id, source_id, since, expires_at)
        select ${run}, 's' || n, ${workflow.id}, ${team}, ${source.id}, now(), now() + interval '1 hour'
        from generate_series(1, 999) n`
      yield* fill(waiting)
      const refused = yield* receive(workflow, { order: 2 })
      expect(yield* ended(workflow.id, refused)).toMatchObject({ error_code: "WAIT_LIMIT_REACHED" })
      yield* sql`update workflow_waits set run_id = 'wfr_ended' where source_id = ${source.id} and step_id <> 'wait'`
      const accepted = yield* receive(workflow, { order: 3 })
      yield* wake(workflow.id)
      expect(yield* runOf(accepted)).toMatchObject({ status: "running" })
      expect((yield* counted(source.id)).waits).toBe(2)
    })
  )

  it.effect("A source of another team, and one that a step waits at, are refused when they are named or deleted", () =>
    Effect.gen(function* () {
      const sources = yield* Sources
      const id = newId(prefixes.source, Date.now())
      yield* sources.create(otherTeam, id, sourceFields({ name: unique("other") }))
      const refused = yield* Effect.flip(workflowOf(id))
      expect(JSON.stringify(refused)).toContain("RESOURCE_NOT_FOUND")
      const source = yield* createSource()
      yield* workflowOf(source.id)
      const kept = yield* Effect.flip(sources.delete(team, source.id))
      expect(kept).toMatchObject({ code: "RESOURCE_IN_USE" })
    })
  )
})
