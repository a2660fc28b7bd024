import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { loopHeader } from "@tidegate/model/HeaderRules"
import type { WorkflowTriggers } from "@tidegate/model/WorkflowTriggers"
import { Workflows } from "@tidegate/storage/workflows/Workflows"
import { team } from "../../storage/test/controlPlane.ts"
import { makeWorkflowStep } from "../src/Workflow/effects/WorkflowEffect.ts"
import { giveUp } from "../src/Workflow/GiveUp.ts"
import { WorkflowEntity } from "../src/Workflow/WorkflowProtocol.ts"
import { create, ended, executors, from, giveArrivals, receive, runOf, trim, wake, world } from "./RunsWorld.ts"

type Made = Effect.Success<ReturnType<typeof create>>

const one = (input: string, triggers: Partial<WorkflowTriggers> | null = null) =>
  create([trim("only", input)], [from(null, "only")], team, triggers)

/** A run of it succeeds. */
const alarm = one("{{trigger.body.error.code}}")
/** A run of it fails, unless its request has a name. */
const failing = (on_failure: string | null) =>
  one("{{trigger.body.name}}", on_failure === null ? null : { on_failure: { workflow_id: on_failure } })

/** The run has failed, and its workflow has what has arrived. */
const fails = Effect.fnUntraced(function* (workflow: Made, body: object = {}) {
  const run = yield* receive(workflow, body)
  expect(yield* ended(workflow.id, run)).toMatchObject({ outcome: "failed", error_code: "FORMATTER_INPUT_REQUIRED" })
  yield* giveArrivals(workflow.id)
  return run
})

interface Begun {
  readonly id: string
  readonly trigger: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Readonly<Record<string, unknown>>
}

const runsOf = Effect.fnUntraced(function* (workflow: Made) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ id: string; trigger: string; headers: string; body: Uint8Array }>`
    select r.id, r.trigger, i.headers, i.body from workflow_runs r join workflow_inputs i on i.run_id = r.id
    where r.workflow_id = ${workflow.id} order by r.created_at, r.id`
  return rows.map(({ body, headers, id, trigger }): Begun => {
    return { id, trigger, headers: JSON.parse(headers), body: JSON.parse(Buffer.from(body).toString()) }
  })
})

/** What the failed run says about its on-failure run. */
const toldBy = Effect.fnUntraced(function* (run: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ on_failure: object | null }>`select on_failure from workflow_runs where id = ${run}`
  return row!.on_failure
})

const waitingOf = ({ id }: Made) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`select about, due_at from workflow_arrivals where workflow_id = ${id}`
  )

