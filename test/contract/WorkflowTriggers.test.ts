import { expect } from "vitest"
import { it } from "../support/it.ts"
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

it("A run that waits for a request survives a killed process, and continues by the request that is about its order", async ({
  gateway
}) => {
  const payments = await gateway.source()
  const steps = [
    {
      id: "paid",
      kind: "wait",
      resource_id: payments.id,
      config: { for: "event", amount: 1, unit: "days" },
      invocation_inputs: { filter: { body: { order: "{{trigger.body.order}}" } } }
    },
    trim("{{steps.paid.output.body.state}}")
  ]
  const { post } = await make(gateway, steps, [edge(null, "paid"), edge("paid", "name")], {})
  const runs: Array<string> = []
  for (const order of [1, 2]) {
    const { request_id } = JSON.parse((await post(JSON.stringify({ order }))).body)
    const [run] = await gateway.sql("select id from workflow_runs where request_id = $1", [request_id])
    runs.push(run.id)
  }
  const waiting = (count: number) =>
    gateway.eventually(`${count} steps wait`, async () => {
      const [row] = await gateway.sql("select count(*)::int as n from workflow_waits where source_id = $1", [
        payments.id
      ])
      return row.n === count ? true : null
    })
  await waiting(2)
  await gateway.restart("SIGKILL")
  const pay = (body: object) =>
    request(gateway.port, {
      path: `/e/${payments.id}?from=bank`,
      headers: [["content-type", "application/json"]],
      body: JSON.stringify(body)
    })
  const sent = [await pay({ order: 3, state: "x" }), await pay({ order: 1, state: " paid " })]
  for (const { status } of sent) expect(status).toBe(200)
  const { outputs, row } = await ended(gateway, runs[0]!)
  expect(row).toMatchObject({ outcome: "completed" })
  expect(JSON.stringify(outputs)).toContain('"result":"paid"')
  expect(JSON.stringify(outputs)).toContain('"query":{"from":"bank"}')
  await waiting(1)
  const [other] = await gateway.sql("select status from workflow_runs where id = $1", [runs[1]])
  expect(other).toEqual({ status: "running" })
  const refused = await gateway.call("DELETE", `/sources/${payments.id}`)
  expect(refused).toMatchObject({ status: 409, body: { code: "RESOURCE_IN_USE" } })
})

it("A workflow calls another one, and continues with its result", async ({ gateway }) => {
  const called = await make(gateway, [trim("{{trigger.body.name}}")], [edge(null, "name")], {})
  const call = {
    id: "call",
    kind: "workflow",
    resource_id: called.workflow.id,
    invocation_inputs: { input: { name: "{{trigger.body.who}}" } }
  }
  const steps = [call, trim(" {{steps.call.output.result.result}}! ")]
  const { post } = await make(gateway, steps, [edge(null, "call"), edge("call", "name")], {})
  const { request_id } = JSON.parse((await post('{"who":" Ada "}')).body)
  const [run] = await gateway.sql("select id from workflow_runs where request_id = $1", [request_id])
  const { outputs, row } = await ended(gateway, run.id)
  expect(row).toMatchObject({ outcome: "completed" })
  expect(outputs).toMatchObject({ 1: { output: { result: "Ada!" } } })
})

it("A run that fails begins a run of the on-failure workflow, with what failed", async ({ gateway }) => {
  const told = await make(gateway, [trim("{{trigger.body.error.code}}")], [edge(null, "name")], {})
  const { post, workflow } = await make(gateway, [trim("{{trigger.body.name}}")], [edge(null, "name")], {
    on_failure: { workflow_id: told.workflow.id }
  })
  const { request_id } = JSON.parse((await post("{}")).body)
  const failed = await gateway.eventually(
    "the failed run names its on-failure run",
    async () => (await gateway.sql("select * from workflow_runs where request_id = $1", [request_id]))[0],
    ({ on_failure }) => on_failure !== null
  )
  expect(failed.on_failure).toMatchObject({ attempt: 1, workflow_id: told.workflow.id, error_code: null })
  const { outputs, row } = await ended(gateway, failed.on_failure.run_id)
  expect(row).toMatchObject({ outcome: "completed", trigger: "failure", workflow_id: told.workflow.id })
  expect(outputs).toMatchObject({ 0: { output: { result: "FORMATTER_INPUT_REQUIRED" } } })
  const { body } = await gateway.call("GET", `/workflows/${workflow.id}/runs/${failed.id}`)
  expect(body.on_failure).toEqual(failed.on_failure)
})

it("Requests of a key begin one run with all of them, and a killed process loses none", async ({ gateway }) => {
  const step = { ...trim("{{item.body.name}}"), config: { for_each: "{{trigger.batch}}" } }
  const { post, workflow } = await make(gateway, [step], [edge(null, "name")], {
    batch: { key: "body.shop", window_ms: 3_600_000, max_count: 3 }
  })
  const send = async (name: string): Promise<string> => {
    const { request_id } = JSON.parse((await post(JSON.stringify({ shop: 1, name }))).body)
    const [run] = await gateway.sql("select id from workflow_runs where request_id = $1", [request_id])
    return run.id
  }
  const first = await send(" Ada ")
  const second = await send("Bob ")
  const batched = { row: { status: "succeeded", outcome: "batched", error_message: `${first} carries it out` } }
  expect(await ended(gateway, second)).toMatchObject(batched)
  await gateway.restart("SIGKILL")
  const third = await send(" Cy")
  expect(await ended(gateway, third)).toMatchObject(batched)
  const { outputs, row } = await ended(gateway, first)
  expect(row).toMatchObject({ outcome: "completed", workflow_id: workflow.id })
  for (const name of ["Ada", "Bob", "Cy"]) expect(JSON.stringify(outputs)).toContain(`"result":"${name}"`)
})
