import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { WorkflowEntity } from "@tidegate/entities/Workflow/WorkflowProtocol"
import { call, teams } from "./ControlServer.ts"
import { carryOut, createWorkflow, from, layer as world, receive, trim, unique } from "./workflowRuns.ts"

const flow = (fields: object = {}) =>
  createWorkflow([trim("name", "{{trigger.body.name}}")], [from(null, "name")], fields)

const alarm = Effect.suspend(() =>
  createWorkflow([trim("code", "{{trigger.body.error.code}}")], [from(null, "code")], { source_id: null, triggers: {} })
)

const patch = (id: string, body: object) => call("PATCH", `/workflows/${id}`, { body })

/** Begins the on-failure runs of the workflow's failed runs: another message may be at work. */
const giveFailures = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const client = yield* WorkflowEntity.client
  const waiting = sql`select from workflow_arrivals where workflow_id = ${id}`
  yield* Effect.repeat(Effect.andThen(client(id).Arrive(), waiting), { until: ({ length }) => length === 0 })
})

const onFailure = (workflow_id: unknown) => ({ triggers: { on_failure: { workflow_id } } })

layer(world, { excludeTestServices: true })("On-failure workflow by the API", (it) => {
  it.effect("A failed run and its on-failure run name each other", () =>
    Effect.gen(function* () {
      const told = yield* alarm
      const workflow = yield* flow(onFailure(told.id))
      expect(workflow.triggers.on_failure).toEqual({ workflow_id: told.id })
      const { request, run } = yield* receive(workflow, {})
      yield* carryOut(workflow.id)
      yield* giveFailures(workflow.id)
      yield* carryOut(told.id)
      const failed = (yield* call("GET", `/workflows/${workflow.id}/runs/${run}`)).body
      const [begun, ...others] = (yield* call("GET", `/workflows/${told.id}/runs`)).body.models
      expect(others).toEqual([])
      expect(begun).toMatchObject({ trigger_type: "failure", outcome: "completed", on_failure: null })
      expect(failed).toMatchObject({
        outcome: "failed",
        on_failure: { attempt: 1, workflow_id: told.id, run_id: begun.id, error_code: null, error_message: null }
      })
      const detail = (yield* call("GET", `/workflows/${told.id}/runs/${begun.id}?include_previews=true`)).body
      expect(detail.trigger).toMatchObject({ type: "failure", source: { trigger_name: "Failed run" } })
      const { created_at, error_code, error_message, error_step_id, finished_at, started_at } = failed
      expect(detail.trigger.preview.preview.body).toEqual({
        workflow: { id: workflow.id, name: workflow.name, version: 1 },
        run: {
          id: run,
          label: null,
          trigger_type: "request",
          request_id: request,
          attempt_count: 1,
          created_at,
          started_at,
          finished_at
        },
        error: { code: error_code, message: error_message, step_id: error_step_id }
      })

      yield* patch(told.id, { status: "disabled" })
      const second = yield* receive({ ...workflow, version: 1 }, {})
      yield* carryOut(workflow.id)
      yield* giveFailures(workflow.id)
      const { models } = (yield* call("GET", `/workflows/${workflow.id}/runs`)).body
      expect(models.find(({ id }: { id: string }) => id === second.run).on_failure).toMatchObject({
        run_id: null,
        error_code: "WORKFLOW_NOT_EXECUTABLE"
      })
    })
  )

  it.effect("A workflow that could not begin is refused when it is named, and one that was named before stays", () =>
    Effect.gen(function* () {
      const told = yield* alarm
      const workflow = yield* flow()
      const faultOf = (id: unknown) =>
        Effect.map(patch(workflow.id, onFailure(id)), ({ body, status }) => [status, body.data?.fields])
      const refused = (message: string) => [400, [{ path: "triggers.on_failure.workflow_id", message }]]
      const sql = yield* SqlClient.SqlClient
      const setStatus = (status: string) => sql`update workflows set status = ${status} where id = ${told.id}`

      expect(yield* faultOf("wfl_none")).toEqual(refused("names no workflow of the team"))
      expect(yield* faultOf(workflow.id)).toEqual(refused("names the workflow itself"))
      expect(yield* faultOf(7)).toEqual(refused("must be an id or null"))
      const foreign = { name: unique("foreign"), source_id: null, triggers: {}, steps: [trim("only", "x")] }
      const { body } = yield* call("POST", "/workflows", { body: foreign, key: teams.b.key })
      expect(yield* faultOf(body.id)).toEqual(refused("names no workflow of the team"))
      for (const status of ["draft", "disabled"]) {
        yield* setStatus(status)
        expect(yield* faultOf(told.id)).toEqual(refused(`names a workflow that is ${status}: no run of it would begin`))
      }
      yield* setStatus("paused")
      expect((yield* patch(workflow.id, onFailure(told.id))).body).toMatchObject({ version: 2 })
      expect((yield* patch(workflow.id, { triggers: { on_failure: null } })).body.triggers.on_failure).toBeNull()
      yield* patch(workflow.id, onFailure(told.id))
      yield* call("DELETE", `/workflows/${told.id}`)
      expect(yield* patch(workflow.id, { name: unique("renamed"), ...onFailure(told.id) })).toMatchObject({
        status: 200,
        body: { version: 5, triggers: { on_failure: { workflow_id: told.id } } }
      })
    })
  )

  it.effect("A team names a workflow of its own for runs whose workflow has no setting, or does not refuse it", () =>
    Effect.gen(function* () {
      const told = yield* alarm
      const set = (on_failure_workflow_id: unknown, key: string = teams.a.key) =>
        call("PATCH", "/team", { body: { on_failure_workflow_id }, key })
      const refused = {
        status: 400,
        body: { data: { fields: [{ path: "on_failure_workflow_id", message: "names no workflow of the team" }] } }
      }
      expect(yield* set(told.id, teams.b.key)).toMatchObject(refused)
      expect(yield* set("wfl_none")).toMatchObject(refused)
      expect(yield* set(7)).toMatchObject({
        status: 400,
        body: { data: { fields: [{ path: "on_failure_workflow_id" }] } }
      })
      yield* patch(told.id, { status: "disabled" })
      expect((yield* set(told.id)).status).toBe(400)
      yield* patch(told.id, { status: "active" })
      expect((yield* set(told.id)).body).toMatchObject({ on_failure_workflow_id: told.id })
      expect((yield* call("PATCH", "/team", { body: { retention: {} } })).body).toMatchObject({
        on_failure_workflow_id: told.id
      })
      const workflow = yield* flow()
      yield* receive(workflow, {})
      yield* carryOut(workflow.id)
      yield* giveFailures(workflow.id)
      expect((yield* call("GET", `/workflows/${told.id}/runs`)).body.models).toHaveLength(1)
      const none = yield* flow(onFailure(null))
      expect(none.triggers.on_failure).toEqual({ workflow_id: null })
      expect((yield* call("GET", `/workflows/${none.id}`)).body.triggers.on_failure).toEqual({ workflow_id: null })
      const { run } = yield* receive(none, {})
      yield* carryOut(none.id)
      yield* giveFailures(none.id)
      expect((yield* call("GET", `/workflows/${none.id}/runs/${run}`)).body).toMatchObject({
        status: "failed",
        on_failure: null
      })
      expect((yield* call("GET", `/workflows/${told.id}/runs`)).body.models).toHaveLength(1)
      expect((yield* set(null)).body).toMatchObject({ on_failure_workflow_id: null })
    })
  )
})
