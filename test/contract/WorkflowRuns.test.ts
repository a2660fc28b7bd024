import { expect } from "vitest"
import { it as gatewayIt } from "../support/it.ts"
import { Planted } from "../support/Planted.ts"
import { TunnelClient } from "../support/TunnelClient.ts"
import { now } from "../support/Waiting.ts"
import { begin, edge, ended } from "./workflowRuns.ts"

/** From a request to what its workflow sends: automation contract 2.5 and 2.10. */

const it = gatewayIt.extend("to", ({ gateway, target }) => async (config: object = {}, more: object = {}) => {
  const destination = await gateway.destination({ url: target.origin, ...config })
  return { destination, step: { id: "to_crm", kind: "destination", resource_id: destination.id, ...more } }
})

it("A destination step sends its inputs with headers that name its run and step", async ({ gateway, target, to }) => {
  target.reply = (response) =>
    void response.writeHead(201, { "content-type": "application/json", "x-one": "1" }).end('{"made":7}')
  const { step } = await to(
    {},
    {
      invocation_inputs: {
        body: { name: "{{trigger.body.name}}", n: "{{trigger.body.n}}" },
        headers: { "X-Order": "{{trigger.body.n}}" },
        query: { a: "1 2" },
        path: "/orders",
        method: "put"
      }
    }
  )
  const { post, workflow } = await begin(gateway, [step], [edge(null, "to_crm")])
  const run = await post({ body: '{"name":"Ada","n":7}' })
  const [received] = await target.next()
  expect(received).toMatchObject({ method: "PUT", url: "/orders?a=1+2" })
  expect(JSON.parse(received!.body.toString())).toEqual({ name: "Ada", n: 7 })
  const { headers } = received!
  expect(headers).toMatchObject({
    "content-type": "application/json",
    "x-order": "7",
    "idempotency-key": expect.stringMatching(/^wse_/),
    "x-gateway-workflow-id": workflow.id,
    "x-gateway-run-id": run,
    "x-gateway-step-id": "to_crm",
    "gateway-loop": expect.stringMatching(/^tidegate;r=req_\w+;n=1;s=[\w-]{22}$/),
    "x-gateway-attempt-count": "1"
  })
  expect(headers).not.toHaveProperty("x-gateway-event-id")
  const { outputs, row } = await ended(gateway, run)
  expect(row).toMatchObject({ status: "succeeded", outcome: "completed" })
  expect(outputs["0"].output).toMatchObject({ status: 201, headers: { "x-one": "1" }, body: { made: 7 } })
  expect(outputs["0"].output.duration_ms).toBeTypeOf("number")
})

it("A destination step without inputs forwards the trigger's request byte for byte and signed", async ({
  gateway,
  target,
  to
}) => {
  const { step } = await to({ auth_type: "SERVICE_SIGNATURE" })
  const { post } = await begin(gateway, [step], [edge(null, "to_crm")])
  await post({
    method: "POST",
    path: "/a/b?x=1&x=2",
    body: '{ "spaced":   true }',
    headers: [
      ["content-type", "application/vnd.x+json"],
      ["idempotency-key", "the-senders"]
    ]
  })
  const [received] = await target.next()
  expect(received).toMatchObject({ url: "/a/b?x=1&x=2" })
  expect(received!.body.toString()).toBe('{ "spaced":   true }')
  const { headers } = received!
  expect(headers["content-type"]).toBe("application/vnd.x+json")
  expect(headers["idempotency-key"]).toBe(headers["webhook-id"])
  expect(headers["webhook-signature"]).toMatch(/^v1,/)
})

