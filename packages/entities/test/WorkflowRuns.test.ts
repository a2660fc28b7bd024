import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { Sharding, TestRunner } from "effect/cluster"
import { SqlClient } from "effect/sql"
import { derivedId, newId, prefixes } from "@tidegate/model/Ids"
import { Journal } from "@tidegate/storage/Journal"
import { RunJournal } from "@tidegate/storage/RunJournal"
import { Workflows } from "@tidegate/storage/Workflows"
import type { Outcome } from "@tidegate/workflows/StepKind"
import * as ControlPlane from "../../storage/test/controlPlane.ts"
import { requestRecord } from "../../storage/test/requests.ts"
import { Lease } from "../src/Lease.ts"
import { shardOf } from "../src/Shards.ts"
import { Effects } from "../src/Workflow/RunWork.ts"
import * as WorkflowBehaviour from "../src/Workflow/WorkflowBehaviour.ts"
import { WorkflowEntity } from "../src/Workflow/WorkflowProtocol.ts"

const { createDestination, createSource, team, unique } = ControlPlane

/** What left the process: the step, and the key that it went with. */
const sent: Array<readonly [step: string, key: string]> = []
/** What comes of the next ones; then they succeed. */
const coming: Array<Effect.Effect<Outcome>> = []

const effects = Layer.succeed(Effects, {
  carryOut: ({ step }, _run, key) =>
    Effect.suspend(() => {
      sent.push([step.step.id, key])
      return coming.shift() ?? Effect.succeed<Outcome>({ kind: "succeeded", output: { status: 200 }, ports: ["out"] })
    })
})

const world = WorkflowBehaviour.layer.pipe(
  Layer.provideMerge(effects),
  Layer.provideMerge(
    Layer.mergeAll(Journal.layer, RunJournal.layer, Workflows.layer, TestRunner.layer, Lease.layerAlways)
  ),
  Layer.provideMerge(ControlPlane.layer)
)

const trim = (id: string, input: string) => ({
  id,
  kind: "action",
  action: { provider_key: "formatter", action_key: "text.trim" },
  invocation_inputs: { input }
})
const from = (source: string | null, target: string) => ({
  source_type: source === null ? "trigger" : "step",
  source_step_id: source,
  target_step_id: target
})

const create = Effect.fnUntraced(function* (steps: ReadonlyArray<object>, edges: ReadonlyArray<object>) {
  const source = yield* createSource()
  const workflows = yield* Workflows
  return yield* workflows.create(team, newId(prefixes.workflow, Date.now()), {
    name: unique("workflow"),
    description: null,
    source_id: source.id,
    status: "active",
    steps: steps as never,
    edges: edges as never,
    version: 1
  })
})

/** A request of the workflow's source, stored as a door stores it. */
const receive = Effect.fnUntraced(function* (
  workflow: { readonly id: string; readonly source_id: string | null; readonly steps_count: number },
  body: unknown
) {
  const sql = yield* SqlClient.SqlClient
  const journal = yield* Journal
  const sharding = yield* Sharding.Sharding
  const id = newId(prefixes.request, Date.now())
  const run = derivedId(prefixes.workflowRun, id, workflow.id)
  const [source] = yield* sql<{ version: bigint }>`select version from sources where id = ${workflow.source_id}`
  const bytes = Buffer.from(JSON.stringify(body))
  const record = requestRecord(
    {
      teamId: team,
      sourceId: workflow.source_id!,
      id,
      version: Number(source!.version),
      body: bytes,
      bodySize: bytes.length,
      events: [],
      runs: [
        {
          id: run,
          workflowId: workflow.id,
          shard: shardOf(sharding, workflow.id),
          version: 1,
          steps: workflow.steps_count
        }
      ]
    },
    { connection: "", destination: "" }
  )
  const outcome = yield* Effect.callback<string>((resume) =>
    journal.accept(record, (outcome) => resume(Effect.succeed(outcome)))
  )
  expect(outcome).toBe("committed")
  return run
})

const wake = (id: string) => Effect.flatMap(WorkflowEntity.client, (client) => client(id).Wake())

const runOf = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Record<string, unknown>>`
    select r.status, r.outcome, r.parts, r.succeeded_steps, r.failed_steps, r.skipped_steps, r.error_code, r.error_step_id,
      exists (select from workflow_queue q where q.run_id = r.id) as queued
    from workflow_runs r where r.id = ${id}`
  return row!
})

layer(world, { excludeTestServices: true })("the runs of a workflow", (it) => {
  it.effect("a run of steps within the process is stored once, with previews that have no secret in them", () =>
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

  it.effect("what leaves the process is stored before and after, and what follows it with that", () =>
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

  it.effect("a run that was under way begins its step again where it is taken up, with the same key", () =>
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

  it.effect("a failure is told of the run, and a step that is not reached is skipped", () =>
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

  it.effect("a delay is a row that comes due later; nothing is held meanwhile", () =>
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

  it.effect("of a paused workflow they wait, of a disabled one they fail", () =>
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
})
