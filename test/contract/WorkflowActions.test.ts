import { expect } from "vitest"
import type { Gateway } from "../support/Gateway.ts"
import { it } from "../support/it.ts"
import { begin, edge, ended } from "./workflowRuns.ts"

/** What the steps of a run call: automation contract 2.15. */

const action = (id: string, provider_key: string, action_key: string, inputs: object, more: object = {}) => ({
  id,
  kind: "action",
  action: { provider_key, action_key, version: "1.0.0" },
  invocation_inputs: inputs,
  ...more
})

/** Steps behind each other. */
const inLine = (steps: ReadonlyArray<{ readonly id: string }>) =>
  steps.map(({ id }, i) => edge(i === 0 ? null : steps[i - 1]!.id, id))

const play = async (gateway: Gateway, steps: ReadonlyArray<{ readonly id: string }>, body: object = {}) => {
  const { post } = await begin(gateway, steps, inLine(steps))
  return ended(gateway, await post({ body: JSON.stringify(body) }))
}

it("Action http.request calls an endpoint and returns its answer", async ({ gateway, target }) => {
  target.reply = (response) => void response.writeHead(200, { "content-type": "application/json" }).end('{"ok":true}')
  const { outputs, row } = await play(
    gateway,
    [
      action("call_it", "http", "request", {
        method: "POST",
        url: `${target.origin}/entries?a=1`,
        headers: { "x-own": "{{trigger.body.name}}" },
        body: { name: "{{trigger.body.name}}" }
      })
    ],
    { name: "Ada" }
  )
  expect(row.error_message).toBe(null)
  expect(outputs["0"].output).toMatchObject({ status: 200, body: { ok: true } })
  const [received] = await target.next()
  expect(received).toMatchObject({ method: "POST", url: "/entries?a=1" })
  expect(JSON.parse(received!.body.toString())).toEqual({ name: "Ada" })
  expect(received!.headers).toMatchObject({
    "x-own": "Ada",
    "idempotency-key": expect.stringMatching(/^wse_/),
    "x-gateway-run-id": row.id,
    "x-gateway-step-id": "call_it",
    "gateway-loop": expect.stringMatching(/^tidegate;r=req_\w+;n=1;s=[\w-]{22}$/)
  })
})

it("A step that the target refuses fails and is retried by its rule with the same idempotency key", async ({
  gateway,
  target
}) => {
  let asked = 0
  target.reply = (response) => void response.writeHead(asked++ === 0 ? 500 : 200).end("fine")
  const { outputs } = await play(gateway, [
    action("call_it", "http", "request", { url: target.origin }, { config: { retry: { interval: 1_000, count: 1 } } })
  ])
  expect(outputs["0"].output).toMatchObject({ status: 200, body: "fine" })
  const [first, second] = await target.next(2)
  expect(second!.headers["idempotency-key"]).toBe(first!.headers["idempotency-key"])
})

it("Action json_feed.fetch returns the items of a feed", async ({ gateway, target }) => {
  target.reply = (response) =>
    void response.writeHead(200, { "content-type": "application/json" }).end('{"items":[{"id":1},{"id":2},{"id":3}]}')
  const { outputs } = await play(gateway, [action("feed", "json_feed", "fetch", { url: target.origin, limit: 2 })])
  expect(outputs["0"].output).toEqual({ items: [{ id: 1 }, { id: 2 }], count: 2, total: 3 })
})

it("Storage actions keep values that the workflows of a team share", async ({ gateway }) => {
  const key = gateway.name("key")
  const { outputs, row } = await play(gateway, [
    action("before", "storage", "get", { key }),
    action("set_it", "storage", "set", { key, value: { n: 1 } }),
    action("got_it", "storage", "get", { key }),
    action("gone", "storage", "delete", { key }),
    action("one_up", "storage", "increment", { key, by: 2 }),
    action("two_up", "storage", "increment", { key, by: 3 })
  ])
  expect(row.error_message).toBe(null)
  const of = (step: number) => outputs[String(step)].output
  expect(of(0)).toEqual({ found: false, value: null })
  expect(of(1)).toEqual({ key, value: { n: 1 } })
  expect(of(2)).toEqual({ found: true, value: { n: 1 } })
  expect(of(3)).toEqual({ deleted: true })
  expect([of(4), of(5)]).toEqual([
    { key, value: 2 },
    { key, value: 5 }
  ])
})

