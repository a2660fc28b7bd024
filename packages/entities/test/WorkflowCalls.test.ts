import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { loopHeader } from "@tidegate/model/HeaderRules"
import { otherTeam, team } from "../../storage/test/controlPlane.ts"
import { makeWorkflowStep } from "../src/Workflow/effects/WorkflowEffect.ts"
import { WorkflowEntity } from "../src/Workflow/WorkflowProtocol.ts"
import { giveArrivals, create, ended, executors, from, receive, runOf, trim, wake, world } from "./RunsWorld.ts"

/** A workflow that is called: it trims the name in its input. */
const called = create(
  [trim("first", "x"), trim("last", "{{trigger.body.name}}")],
  [from(null, "first"), from("first", "last")]
)

const callerOf = Effect.fnUntraced(function* (workflow: string, config: object = {}) {
  executors.set("workflow", yield* makeWorkflowStep)
  return yield* create(
    [
      {
        id: "call",
        kind: "workflow",
        resource_id: workflow,
        config,
        invocation_inputs: { input: { name: "{{trigger.body.name}}" } }
      },
      trim("after", config === noConfig ? "{{steps.call.output.result.result}}" : "{{steps.call.error.code}}")
    ],
    [from(null, "call"), from("call", "after")]
  )
})

const noConfig = {}

const childrenOf = (run: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<{ id: string; depth: number }>`
      select child_run_id as id, depth from workflow_children where parent_run_id = ${run} order by began_at`
  )

const outputsOf = Effect.fnUntraced(function* (run: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{
    outputs: string | null
  }>`select outputs from workflow_steps where run_id = ${run} order by part`
  return rows.map(({ outputs }) => outputs).join("\n")
})