it("A retried step repeats its idempotency key and waits as long as the target asks", async ({
  gateway,
  target,
  to
}) => {
  let asked = 0
  target.reply = (response) => void (asked++ === 0 ? response.writeHead(503, { "retry-after": "1" }) : response).end()
  const { step } = await to({}, { config: { retry: { interval: 60_000, count: 1 } } })
  const { post } = await begin(gateway, [step], [edge(null, "to_crm")])
  const run = await post()
  const [first, second] = await target.next(2)
  expect(second!.headers["idempotency-key"]).toBe(first!.headers["idempotency-key"])
  expect(second!.headers["x-gateway-attempt-count"]).toBe("2")
  expect(second!.at - first!.at).toBeGreaterThanOrEqual(990)
  expect((await ended(gateway, run)).row.status).toBe("succeeded")
})

it("A failed step has the error code of a delivery, and a disabled destination is named as such", async ({
  gateway,
  target,
  to
}) => {
  target.reply = (response) => void response.writeHead(500).end()
  const { destination, step } = await to()
  const { post } = await begin(gateway, [step], [edge(null, "to_crm")])
  const failed = await ended(gateway, await post())
  expect(failed.row).toMatchObject({ status: "failed", error_code: "BAD_RESPONSE", error_step_id: "to_crm" })
  await gateway.call("PUT", `/destinations/${destination.id}/disable`)
  const disabled = await ended(gateway, await post())
  expect(disabled.row).toMatchObject({ status: "failed", error_code: "RESOURCE_DISABLED" })
  expect(target.received.length).toBe(1)
})

it("The answer of a target that refuses a destination's or an action's call is in the run", async ({
  gateway,
  target,
  to
}) => {
  target.reply = (response) =>
    void response
      .writeHead(422, { "content-type": "application/json", "set-cookie": "a=b", "x-request-id": "r-1" })
      .end('{"error":"no such customer","token":"0123456789abcdef"}')
  const { step } = await to({}, { config: { on_error: "branch" } })
  const action = { provider_key: "http", action_key: "request" }
  const call = {
    id: "call",
    kind: "action",
    action,
    config: { on_error: "continue" },
    invocation_inputs: { method: "POST", url: target.origin, body: "{{steps.to_crm.error.response.body.error}}" }
  }
  const { post, workflow } = await begin(
    gateway,
    [step, call],
    [edge(null, "to_crm"), edge("to_crm", "call", { source_port: "error" })]
  )
  const run = await post()
  await ended(gateway, run)
  const [, second] = await target.next(2)
  expect(second!.body.toString()).toContain("no such customer")
  const { body } = await gateway.call("GET", `/workflows/${workflow.id}/runs/${run}?include_previews=true`)
  for (const { attempts, error } of body.steps) {
    expect(error).toMatchObject({
      code: "BAD_RESPONSE",
      status: 422,
      response: {
        status: 422,
        headers: { "content-type": "application/json", "x-request-id": "r-1" },
        body: { error: "no such customer", token: "[REDACTED]" },
        truncated: false
      }
    })
    expect(error.response.headers).not.toHaveProperty("set-cookie")
    expect(attempts[0].response).toEqual(error.response)
  }
})

it("A held run whose destination is gone fails with that error and can still be read", async ({ gateway, to }) => {
  const { destination, step } = await to()
  const { post, workflow } = await begin(gateway, [step], [edge(null, "to_crm")])
  const path = `/workflows/${workflow.id}`
  await gateway.call("PATCH", path, { status: "paused" })
  const run = await post()
  await gateway.call("PATCH", path, { steps: [], edges: [] })
  expect((await gateway.call("DELETE", `/destinations/${destination.id}`)).status).toBe(200)
  await gateway.call("PATCH", path, { status: "active" })
  await ended(gateway, run)
  const shown = await gateway.call("GET", `${path}/runs/${run}`)
  expect(shown.status).toBe(200)
  expect(shown.body).toMatchObject({ status: "failed", error_code: "RESOURCE_DELETED", error_step_id: "to_crm" })
  expect(shown.body.version.resources).toEqual([
    {
      step_id: "to_crm",
      type: "destination",
      id: destination.id,
      name: null,
      content_hash: null,
      updated_at: null,
      exists: false
    }
  ])
})