it("Action gateway.publish sends a request to another source, which is routed and starts workflows", async ({
  gateway,
  target
}) => {
  const other = await begin(
    gateway,
    [action("found", "gateway", "lookup_request", { request_id: "{{trigger.request_id}}" })],
    [edge(null, "found")]
  )
  await gateway.connection(other.source as never, await gateway.destination({ url: target.origin }))
  const { outputs } = await play(gateway, [
    action("tell", "gateway", "publish", { source_id: other.source.id, body: { told: 1 } })
  ])
  const { request_id } = outputs["0"].output
  const [run] = await gateway.sql("select id from workflow_runs where request_id = $1", [request_id])
  const second = await ended(gateway, run.id)
  expect(second.outputs["0"].output).toMatchObject({
    found: true,
    request: { id: request_id, body: { told: 1 }, headers: { "gateway-loop": expect.stringContaining(";n=1;") } }
  })
  const [received] = await target.next()
  expect(JSON.parse(received!.body.toString())).toEqual({ told: 1 })
})

it("A workflow that publishes to its own source is stopped by the loop guard", async ({ gateway }) => {
  const { post, workflow } = await begin(
    gateway,
    [action("again", "gateway", "publish", { source_id: "{{source.id}}", body: {} })],
    [edge(null, "again")]
  )
  await post()
  const last = await gateway.eventually("a run is refused", async () => {
    const [row] = await gateway.sql("select * from workflow_runs where workflow_id = $1 and status = 'failed'", [
      workflow.id
    ])
    return row
  })
  expect(last.error_code).toBe("LOOP_DETECTED")
  const runs = await gateway.sql("select id from workflow_runs where workflow_id = $1", [workflow.id])
  expect(runs.length).toBe(11)
})

it("A saved action sends its hidden credentials, and a disabled one is not called", async ({ gateway, target }) => {
  target.reply = (response, { headers }) =>
    void response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ said: headers["authorization"] }))
  const saved = await gateway.call("POST", "/actions", {
    name: gateway.name("ledger"),
    provider_key: "http",
    action_key: "request",
    auth_mode: "bearer",
    credentials: { token: "a-token-that-nobody-reads" },
    inputs: { method: "POST", url: `${target.origin}/entries` }
  })
  expect(saved.status, JSON.stringify(saved.body)).toBe(201)
  const { post } = await begin(
    gateway,
    [
      {
        id: "call",
        kind: "action",
        resource_id: saved.body.id,
        invocation_inputs: { method: "POST", url: `${target.origin}/entries`, body: { n: "{{trigger.body.n}}" } }
      }
    ],
    [edge(null, "call")]
  )
  const { outputs, row } = await ended(gateway, await post({ body: '{"n":7}' }))
  expect(row.error_message).toBe(null)
  const [received] = await target.next()
  expect(received!.headers["authorization"]).toBe("Bearer a-token-that-nobody-reads")
  expect(JSON.parse(received!.body.toString())).toEqual({ n: 7 })
  expect(JSON.stringify(outputs)).not.toContain("a-token-that-nobody-reads")
  await gateway.call("PUT", `/actions/${saved.body.id}/disable`)
  expect((await ended(gateway, await post())).row).toMatchObject({ error_code: "RESOURCE_DISABLED" })
  expect(target.received.length).toBe(1)
})

it("A saved action sends its credentials only to the origin with which it was saved", async ({ gateway, target }) => {
  const saved = await gateway.call("POST", "/actions", {
    name: gateway.name("ledger"),
    provider_key: "http",
    action_key: "request",
    auth_mode: "bearer",
    credentials: { token: "a-token-that-nobody-reads" },
    inputs: { method: "POST", url: `${target.origin}/entries` }
  })
  expect(saved.status, JSON.stringify(saved.body)).toBe(201)
  const { post } = await begin(
    gateway,
    [{ id: "call", kind: "action", resource_id: saved.body.id, invocation_inputs: { url: "{{trigger.body.url}}" } }],
    [edge(null, "call")]
  )
  const to = async (url: string) => (await ended(gateway, await post({ body: JSON.stringify({ url }) }))).row
  const { port } = new URL(target.origin)
  expect(await to(`http://localhost:${port}/entries`)).toMatchObject({ error_code: "INPUT_INVALID" })
  expect(target.received.length).toBe(0)
  expect(await to(`${target.origin}/others`)).toMatchObject({ error_code: null })
  expect(target.received.length).toBe(1)
})

