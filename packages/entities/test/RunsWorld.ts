import { expect } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Sharding, TestRunner } from "effect/cluster"
import { SqlClient } from "effect/sql"
import { derivedId, newId, prefixes } from "@tidegate/model/Ids"
import { completeTriggers, type WorkflowTriggers } from "@tidegate/model/WorkflowTriggers"
import { Journal } from "@tidegate/storage/Journal"
import { RunJournal } from "@tidegate/storage/workflows/RunJournal"
import { Sources } from "@tidegate/storage/control/Sources"
import { Actions } from "@tidegate/storage/workflows/Actions"
import { Workflows } from "@tidegate/storage/workflows/Workflows"
import type { Outcome } from "@tidegate/workflows/StepKind"
import * as ControlPlane from "../../storage/test/controlPlane.ts"
import { nextMs } from "../../../test/support/NextMs.ts"
import { requestRecord } from "../../storage/test/requests.ts"
import { Lease } from "../src/Lease.ts"
import { shardOf } from "../src/Shards.ts"
import { Effects } from "../src/Workflow/RunWork.ts"
import * as WorkflowBehaviour from "../src/Workflow/WorkflowBehaviour.ts"
import { WorkflowEntity } from "../src/Workflow/WorkflowProtocol.ts"

const { sourceFields, team, unique } = ControlPlane

/** What left the process: the step, and the key that it went with. */
export const sent: Array<readonly [step: string, key: string]> = []
/** What comes of the next ones; then they succeed. */
export const coming: Array<Effect.Effect<Outcome>> = []

type CarryOut = (typeof Effects)["Service"]["carryOut"]

/** The real executors of a suite, by the kinds of their steps. */
export const executors = new Map<string, CarryOut>()

const effects = Layer.succeed(Effects, {
  carryOut: (effect, run, key) =>
    Effect.suspend(() => {
      const { step } = effect
      const executor = executors.get(step.step.kind)
      if (executor !== undefined) return executor(effect, run, key)
      sent.push([step.step.id, key])
      return coming.shift() ?? Effect.succeed<Outcome>({ kind: "succeeded", output: { status: 200 }, ports: ["out"] })
    })
})

/** A process beside others: its actors, and the only writer of its runs. */
export const processOf = (journal: typeof RunJournal.layer) =>
  WorkflowBehaviour.layer.pipe(
    Layer.provideMerge(effects),
    // Suites share what a worker has loaded, and these with it.
    Layer.provideMerge(Layer.effectDiscard(Effect.sync(() => [executors.clear(), sent.splice(0), coming.splice(0)]))),
    Layer.provideMerge(
      Layer.mergeAll(Journal.layer, journal, Actions.layer, Workflows.layer, TestRunner.layer, Lease.layerAlways)
    )
  )

export const worldOf = (journal: typeof RunJournal.layer) =>
  processOf(journal).pipe(Layer.provideMerge(ControlPlane.layer))

export const world = worldOf(RunJournal.layer)

export const trim = (id: string, input: string) => ({
  id,
  kind: "action",
  action: { provider_key: "formatter", action_key: "text.trim" },
  invocation_inputs: { input }
})
export const from = (source: string | null, target: string) => ({
  source_type: source === null ? "trigger" : "step",
  source_step_id: source,
  target_step_id: target
})

export const create = Effect.fnUntraced(function* (
  steps: ReadonlyArray<object>,
  edges: ReadonlyArray<object>,
  owner: string = team,
  triggers: Partial<WorkflowTriggers> | null = null
) {
  const id = newId(prefixes.source, Date.now())
  const source = yield* (yield* Sources).create(owner, id, sourceFields({ name: unique("source") }))
  const workflows = yield* Workflows
  return yield* workflows.create(owner, newId(prefixes.workflow, Date.now()), {
    name: unique("workflow"),
    description: null,
    run_label: null,
    source_id: source.id,
    status: "active",
    steps: steps as never,
    edges: edges as never,
    version: 1,
    triggers:
      triggers === null
        ? null
        : completeTriggers({ schedule: [], answer: null, deduplicate: null, ...triggers } as never)
  })
})

/** A request of the workflow's source, stored as ingress stores it. */
export const receive = Effect.fnUntraced(function* (
  workflow: { readonly id: string; readonly source_id: string | null; readonly steps_count: number },
  body: unknown,
  owner: string = team
) {
  const sql = yield* SqlClient.SqlClient
  const journal = yield* Journal
  const sharding = yield* Sharding.Sharding
  const id = newId(prefixes.request, yield* nextMs)
  const run = derivedId(prefixes.workflowRun, id, workflow.id)
  const [source] = yield* sql<{ version: bigint }>`select version from sources where id = ${workflow.source_id}`
  const bytes = Buffer.from(JSON.stringify(body))
  const record = requestRecord(
    {
      teamId: owner,
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

/** Requests arrive one after the other. */
export const arrive = (workflow: Parameters<typeof receive>[0], bodies: ReadonlyArray<unknown>) =>
  Effect.forEach(bodies, (body) => receive(workflow, body))

export const wake = (id: string) => Effect.flatMap(WorkflowEntity.client, (client) => client(id).Wake())

export const runOf = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Record<string, unknown>>`
    select r.status, r.outcome, r.parts, r.attempts, r.succeeded_steps, r.failed_steps, r.skipped_steps, r.error_code, r.error_step_id,
      exists (select from workflow_queue q where q.run_id = r.id) as queued
    from workflow_runs r where r.id = ${id}`
  return row!
})

/** Wakes the workflow until the run has ended, and returns it. */
export const ended = (workflow: string, run: string) =>
  Effect.repeat(Effect.andThen(wake(workflow), runOf(run)), {
    until: ({ status }) => status !== "queued" && status !== "running"
  })

/** Until all that is due has been given: another message may be at work. */
export const giveArrivals = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const client = yield* WorkflowEntity.client
  yield* Effect.repeat(
    Effect.andThen(
      client(id).Arrive(),
      sql`select 1 from workflow_arrivals where workflow_id = ${id} and due_at <= now() limit 1`
    ),
    { until: (rows) => rows.length === 0 }
  )
})
