import { expect } from "vitest"
import { ownIt as it } from "../support/it.ts"
import type { Gateway } from "../support/Gateway.ts"
import { request } from "../support/RawHttp.ts"
import { edge, ended } from "./workflowRuns.ts"

/** From what begins a run to what its sender gets, over the whole gateway. */

const trim = (input: string) => ({
  id: "name",
  kind: "action",
  action: { provider_key: "formatter", action_key: "text.trim" },
  invocation_inputs: { input }
})

const make = async (gateway: Gateway, steps: ReadonlyArray<object>, edges: ReadonlyArray<object>, triggers: object) => {
  const source = await gateway.source()
  const body = { name: gateway.name("flow"), source_id: source.id, steps, edges, triggers }
  const made = await gateway.call("POST", "/workflows", body)
  expect(made.status, JSON.stringify(made.body)).toBe(200)
  const post = (text: string) =>
    request(gateway.port, {
      path: `/e/${source.id}`,
      headers: [["content-type", "application/json"]],
      body: text
    })
  return { source, workflow: made.body, post }
}

it("A sender gets the output of a workflow's step as its answer", async ({ gateway, target }) => {
  const { post } = await make(gateway, [trim("{{trigger.body.name}}")], [edge(null, "name")], {
    answer: { step_id: "name" }
  })
  const answer = await post('{"name":" Ada "}')
  expect(answer).toMatchObject({ status: 200, body: '{"result":"Ada"}' })

  const destination = await gateway.destination({ url: target.origin })
  target.reply = (response) =>
    void response
      .writeHead(422, { "content-type": "text/html", "x-reason": "no stock", "set-cookie": "a=1" })
      .end("<b>no</b>")
  const steps = [{ id: "to_shop", kind: "destination", resource_id: destination.id, config: { on_error: "continue" } }]
  const failing = await make(gateway, steps, [edge(null, "to_shop")], { answer: { step_id: "to_shop" } })
  const receipt = await failing.post("{}")
  expect(receipt.status).toBe(200)
  expect(JSON.parse(receipt.body)).toMatchObject({ ok: true, queued: true })

  target.reply = (response) =>
    void response
      .writeHead(201, { "content-type": "text/html", "x-reason": "made", "set-cookie": "a=1" })
      .end("<b>yes</b>")
  const passed = await failing.post("{}")
  expect(passed).toMatchObject({ status: 201, body: "<b>yes</b>" })
  const { headers } = passed
  // A page must not run with the origin of the gateway.
  expect(headers).toMatchObject({
    "content-type": "text/plain; charset=utf-8",
    "x-reason": "made",
    "x-content-type-options": "nosniff"
  })
  expect(headers).not.toHaveProperty("set-cookie")
})

it("A sender who waited for nothing gets the receipt after the time limit, and the run goes on", async ({
  gateway
}) => {
  const wait = { id: "wait", kind: "delay", config: { mode: "for", amount: 2, unit: "seconds" } }
  const { post, workflow } = await make(gateway, [wait, trim("x")], [edge(null, "wait"), edge("wait", "name")], {
    answer: { step_id: "name", timeout_ms: 100 }
  })
  const answer = await post("{}")
  expect(JSON.parse(answer.body)).toMatchObject({ queued: true })
  const [run] = await gateway.sql("select id from workflow_runs where workflow_id = $1", [workflow.id])
  expect((await ended(gateway, run.id)).row).toMatchObject({ status: "succeeded" })
})

it("A schedule that has come due begins a run without a request", async ({ gateway }) => {
  const { workflow } = await make(gateway, [trim("{{trigger.body.cron}}")], [edge(null, "name")], {
    schedule: [{ cron: "0 3 * * *", timezone: "Europe/Berlin" }]
  })
  await gateway.sql("update workflow_schedules set due_at = now() where workflow_id = $1", [workflow.id])
  const run = await gateway.eventually("the schedule has begun a run", async () => {
    const [row] = await gateway.sql("select id, trigger from workflow_runs where workflow_id = $1", [workflow.id])
    return row ?? null
  })
  expect(run.trigger).toBe("schedule")
  const { outputs, row } = await ended(gateway, run.id)
  expect(row).toMatchObject({ status: "succeeded" })
  expect(outputs["0"].output).toEqual({ result: "0 3 * * *" })
})
