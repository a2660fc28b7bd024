import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { StepLinks } from "@tidegate/entities/Workflow/StepLinks"
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
          decided_by: "api_key",
          decided_by_user_id: null,
          decided_by_name: null,
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

  it.effect("Link for a decision decides by its form alone, once, and shows who said so", () =>
    Effect.gen(function* () {
      const { path, run, workflow } = yield* waiting
      const links = yield* StepLinks
      const place = { team_id: teams.a.id, workflow_id: workflow.id, run_id: run }
      const { approve_url } = links.of({ urls: new Map([["approved", ["approve_url"]]]) }, place)!.waits["approved"]!
      const { pathname, search } = new URL(approve_url!)
      const page = pathname + search
      const open = yield* call("GET", page, { key: null })
      expect([open.status, open.headers.get("content-type")]).toEqual([200, expect.stringContaining("text/html")])
      expect(open.body).toContain('<form method="post">')
      expect(open.headers.get("content-security-policy")).toContain("default-src 'none'")
      expect((yield* call("GET", path)).body).toMatchObject({ status: "running" })
      const post = (form: Record<string, string>, to = page) =>
        call("POST", to, {
          key: null,
          body: new URLSearchParams(form).toString(),
          headers: { "content-type": "application/x-www-form-urlencoded" }
        })
      expect((yield* post({}, `${page}x`)).status).toBe(404)
      expect((yield* post({}, page.replace("/approve", "/other"))).status).toBe(404)
      expect((yield* post({ name: "x".repeat(101) })).status).toBe(413)
      expect((yield* post({ comment: "x".repeat(40_000) })).status).toBe(413)
      expect((yield* post({ name: " Ada ", comment: "fine" })).status).toBe(200)
      expect((yield* post({}, page.replace("/approve", "/reject"))).status).toBe(410)
      yield* carryOut(workflow.id)
      const { body } = yield* call("GET", `${path}?include_previews=true`)
      expect(body).toMatchObject({ status: "succeeded" })
      expect(body.steps[0].output_preview.preview).toMatchObject({
        decision: "approved",
        comment: "fine",
        decided_by: "link",
        decided_by_user_id: null,
        decided_by_name: "Ada"
      })
    })
  )

  it.effect("Values of a workflow are listed, read, stored and deleted by calls", () =>
    Effect.gen(function* () {
      const { workflow } = yield* waiting
      const path = `/workflows/${workflow.id}/values`
      expect((yield* call("GET", path)).body).toEqual({ keys: [] })
      const key = `${path}/orders%20of%20a`
      expect((yield* call("GET", key)).status).toBe(404)
      const times = { updated_at: expect.any(String), expires_at: null }
      const stored = { key: "orders of a", value: { n: [1] }, ...times }
      expect((yield* call("PUT", key, { body: { value: { n: [1] } } })).body).toEqual(stored)
      expect((yield* call("GET", key)).body).toEqual(stored)
      expect((yield* call("GET", path)).body).toEqual({ keys: [{ key: "orders of a", ...times }] })
      const brief = yield* call("PUT", key, { body: { value: 2, expires_in_seconds: 60 } })
      expect(brief.body).toMatchObject({ value: 2, expires_at: expect.any(String) })
      for (const body of [
        {},
        { value: "x".repeat(16_384) },
        { value: 1, expires_in_seconds: 0 },
        { value: 1, ttl: 1 }
      ]) {
        expect((yield* call("PUT", key, { body })).status).toBe(400)
      }
      for (const method of ["GET", "DELETE"]) expect((yield* call(method, key, { key: teams.b.key })).status).toBe(404)
      expect((yield* call("PUT", key, { body: { value: 1 }, key: teams.b.key })).status).toBe(404)
      expect((yield* call("DELETE", key)).body).toEqual({ key: "orders of a", deleted: true })
      expect((yield* call("DELETE", key)).status).toBe(404)
    })
  )
})
