import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Result } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import type { BulkKind } from "@tidegate/model/BulkOperation"
import type { RerunInput } from "@tidegate/resources/RerunInput"
import { cancelOperation, createOperation, getOperation } from "@tidegate/storage/bulk/BulkOperations"
import { stepOperation } from "@tidegate/storage/bulk/BulkSteps"
import { nextRuns, recordRuns } from "@tidegate/storage/bulk/RunTargets"
import { Workflows } from "@tidegate/storage/workflows/Workflows"
import { handleRuns } from "../src/BulkOperation/HandleRuns.ts"
import { WorkflowEntity } from "../src/Workflow/WorkflowProtocol.ts"
import { createDestination, otherTeam, team } from "../../storage/test/controlPlane.ts"
import { coming, create, ended, from, receive, runOf, sent, trim, wake, world } from "./RunsWorld.ts"

const newRun = () => newId(prefixes.workflowRun, Date.now())

const flow = Effect.gen(function* () {
  const destination = yield* createDestination()
  const send = (id: string) => ({ id, kind: "destination", resource_id: destination.id })
  return yield* create(
    [trim("trims", "{{trigger.body.name}}"), send("first"), send("second")],
    [from(null, "trims"), from("trims", "first"), from("first", "second")]
  )
})

const cancel = Effect.fnUntraced(function* (workflow: string, run_id: string, team_id = team) {
  const client = yield* WorkflowEntity.client
  return yield* client(workflow).CancelRun({ team_id, run_id })
})

const rerun = Effect.fnUntraced(function* (workflow: string, run_id: string, input: RerunInput, new_id = newRun()) {
  const client = yield* WorkflowEntity.client
  return yield* client(workflow).Rerun({ team_id: team, run_id, new_id, input })
})

const setStatus = Effect.fnUntraced(function* (id: string, status: string) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`update workflows set status = ${status} where id = ${id}`
})

const refused = { kind: "failed", error: { code: "BAD_RESPONSE", message: "HTTP 500", status: 500 } } as const

/** A planned operation on the runs of a workflow, with the parts of its steps. */
const planned = Effect.fnUntraced(function* (type: BulkKind, workflow: string, status: ReadonlyArray<string>) {
  const id = newId(prefixes.bulkOperation, Date.now())
  const filter = {
    from: new Date(Date.now() - 3_600_000).toISOString(),
    to: new Date(Date.now() + 1_000).toISOString(),
    workflow_id: [workflow],
    status
  }
  yield* createOperation({ team_id: team, type, id, filter, rate: null, confirmed: true, requested_by: null, shard: 0 })
  const share = { targets: 10, overMs: 0 }
  yield* stepOperation(id, share, { shardOf: () => 0, orderingKeyOf: () => null })
  const handle = yield* handleRuns
  const take = Effect.flatMap(nextRuns(id, share), (batch) => handle(id, batch!))
  return { id, take, record: (handled: Effect.Success<typeof take>) => recordRuns(id, share, handled) }
})

const cancelled = { status: "failed", outcome: "cancelled", error_code: "RUN_CANCELLED", queued: false }

