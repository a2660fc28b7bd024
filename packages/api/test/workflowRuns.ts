import { Effect, Layer, Schedule } from "effect"
import { Sharding } from "effect/cluster"
import { SqlClient } from "effect/sql"
import { derivedId, newId, prefixes } from "@tidegate/model/Ids"
import { Journal } from "@tidegate/storage/Journal"
import { WorkflowEntity } from "@tidegate/entities/Workflow/WorkflowProtocol"
import type { Outcome } from "@tidegate/workflows/StepKind"
import { Effects } from "../../entities/src/Workflow/RunWork.ts"
import { shardOf } from "../../entities/src/Shards.ts"
import { nextMs } from "../../../test/support/NextMs.ts"
import { requestRecord } from "../../storage/test/requests.ts"
import { call, layer as server, teams } from "./ControlServer.ts"

/** Workflow runs in the control API's test environment: requests are stored as ingress stores them, and actors execute the runs. */

/** What comes of what leaves the process for a step, in turn; then it succeeds. */
export const coming: Array<Outcome> = []

const effects = Layer.succeed(Effects, {
  carryOut: () =>
    Effect.sync(
      (): Outcome =>
        coming.shift() ?? { kind: "succeeded", output: { status: 200, headers: {}, body: null }, ports: ["out"] }
    )
})

export const layer = Journal.layer.pipe(Layer.provideMerge(server), Layer.provide(effects))

let made = 0
export const unique = (text: string): string => `${text} ${++made}`

export const trim = (id: string, input: string) => ({
  id,
  kind: "action",
  name: `Trim ${id}`,
  action: { provider_key: "formatter", action_key: "text.trim" },
  invocation_inputs: { input }
})

export const send = (id: string, destination: string, config: object = {}) => ({
  id,
  kind: "destination",
  name: "Send",
  resource_id: destination,
  invocation_inputs: { body: "{{trigger.body}}" },
  config
})

export const from = (source: string | null, target: string, port?: string) => ({
  source_type: source === null ? "trigger" : "step",
  source_step_id: source,
  target_step_id: target,
  ...(port === undefined ? {} : { source_port: port })
})

export const createSource = Effect.suspend(() =>
  Effect.map(call("POST", "/sources", { body: { name: unique("shop") } }), ({ body }) => body)
)

export const createDestination = Effect.suspend(() =>
  Effect.map(
    call("POST", "/destinations", { body: { name: unique("crm"), type: "MOCK_API", config: {} } }),
    ({ body }) => body
  )
)

export const createWorkflow = Effect.fnUntraced(function* (
  steps: ReadonlyArray<object>,
  edges: ReadonlyArray<object>,
  fields: object = {}
) {
  const source = yield* createSource
  const body = { name: unique("flow"), source_id: source.id, steps, edges, ...fields }
  const made = yield* call("POST", "/workflows", { body })
  if (made.status !== 200) return yield* Effect.die(made.body)
  return { ...made.body, source_name: source.name }
})

interface Received {
  readonly headers?: Record<string, string>
  readonly query?: string
  readonly path?: string
  readonly team?: string
}

/** A request of the workflow's source, and the run that it begins. */
export const receive = Effect.fnUntraced(function* (
  workflow: { readonly id: string; readonly source_id: string; readonly steps_count: number; readonly version: number },
  body: unknown,
  { headers = {}, path = "/", query = "", team = teams.a.id }: Received = {}
) {
  const sql = yield* SqlClient.SqlClient
  const journal = yield* Journal
  const sharding = yield* Sharding.Sharding
  const id = newId(prefixes.request, yield* nextMs)
  const run = derivedId(prefixes.workflowRun, id, workflow.id)
  const [source] = yield* sql<{ version: bigint }>`select version from sources where id = ${workflow.source_id}`
  const bytes = Buffer.from(typeof body === "string" ? body : JSON.stringify(body))
  const record = requestRecord(
    {
      teamId: team,
      sourceId: workflow.source_id,
      id,
      version: Number(source!.version),
      path,
      query,
      headers: JSON.stringify({ "content-type": "application/json", ...headers }),
      body: bytes,
      bodySize: bytes.length,
      events: [],
      runs: [
        {
          id: run,
          workflowId: workflow.id,
          shard: shardOf(sharding, workflow.id),
          version: workflow.version,
          steps: workflow.steps_count
        }
      ]
    },
    { connection: "", destination: "" }
  )
  const outcome = yield* Effect.callback<string>((resume) =>
    journal.accept(record, (outcome) => resume(Effect.succeed(outcome)))
  )
  if (outcome !== "committed") return yield* Effect.die(outcome)
  return { run, request: id }
})

/** Carries out what is due, to its end or its next wait; also when somebody else has begun with it. */
export const carryOut = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const { Wake } = (yield* WorkflowEntity.client)(id)
  const isDue = sql`select 1 from workflow_queue where workflow_id = ${id} and due_at <= now()`
  yield* Effect.repeat(Effect.andThen(Wake(), isDue), {
    until: ({ length }) => length === 0,
    schedule: Schedule.spaced("5 millis")
  })
})