layer(world, { excludeTestServices: true })("Step that calls a workflow", (it) => {
  it.effect("The called workflow runs with the input of the step, and its result is the output", () =>
    Effect.gen(function* () {
      const child = yield* called
      const caller = yield* callerOf(child.id, noConfig)
      const run = yield* receive(caller, { name: " Ada " })
      yield* wake(caller.id)
      const [begun] = yield* childrenOf(run)
      expect(begun).toMatchObject({ depth: 1 })
      expect(yield* runOf(run)).toMatchObject({ status: "running", queued: true })
      expect(yield* ended(child.id, begun!.id)).toMatchObject({ outcome: "completed" })
      yield* giveArrivals(caller.id)
      expect(yield* ended(caller.id, run)).toMatchObject({ outcome: "completed", succeeded_steps: 2 })
      expect(yield* outputsOf(run)).toContain(`"run_id":"${begun!.id}"`)
      expect(yield* outputsOf(run)).toContain(`["1",{"output":{"result":"Ada"}}]`)
    })
  )

  it.effect("The called run is in the chain of requests of its caller, and has no other headers of it", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const child = yield* called
      const caller = yield* callerOf(child.id, noConfig)
      const run = yield* receive(caller, { name: "x" })
      const headers = { "content-type": "text/plain", "x-other": "1", [loopHeader]: "mark" }
      yield* sql`update requests set headers = ${JSON.stringify(headers)}
        where id = (select request_id from workflow_runs where id = ${run})`
      const [begun] = yield* Effect.repeat(Effect.andThen(wake(caller.id), childrenOf(run)), {
        until: (children) => children.length > 0
      })
      const [input] = yield* sql<{ headers: string }>`select headers from workflow_inputs where run_id = ${begun!.id}`
      expect(JSON.parse(input!.headers)).toEqual({ "content-type": "application/json", [loopHeader]: "mark" })
    })
  )

  it.effect("A step that is repeated after a crash, and an end that comes before the step waits, begin one run", () =>
    Effect.gen(function* () {
      const child = yield* called
      const caller = yield* callerOf(child.id, noConfig)
      const run = yield* receive(caller, { name: "x" })
      const real = executors.get("workflow")!
      const context = yield* Effect.context<Effect.Services<ReturnType<typeof ended>>>()
      executors.set("workflow", (...given) =>
        Effect.gen(function* () {
          yield* real(...given)
          const [begun] = yield* childrenOf(run)
          yield* ended(child.id, begun!.id)
          yield* giveArrivals(caller.id)
          return yield* real(...given)
        }).pipe(Effect.provideContext(context), Effect.orDie)
      )
      expect(yield* ended(caller.id, run)).toMatchObject({ outcome: "completed", succeeded_steps: 2 })
      expect(yield* childrenOf(run)).toHaveLength(1)
    })
  )

  it.effect("A run that fails fails the step with its error, by which the caller can continue", () =>
    Effect.gen(function* () {
      const child = yield* create(
        [{ ...trim("only", "x"), invocation_inputs: { input: "{{trigger.body.none}}" } }],
        [from(null, "only")]
      )
      const caller = yield* callerOf(child.id, { on_error: "continue" })
      const run = yield* receive(caller, { name: "x" })
      yield* wake(caller.id)
      const [begun] = yield* childrenOf(run)
      expect(yield* ended(child.id, begun!.id)).toMatchObject({
        outcome: "failed",
        error_code: "FORMATTER_INPUT_REQUIRED"
      })
      yield* giveArrivals(caller.id)
      expect(yield* ended(caller.id, run)).toMatchObject({ outcome: "completed_with_errors" })
      expect(yield* outputsOf(run)).toContain(`{"result":"FORMATTER_INPUT_REQUIRED"}`)
    })
  )

  it.effect("A run that ends also ends the runs that it has begun", () =>
    Effect.gen(function* () {
      const child = yield* create(
        [{ id: "wait", kind: "wait", config: { for: "approval", amount: 1, unit: "hours" } }],
        [from(null, "wait")]
      )
      const caller = yield* callerOf(child.id, noConfig)
      const run = yield* receive(caller, { name: "x" })
      yield* wake(caller.id)
      const [begun] = yield* childrenOf(run)
      yield* Effect.repeat(Effect.andThen(wake(child.id), runOf(begun!.id)), {
        until: ({ status }) => status === "running"
      })
      const client = yield* WorkflowEntity.client
      yield* client(caller.id).CancelRun({ team_id: team, run_id: run })
      yield* giveArrivals(child.id)
      expect(yield* runOf(begun!.id)).toMatchObject({ outcome: "cancelled", queued: false })
      // The end of the child finds a caller that has ended.
      yield* giveArrivals(caller.id)
      expect(yield* runOf(run)).toMatchObject({ outcome: "cancelled" })
    })
  )

  it.effect("Calls are limited in depth and in number, and stay within a team", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const child = yield* called
      const caller = yield* callerOf(child.id, noConfig)
      const below = (of: {
        readonly parent: string
        readonly child: string
        readonly depth: number
        readonly root: string
      }) => sql`
        insert into workflow_children (parent_run_id, step_id, began_at, child_run_id, root_run_id, depth, team_id, workflow_id, shard,
          child_workflow_id, child_shard, expires_at)
        select ${of.parent}, 's' || n, now(), ${of.child} || case when n = 1 then '' else n::text end, ${of.root}, ${of.depth}::int2, ${team},
          ${caller.id}, 1, ${child.id}, 1, now() + interval '1 day' from generate_series(1, ${of.depth === 1 ? 20 : of.depth === 2 ? 200 : 1}::int) n`
      for (const [depth, wanted] of [
        [5, "CALL_LIMIT_REACHED"],
        [2, "CALL_LIMIT_REACHED"],
        [4, null]
      ] as const) {
        const run = yield* receive(caller, { name: "x" })
        yield* below({ parent: `wfr_p${depth}`, child: run, depth, root: `wfr_root${depth}` })
        yield* wake(caller.id)
        expect([depth, (yield* runOf(run))["error_code"]]).toEqual([depth, wanted])
      }
      const run = yield* receive(caller, { name: "x" })
      yield* below({ parent: run, child: "wfr_child", depth: 1, root: run })
      expect(yield* ended(caller.id, run)).toMatchObject({ error_code: "CALL_LIMIT_REACHED", error_step_id: "call" })
      const foreign = yield* create([trim("first", "x")], [from(null, "first")], otherTeam)
      expect(JSON.stringify(yield* Effect.flip(callerOf(foreign.id)))).toContain("RESOURCE_NOT_FOUND")
    })
  )
})