layer(world, { excludeTestServices: true })("On-failure workflow", (it) => {
  it.effect("A failed run begins one run of the named workflow, and tells it what failed", () =>
    Effect.gen(function* () {
      const [told, sql] = [yield* alarm, yield* SqlClient.SqlClient]
      const workflow = yield* failing(told.id)
      const run = yield* receive(workflow, {})
      yield* sql`update requests set headers = ${JSON.stringify({ [loopHeader]: "mark", cookie: "s3cr3t" })}
        where id = (select request_id from workflow_runs where id = ${run})`
      yield* ended(workflow.id, run)
      yield* giveArrivals(workflow.id)
      const [begun, ...others] = yield* runsOf(told)
      expect(others).toEqual([])
      expect(begun).toMatchObject({
        trigger: "failure",
        headers: { "content-type": "application/json", [loopHeader]: "mark" },
        body: {
          workflow: { id: workflow.id, name: workflow.name, version: 1 },
          run: { id: run, label: null, trigger_type: "request", attempt_count: 1 },
          error: { code: "FORMATTER_INPUT_REQUIRED", step_id: "only" }
        }
      })
      expect(Object.keys(begun!.headers)).not.toContain("cookie")
      const { request_id } = begun!.body["run"] as { readonly request_id: string }
      expect(yield* sql`select id from requests where id = ${request_id}`).toHaveLength(1)
      expect(yield* toldBy(run)).toEqual({
        attempt: 1,
        workflow_id: told.id,
        run_id: begun!.id,
        error_code: null,
        error_message: null
      })
      expect(yield* ended(told.id, begun!.id)).toMatchObject({ outcome: "completed" })
      yield* ended(workflow.id, yield* receive(workflow, { name: "Ada" }))
      expect(yield* waitingOf(workflow)).toEqual([])
    })
  )

  it.effect(
    "A failure whose process died before or after it was told begins one run, and a retry that fails another one",
    () =>
      Effect.gen(function* () {
        const [told, sql] = [yield* alarm, yield* SqlClient.SqlClient]
        const client = yield* WorkflowEntity.client
        const workflow = yield* failing(told.id)
        const run = yield* receive(workflow, {})
        yield* ended(workflow.id, run)
        // The arrival was committed with the end of the run. It is there until the other run has been stored.
        const [arrival] = yield* sql`select * from workflow_arrivals where workflow_id = ${workflow.id}`
        expect(arrival).toMatchObject({ about: `failed/${run}` })
        yield* giveArrivals(workflow.id)
        expect(yield* runsOf(told)).toHaveLength(1)
        yield* sql`insert into workflow_arrivals ${sql.insert(arrival as never)}`
        yield* Effect.all([giveArrivals(workflow.id), client(workflow.id).Arrive()], { concurrency: "unbounded" })
        expect(yield* runsOf(told)).toHaveLength(1)
        expect(yield* waitingOf(workflow)).toEqual([])

        yield* client(workflow.id).RetryStep({
          team_id: team,
          run_id: run,
          step_id: "only",
          retry_id: "wrt_1"
        })
        expect(yield* ended(workflow.id, run)).toMatchObject({ outcome: "failed", attempts: 2 })
        yield* giveArrivals(workflow.id)
        expect((yield* runsOf(told)).map(({ body }) => body["run"])).toMatchObject([
          { id: run, attempt_count: 1 },
          { id: run, attempt_count: 2 }
        ])
        expect(yield* toldBy(run)).toMatchObject({ attempt: 2 })
      })
  )

  it.effect("A run that follows from a failed run begins none when it fails itself, however deep it is called", () =>
    Effect.gen(function* () {
      executors.set("workflow", yield* makeWorkflowStep)
      const last = yield* alarm
      const called = yield* one("{{trigger.body.none}}", { on_failure: { workflow_id: last.id } })
      const caller = yield* create(
        [{ id: "call", kind: "workflow", resource_id: called.id, config: {}, invocation_inputs: { input: {} } }],
        [from(null, "call")],
        team,
        { on_failure: { workflow_id: last.id } }
      )
      const workflow = yield* failing(caller.id)
      yield* fails(workflow)
      const [begun] = yield* runsOf(caller)
      // Its new run has woken it already: that message may still be at work.
      const [child] = yield* Effect.repeat(Effect.andThen(wake(caller.id), runsOf(called)), {
        until: (runs) => runs.length > 0
      })
      yield* ended(called.id, child!.id)
      yield* giveArrivals(called.id)
      expect(yield* toldBy(child!.id)).toMatchObject({
        workflow_id: last.id,
        run_id: null,
        error_code: "ON_FAILURE_LOOP"
      })
      yield* giveArrivals(caller.id)
      expect(yield* ended(caller.id, begun!.id)).toMatchObject({ outcome: "failed" })
      expect(yield* waitingOf(caller)).toEqual([])
      expect(yield* runsOf(last)).toEqual([])
    })
  )

  it.effect("A workflow that is disabled or deleted since begins none, and the failed run says why", () =>
    Effect.gen(function* () {
      const [told, sql] = [yield* alarm, yield* SqlClient.SqlClient]
      const workflow = yield* failing(told.id)
      const set = (status: string) => sql`update workflows set status = ${status} where id = ${told.id}`
      yield* set("disabled")
      expect(yield* toldBy(yield* fails(workflow))).toMatchObject({
        run_id: null,
        error_code: "WORKFLOW_NOT_EXECUTABLE",
        error_message: "the on-failure workflow is disabled"
      })
      yield* set("paused")
      const held = yield* fails(workflow)
      const [begun] = yield* runsOf(told)
      expect(yield* toldBy(held)).toMatchObject({ run_id: begun!.id, error_code: null })
      yield* (yield* Workflows).delete(team, told.id)
      expect(yield* toldBy(yield* fails(workflow))).toMatchObject({ run_id: null, error_code: "RESOURCE_DELETED" })
      expect(yield* waitingOf(workflow)).toEqual([])
    })
  )

  it.effect(
    "A run that somebody has ended, or whose failure is handled, begins none, and one that was given up begins one",
    () =>
      Effect.gen(function* () {
        const [told, sql] = [yield* alarm, yield* SqlClient.SqlClient]
        const workflow = yield* create(
          [{ id: "wait", kind: "wait", config: { for: "approval", amount: 1, unit: "hours" } }],
          [from(null, "wait")],
          team,
          { on_failure: { workflow_id: told.id } }
        )
        const client = yield* WorkflowEntity.client
        yield* client(workflow.id).CancelRun({ team_id: team, run_id: yield* receive(workflow, {}) })
        const stopped = yield* receive(workflow, {})
        yield* sql`update workflows set status = 'disabled' where id = ${workflow.id}`
        expect(yield* ended(workflow.id, stopped)).toMatchObject({
          outcome: "cancelled",
          error_code: "WORKFLOW_DISABLED"
        })
        const handled = yield* create(
          [{ ...trim("only", "{{trigger.body.none}}"), config: { on_error: "continue" } }],
          [from(null, "only")],
          team,
          { on_failure: { workflow_id: told.id } }
        )
        const run = yield* receive(handled, {})
        expect(yield* ended(handled.id, run)).toMatchObject({ outcome: "completed_with_errors" })
        for (const one of [workflow, handled]) expect(yield* waitingOf(one)).toEqual([])

        yield* sql`update workflows set status = 'active' where id = ${workflow.id}`
        const old = yield* receive(workflow, {})
        yield* giveUp({ id: old, team_id: team, parts: 0, attempts: 1 }, { code: "RUN_EXPIRED", message: "too old" })
        expect(yield* runOf(old)).toMatchObject({ outcome: "cancelled" })
        yield* giveArrivals(workflow.id)
        expect(yield* runsOf(told)).toMatchObject([{ body: { error: { code: "RUN_EXPIRED", step_id: null } } }])
      })
  )

  it.effect("The workflow of the team is told of runs whose workflow has no setting, except its own", () =>
    Effect.gen(function* () {
      const [own, sql] = [yield* alarm, yield* SqlClient.SqlClient]
      const common = yield* failing(null)
      yield* Effect.gen(function* () {
        yield* sql`update teams set on_failure_workflow_id = ${common.id} where id = ${team}`
        const [first, second] = [yield* failing(own.id), yield* failing(null)]
        const without = yield* one("{{trigger.body.name}}", { on_failure: { workflow_id: null } })
        yield* fails(first)
        // It says that none is told.
        const untold = yield* fails(without)
        expect(yield* toldBy(untold)).toBeNull()
        const run = yield* fails(second)
        expect(yield* runsOf(own)).toHaveLength(1)
        expect(yield* runsOf(common)).toMatchObject([{ body: { run: { id: run } } }])
        yield* fails(common)
        expect(yield* runsOf(common)).toHaveLength(1)
      }).pipe(Effect.ensuring(Effect.orDie(sql`update teams set on_failure_workflow_id = null where id = ${team}`)))
    })
  )
})