it("A step with for_each sends once for each item, in order and with separate keys", async ({
  gateway,
  target,
  to
}) => {
  const { step } = await to(
    {},
    {
      invocation_inputs: { body: { item: "{{item}}", at: "{{item_index}}" } },
      config: { for_each: "{{trigger.body.items}}" }
    }
  )
  const { post } = await begin(gateway, [step], [edge(null, "to_crm")])
  const run = await post({ body: '{"items":["a","b","c"]}' })
  const received = await target.next(3)
  expect(received.map(({ body }) => JSON.parse(body.toString()))).toEqual([
    { item: "a", at: 0 },
    { item: "b", at: 1 },
    { item: "c", at: 2 }
  ])
  expect(new Set(received.map(({ headers }) => headers["idempotency-key"])).size).toBe(3)
  const { outputs } = await ended(gateway, run)
  expect(outputs["0"].output).toMatchObject({ count: 3, items: [{ status: 200 }, { status: 200 }, { status: 200 }] })
})

it("A mock destination echoes a step, and a tunnel without a client fails with CLI_UNAVAILABLE", async ({
  gateway
}) => {
  const mock = await gateway.destination({}, "MOCK_API")
  const tunnel = await gateway.destination({}, "CLI")
  const { post } = await begin(
    gateway,
    [
      { id: "mock", kind: "destination", resource_id: mock.id, invocation_inputs: { body: "said" } },
      { id: "tunnel", kind: "destination", resource_id: tunnel.id }
    ],
    [edge(null, "mock"), edge("mock", "tunnel")]
  )
  const { outputs, row } = await ended(gateway, await post())
  expect(outputs["0"].output).toMatchObject({
    status: 200,
    body: { body: "said", headers: { "x-gateway-step-id": "mock" } }
  })
  expect(row).toMatchObject({ status: "failed", error_code: "CLI_UNAVAILABLE", error_step_id: "tunnel" })
})

it("A tunnel client has the timeout of the step", async ({ gateway }) => {
  const tunnel = await gateway.destination({}, "CLI")
  const client = new TunnelClient(gateway.origin, tunnel.id, { key: gateway.key })
  await client.greeted()
  const step = { id: "tunnel", kind: "destination", resource_id: tunnel.id, config: { timeout_ms: 90_000 } }
  const { post } = await begin(gateway, [step], [edge(null, "tunnel")])
  const run = await post()
  expect(await client.delivered(1)).toMatchObject([{ timeout_ms: 90_000 }])
  expect((await ended(gateway, run)).row).toMatchObject({ status: "succeeded" })
  client.leave()
})

it("A step with an answer above 1 MiB fails and reads no further", async ({ gateway, target, to }) => {
  target.reply = (response) => void response.writeHead(200).end(Buffer.alloc(2 * 1024 * 1024, "a"))
  const { step } = await to()
  const { post } = await begin(gateway, [step], [edge(null, "to_crm")])
  expect((await ended(gateway, await post())).row).toMatchObject({ error_code: "OUTPUT_TOO_LARGE" })
})

it("A run uses its transformation's code from its start and the current variables", async ({ gateway, target, to }) => {
  const code = (said: string) =>
    `addHandler("transform", (request) => ({ ...request, body: { said: "${said}", by: process.env.BY } }))`
  const transformation = (
    await gateway.call("POST", "/transformations", {
      name: gateway.name("code"),
      code: code("first"),
      env: { BY: "before" }
    })
  ).body
  const { step } = await to()
  let answer = (): void => {}
  const asked = new Promise<void>((resolve) => {
    target.reply = (response) => {
      answer = () => void response.end()
      resolve()
    }
  })
  const { post } = await begin(
    gateway,
    [step, { id: "shapes", kind: "transformation", resource_id: transformation.id }],
    [edge(null, "to_crm"), edge("to_crm", "shapes")]
  )
  const run = await post()
  await asked
  // More than once, and there and back.
  for (const said of ["second", "first", "third"]) {
    const change = { code: code(said), env: { BY: "after" } }
    expect((await gateway.call("PATCH", `/transformations/${transformation.id}`, change)).status).toBe(200)
  }
  answer()
  expect((await ended(gateway, run)).outputs["1"].output).toMatchObject({ body: { said: "first", by: "after" } })
  target.reply = (response) => void response.end()
  expect((await ended(gateway, await post())).outputs["1"].output).toMatchObject({ body: { said: "third" } })
})