layer(world, { excludeTestServices: true })("Steered run", (it) => {
  it.effect("A cancel aborts the call of a run and ends it, and a repeated cancel changes nothing", () =>
    Effect.gen(function* () {
      const workflow = yield* flow
      const [begun, aborted] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const call = Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)
      coming.push(Effect.onInterrupt(call, () => Deferred.succeed(aborted, undefined)))
      const run = yield* receive(workflow, { name: "a" })
      yield* Effect.forkChild(wake(workflow.id))
      yield* Deferred.await(begun)
      const before = sent.length
      const answer = { id: run, workflow_id: workflow.id, status: "failed", outcome: "cancelled" }
      expect(yield* cancel(workflow.id, run)).toEqual(answer)
      yield* Deferred.await(aborted)
      const after = yield* runOf(run)
      expect(after).toMatchObject({ ...cancelled, succeeded_steps: 1, failed_steps: 1, skipped_steps: 1 })
      expect(yield* cancel(workflow.id, run)).toEqual(answer)
      yield* wake(workflow.id)
      expect(yield* runOf(run)).toEqual(after)
      expect(sent.slice(before)).toEqual([])
    })
  )

  it.effect("A queued run is cancelled before it begins, also while its workflow is paused", () =>
    Effect.gen(function* () {
      const workflow = yield* flow
      yield* setStatus(workflow.id, "paused")
      const [run, other] = [yield* receive(workflow, { name: "a" }), yield* receive(workflow, { name: "a" })]
      const before = sent.length
      yield* cancel(workflow.id, run)
      expect(yield* runOf(run)).toMatchObject({ ...cancelled, parts: 1, skipped_steps: 3 })
      expect(yield* runOf(other)).toMatchObject({ status: "queued", queued: true })
      yield* setStatus(workflow.id, "active")
      expect(yield* ended(workflow.id, other)).toMatchObject({ status: "succeeded" })
      expect(yield* runOf(run)).toMatchObject(cancelled)
      expect(sent.slice(before)).toHaveLength(2)
    })
  )

  it.effect("A waiting run is cancelled at once", () =>
    Effect.gen(function* () {
      const workflow = yield* create(
        [{ id: "wait", kind: "delay", config: { mode: "for", amount: 3, unit: "days" } }],
        [from(null, "wait")]
      )
      const run = yield* receive(workflow, {})
      yield* wake(workflow.id)
      expect(yield* runOf(run)).toMatchObject({ status: "running", queued: true })
      yield* cancel(workflow.id, run)
      expect(yield* runOf(run)).toMatchObject(cancelled)
    })
  )

  it.effect("A run that has ended is not cancelled, and a run of another team is not found", () =>
    Effect.gen(function* () {
      const workflow = yield* flow
      const run = yield* receive(workflow, { name: "a" })
      expect(yield* Effect.flip(cancel(workflow.id, run, otherTeam))).toMatchObject({ code: "NOT_FOUND" })
      expect(yield* Effect.flip(cancel(workflow.id, newRun()))).toMatchObject({ code: "NOT_FOUND" })
      yield* ended(workflow.id, run)
      expect(yield* Effect.flip(cancel(workflow.id, run))).toMatchObject({
        code: "RUN_ENDED",
        data: { outcome: "completed" }
      })
    })
  )

  it.effect("A rerun is a new run of the pinned, the current or a given version, once for each id", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflow = yield* flow
      const run = yield* receive(workflow, { name: "a" })
      yield* ended(workflow.id, run)
      const workflows = yield* Workflows
      yield* workflows.update(team, workflow.id, (stored) => Result.succeed({ ...stored, name: "other" }))
      const versions = [undefined, "pinned", "current", 1] as const
      for (const [i, version] of versions.entries()) {
        const id = newRun()
        const input = version === undefined ? {} : { version }
        const made = yield* rerun(workflow.id, run, input, id)
        expect(made).toEqual({
          id,
          workflow_id: workflow.id,
          workflow_version: [1, 1, 2, 1][i],
          status: "queued",
          rerun_of: run
        })
        expect(yield* rerun(workflow.id, run, input, id)).toEqual(made)
        expect(yield* ended(workflow.id, id)).toMatchObject({ status: "succeeded", succeeded_steps: 3, parts: 3 })
      }
      const rows = yield* sql`
        select count(*)::int4 as runs, count(distinct request_id)::int4 as requests from workflow_runs where workflow_id = ${workflow.id}`
      expect(rows).toEqual([{ runs: 5, requests: 1 }])
      expect(yield* Effect.flip(rerun(workflow.id, run, { version: 7 }))).toMatchObject({ code: "NOT_FOUND" })
      yield* setStatus(workflow.id, "disabled")
      expect(yield* Effect.flip(rerun(workflow.id, run, {}))).toMatchObject({ code: "WORKFLOW_NOT_EXECUTABLE" })
    })
  )

  it.effect("A changed rerun has an input of its own, which a rerun of it repeats and retention removes", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const workflow = yield* flow
      const run = yield* receive(workflow, { name: "a" })
      yield* ended(workflow.id, run)
      const changed = yield* rerun(workflow.id, run, { trigger: { body: { name: " b " }, query: { x: "1" } } })
      const again = yield* rerun(workflow.id, changed.id, {})
      const [outputs, inputs] = [
        sql`select run_id, outputs from workflow_steps where run_id in (${changed.id}, ${again.id}) and outputs like '%"b"%'`,
        sql`select method, path, query, convert_from(body, 'utf8') as body from workflow_inputs where run_id in (${changed.id}, ${again.id})`
      ]
      for (const { id } of [changed, again]) {
        expect(yield* ended(workflow.id, id)).toMatchObject({ status: "succeeded" })
      }
      expect(yield* outputs).toHaveLength(2)
      const input = { method: "POST", path: "/", query: "x=1", body: '{"name":" b "}' }
      expect(yield* inputs).toEqual([input, input])
      yield* sql`delete from workflow_inputs where run_id = ${changed.id}`
      expect(yield* Effect.flip(rerun(workflow.id, changed.id, {}))).toMatchObject({ code: "PAYLOAD_UNAVAILABLE" })
      yield* sql`update requests set headers = '', body = null from workflow_runs r where r.id = ${run} and requests.id = r.request_id`
      expect(yield* Effect.flip(rerun(workflow.id, run, { trigger: { body: 1 } }))).toMatchObject({
        code: "PAYLOAD_UNAVAILABLE"
      })
    })
  )

  it.effect("A bulk retry whose process dies before it records its runs retries each run once", () =>
    Effect.gen(function* () {
      const workflow = yield* flow
      const received = yield* Effect.forEach(["a", "b", "c"], (name) => receive(workflow, { name }))
      // An operation handles runs by their ids; those of one millisecond are in no order of time.
      const runs = received.toSorted((a, b) => (a < b ? -1 : 1))
      coming.push(...runs.map(() => Effect.succeed(refused)))
      for (const run of runs) yield* ended(workflow.id, run)
      const { id, record, take } = yield* planned("workflow_run_bulk_retry", workflow.id, ["failed"])
      // It dies after it has asked the workflow's actor: the first of the runs fails again, the others succeed.
      coming.push(Effect.succeed(refused))
      yield* take
      for (const run of runs) yield* ended(workflow.id, run)
      const before = sent.length
      const handled = yield* take
      expect(handled).toEqual({ done: runs, refused: [], left: [] })
      yield* record(handled)
      // Another process that has handled the same runs counts nothing.
      yield* record(handled)
      expect(yield* getOperation({ team_id: team, of: "workflow_runs", id })).toMatchObject({
        status: "COMPLETED",
        total_count: 3,
        queued_count: 3,
        failed_count: 0
      })
      const after = yield* Effect.forEach(runs, runOf)
      expect(after.map(({ attempts }) => attempts)).toEqual([2, 2, 2])
      expect(after.filter(({ status }) => status === "failed")).toHaveLength(1)
      expect(after.filter(({ status }) => status === "succeeded")).toHaveLength(2)
      expect(sent.slice(before)).toEqual([])
    })
  )

  it.effect("A bulk cancellation counts runs that have ended meanwhile as failed, and ends with its operation", () =>
    Effect.gen(function* () {
      const workflow = yield* flow
      yield* setStatus(workflow.id, "paused")
      const runs = yield* Effect.forEach(["a", "b"], (name) => receive(workflow, { name }))
      const first = yield* planned("workflow_run_bulk_cancel", workflow.id, ["queued"])
      const second = yield* planned("workflow_run_bulk_cancel", workflow.id, ["queued"])
      yield* cancel(workflow.id, runs[1]!)
      yield* setStatus(workflow.id, "active")
      yield* ended(workflow.id, runs[0]!)
      const handled = yield* first.take
      expect(handled).toEqual({ done: [runs[1]], refused: [runs[0]], left: [] })
      expect(yield* first.record(handled)).toMatchObject({ isOver: true })
      expect(yield* getOperation({ team_id: team, of: "workflow_runs", id: first.id })).toMatchObject({
        status: "COMPLETED",
        queued_count: 1,
        failed_count: 1
      })
      yield* cancelOperation({ team_id: team, of: "workflow_runs", id: second.id })
      expect(yield* second.record(handled)).toMatchObject({ isOver: true })
      expect(yield* getOperation({ team_id: team, of: "workflow_runs", id: second.id })).toMatchObject({
        status: "CANCELLED",
        queued_count: 0
      })
    })
  )
})
