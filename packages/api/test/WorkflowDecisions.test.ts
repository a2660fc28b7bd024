import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { call, teams } from "./ControlServer.ts"
import { carryOut, createWorkflow, from, layer as world, receive, trim } from "./workflowRuns.ts"

const approval = { id: "approved", kind: "wait", config: { for: "approval", amount: 2, unit: "days" } }

const waiting = Effect.gen(function* () {
  const workflow = yield* createWorkflow(
    [approval, trim("order", "{{steps.approved.output.comment}}"), trim("refund", "{{trigger.body.id}}")],
    [from(null, "approved"), from("approved", "order"), from("approved", "refund", "rejected")]
  )
  const { run } = yield* receive(workflow, { id: "o1" })
  yield* carryOut(workflow.id)
  const path = `/workflows/${workflow.id}/runs/${run}`
  const decide = (body: object, options: object = {}) =>
    call("POST", `${path}/steps/approved/decision`, { body, ...options })
  return { workflow, run, path, decide }
})

layer(world, { excludeTestServices: true })("Decisions of steps over HTTP", (it) => {
  it.effect("Workflow step that waits for an approval continues by the decision, which the run shows", () =>
    Effect.gen(function* () {
      const { decide, path, run, workflow } = yield* waiting
      expect((yield* call("GET", path)).body).toMatchObject({
        status: "running",
        steps: [{ step_id: "approved", status: "running", wait: { kind: "signal", until: expect.any(String) } }, {}, {}]
      })
      expect(yield* decide({ decision: "reject", comment: "too dear" })).toEqual({
        status: 200,
        headers: expect.anything(),
        body: {
          run_id: run,
          workflow_id: workflow.id,
          step_id: "approved",
          decision: "rejected",
          comment: "too dear",
          decided_by_user_id: null,
          decided_at: expect.any(String)
        }
      })
      yield* carryOut(workflow.id)
      const { body } = yield* call("GET", `${path}?include_previews=true`)
      expect(body).toMatchObject({ status: "succeeded", outcome: "completed" })
      const [step, next] = body.steps
      expect(step).toMatchObject({ status: "succeeded", output_ports: ["rejected"], wait: null })
      expect(JSON.stringify(step.output_preview)).toContain("too dear")
      expect([next.step_id, next.status]).toEqual(["refund", "succeeded"])
    })
  )

  it.effect("Decision is refused when the step does not wait, and when its body is wrong", () =>
    Effect.gen(function* () {
      const { decide, path } = yield* waiting
      expect(yield* decide({ decision: "maybe" })).toMatchObject({
        status: 400,
        body: { data: { fields: [{ path: "decision" }] } }
      })
      expect((yield* decide({ decision: "approve", comment: "x".repeat(2_001) })).status).toBe(400)
      expect((yield* decide({ decision: "approve" }, { key: teams.b.key })).status).toBe(404)
      expect(yield* call("POST", `${path}/steps/none/decision`, { body: { decision: "approve" } })).toMatchObject({
        status: 404,
        body: { data: { resource_type: "workflow_step" } }
      })
      expect(yield* call("POST", `${path}/steps/order/decision`, { body: { decision: "approve" } })).toMatchObject({
        status: 409,
        body: { code: "STEP_NOT_WAITING", data: { step_status: "pending" } }
      })
      expect((yield* decide({ decision: "approve" })).status).toBe(200)
      expect(yield* decide({ decision: "approve" })).toMatchObject({ status: 409, body: { code: "STEP_NOT_WAITING" } })
    })
  )
})