it("Action gateway.publish obeys the source's rate limit and refuses disabled sources", async ({ gateway }) => {
  const { body: source } = await gateway.call("POST", "/sources", {
    name: gateway.name("limited"),
    config: { rate_limit: 1, rate_limit_period: "hour" }
  })
  const { post } = await begin(
    gateway,
    [action("tell", "gateway", "publish", { source_id: source.id, body: {} })],
    [edge(null, "tell")]
  )
  const outcome = async () => (await ended(gateway, await post())).row
  expect(await outcome()).toMatchObject({ error_code: null })
  expect(await outcome()).toMatchObject({ error_code: "RATE_LIMITED" })
  await gateway.call("PUT", `/sources/${source.id}/disable`)
  expect(await outcome()).toMatchObject({ error_code: expect.stringMatching(/^(?:RATE_LIMITED|RESOURCE_DISABLED)$/) })
  const requests = await gateway.sql("select id from requests where source_id = $1", [source.id])
  expect(requests.length).toBe(1)
  await gateway.call("PATCH", `/sources/${source.id}`, { config: { rate_limit: null } })
  expect(await outcome()).toMatchObject({ error_code: "RESOURCE_DISABLED" })
})

it("A step calls a provider with the account that it names, and fails once the account is revoked", async ({
  gateway,
  target
}) => {
  target.reply = (response) =>
    void response.writeHead(200, { "content-type": "application/json" }).end('{"id":7,"login":"acme-bot"}')
  const account = await gateway.api("POST", "/provider-accounts/credentials/connect", {
    provider_key: "git_host",
    name: gateway.name("account"),
    base_url: target.origin,
    credentials: { token: "t0ken-of-an-account" }
  })
  target.reset()
  target.reply = (response) => void response.writeHead(201, { "content-type": "application/json" }).end('{"id":1}')
  const issue = (provider_account_id: string | null) => ({
    id: "report",
    kind: "action",
    action: { provider_key: "git_host", action_key: "create_issue", version: "1.0.0", provider_account_id },
    invocation_inputs: { repository: "acme/shop", title: "Order {{trigger.body.order}} failed" }
  })
  const { post, source } = await begin(gateway, [issue(account.id)], inLine([issue(account.id)]))
  const { outputs, row } = await ended(gateway, await post({ body: '{"order":12}' }))
  expect(row.error_message).toBe(null)
  expect(outputs["0"].output).toEqual({ data: { id: 1 } })
  const [received] = await target.next()
  expect(received).toMatchObject({
    method: "POST",
    url: "/repos/acme/shop/issues",
    headers: { authorization: "Bearer t0ken-of-an-account" }
  })
  expect(JSON.parse(received!.body.toString())).toEqual({ title: "Order 12 failed" })

  const refused = async (step: { readonly action: object }, status: number, code: string, issue: object) => {
    const steps = [step]
    const answer = await gateway.call("POST", "/workflows", {
      name: gateway.name("refused"),
      source_id: source.id,
      steps
    })
    expect([answer.status, answer.body]).toMatchObject([status, { code, data: { issues: [issue] } }])
  }
  const field = "action.provider_account_id"
  const invalid = [400, "WORKFLOW_GRAPH_INVALID"] as const
  await refused(issue("pac_1"), ...invalid, { code: "RESOURCE_NOT_FOUND", step_id: "report", field })
  await refused(issue(null), ...invalid, { code: "STEP_CONFIG_INVALID", field })
  const other = issue(account.id)
  other.action = { ...other.action, provider_key: "graph", action_key: "send_mail" }
  other.invocation_inputs = { to: "a@example.com", subject: "a", text: "b" } as never
  await refused(other, ...invalid, { code: "RESOURCE_NOT_FOUND", field })

  await gateway.api("DELETE", `/provider-accounts/${account.id}`)
  const after = await ended(gateway, await post({ body: '{"order":13}' }))
  expect(after.row.error_code).toBe("PROVIDER_ACCOUNT_NOT_CONNECTED")
  await refused(issue(account.id), 409, "WORKFLOW_NOT_EXECUTABLE", { code: "RESOURCE_DISABLED", field })
})