it("A secret in an error of a transformation is masked wherever the error is shown", async ({ gateway, to }) => {
  const planted = new Planted()
  const password = planted.plant("password")
  // What is secret in the second step alone may be seen in the request.
  const open = "of-one-step-alone"
  const throwing = `addHandler("transform", ({ body }) => { throw new Error("refused: " + body.note + " and " + body.again) })`
  const transformation = (
    await gateway.call("POST", "/transformations", { name: gateway.name("code"), code: throwing })
  ).body
  const code = (id: string, body: object, config: object = {}) => ({
    id,
    kind: "transformation",
    resource_id: transformation.id,
    invocation_inputs: { body },
    config
  })
  const { step } = await to()
  const { post, workflow } = await begin(
    gateway,
    [
      // The one stands under a secret name in the request, the other in what this step is given alone.
      code("before", { note: "{{trigger.body.password}}", again: "" }, { on_error: "branch" }),
      code("after", {
        note: "{{steps.before.error.message}}",
        again: "{{trigger.body.open}}",
        token: "{{trigger.body.open}}"
      }),
      step
    ],
    [edge(null, "before"), edge("before", "after", { source_port: "error" }), edge("after", "to_crm")]
  )
  const run = await post({ body: JSON.stringify({ password, open }) })
  const { row } = await ended(gateway, run)
  const error_message = "refused: refused: [REDACTED] and  and [REDACTED]"
  expect(row).toMatchObject({ error_step_id: "after", error_message })
  const answers = [
    await gateway.call("GET", `/workflows/${workflow.id}/runs/${run}`),
    await gateway.call("GET", `/workflows/${workflow.id}/runs`),
    await gateway.call("GET", "/workflow-activity")
  ]
  for (const { body, status } of answers) {
    expect(status).toBe(200)
    expect(JSON.stringify(body)).toContain("refused: ")
    expect(planted.in(JSON.stringify(body))).toEqual([])
  }
  const stored = await gateway.sql(
    "select r.error_message, s.steps, s.previews from workflow_runs r join workflow_steps s on s.run_id = r.id where r.id = $1",
    [run]
  )
  expect(JSON.stringify(stored)).toContain("refused: ")
  expect(planted.in(JSON.stringify(stored))).toEqual([])
  const tested = await gateway.call("POST", `/workflows/${workflow.id}/test`, {
    mode: "dry_run",
    trigger: { body: { password, open } }
  })
  expect(tested.status, JSON.stringify(tested.body)).toBe(200)
  expect(JSON.stringify(tested.body)).toContain("refused: ")
  expect(planted.in(JSON.stringify(tested.body))).toEqual([])
  expect(planted.in(await gateway.logged())).toEqual([])
})

it("Steps and events of a destination share its rate limit", async ({ gateway, target, to }) => {
  const { destination, step } = await to({ rate_limit: 2, rate_limit_period: "second" })
  const { post, source } = await begin(gateway, [step], [edge(null, "to_crm")])
  await gateway.connection(source as never, destination)
  const began = now()
  for (let n = 0; n < 3; n++) await post()
  const received = await target.next(6)
  const of = (name: string) => received.filter(({ headers }) => headers[name] !== undefined).length
  expect([of("x-gateway-event-id"), of("x-gateway-step-id")]).toEqual([3, 3])
  // No window of a second has more than two starts: some may come late, and none before its turn.
  const times = received.map(({ at }) => at - began).toSorted((a, b) => a - b)
  for (const [i, time] of times.entries()) expect(time).toBeGreaterThanOrEqual(Math.floor(i / 2) * 1_000 - 50)
})
