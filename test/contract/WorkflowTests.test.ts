import { expect } from "vitest"
import type { Body, Gateway } from "../support/Gateway.ts"
import { request } from "../support/RawHttp.ts"
import { it } from "../support/it.ts"

/** Tests of workflows against a gateway as it runs: with the sandbox, with requests that were received, and with what is really sent. */

const edge = (source: string | null, target: string, more: object = {}) => ({
  source_type: source === null ? "trigger" : "step",
  source_step_id: source,
  target_step_id: target,
  ...more
})

const tried = (gateway: Gateway, path: string, body: object): Promise<Body> =>
  gateway.call("POST", path, body).then((answer) => {
    expect(answer.status, JSON.stringify(answer.body)).toBe(200)
    return answer.body
  })

it("A workflow is tested with the last or a given request, and people see it without secrets", async ({ gateway }) => {
  const source = await gateway.source()
  const post = async (body: object) => {
    const answer = await request(gateway.port, {
      path: `/e/${source.id}/in?page=2`,
      headers: [["content-type", "application/json"]],
      body: JSON.stringify(body)
    })
    expect(answer.status).toBe(200)
    return String(JSON.parse(answer.body).request_id)
  }
  const steps = [
    {
      id: "shout",
      kind: "action",
      action: { provider_key: "formatter", action_key: "text.uppercase" },
      invocation_inputs: { input: "{{trigger.body.name}} {{trigger.query.page}} {{trigger.path}}" }
    }
  ]
  const made = await gateway.api("POST", "/workflows", {
    name: gateway.name("workflow"),
    source_id: source.id,
    status: "draft",
    steps,
    edges: [edge(null, "shout")]
  })
  expect(made.source).toMatchObject({ sample: null, schema_provenance: "none" })
  const first = await post({ name: "Ada", password: "planted-secret" })
  // Without a route it is rejected; a source with an active workflow has one.
  await gateway.api("PATCH", `/workflows/${made.id}`, { status: "active" })
  const second = await post({ name: "Grace", password: "planted-secret" })
  const shown = await gateway.api("GET", `/workflows/${made.id}`)
  expect(shown.source).toMatchObject({
    schema_provenance: "sample",
    sample: { method: "POST", path: "/in", query: { page: "2" }, body: { name: "Grace", password: "[REDACTED]" } }
  })
  expect((await gateway.call("GET", `/workflows?id=${made.id}`)).body.models[0].source.sample).toBeNull()

  const tested = await tried(gateway, `/workflows/${made.id}/test`, {})
  expect(tested).toMatchObject({
    request_id: second,
    trigger: {
      request_id: second,
      delivery_mode: "webhook",
      method: "POST",
      path: "/in",
      content_type: "application/json"
    }
  })
  expect(tested.steps[0].output_preview.preview).toEqual({ result: "GRACE 2 /IN" })
  expect(JSON.stringify(tested)).not.toContain("planted-secret")
  const named = await tried(gateway, `/workflows/${made.id}/test`, { request_id: first })
  expect(named.steps[0].output_preview.preview).toEqual({ result: "ADA 2 /IN" })
  const unsaved = await tried(gateway, "/workflows/test", {
    steps,
    edges: [edge(null, "shout")],
    source_id: source.id
  })
  expect(unsaved).toMatchObject({ workflow_id: null, request_id: second, status: "succeeded" })
  const [{ runs }] = await gateway.sql("select count(*)::int as runs from workflow_runs where workflow_id = $1", [
    made.id
  ])
  expect(runs).toBe(1)
})

it("A workflow test runs transformations in the sandbox, and their failure fails the step", async ({ gateway }) => {
  const handler = (body: string) => `addHandler("transform", (request) => { ${body}; return request })`
  const make = (code: string) =>
    gateway.api("POST", "/transformations", { name: gateway.name("transformation"), code, env: {} })
  const reshape = await make(handler("request.body = { doubled: request.body.n * 2 }"))
  const broken = await make(handler("throw new Error('no such thing')"))
  const test = (resource_id: string) =>
    tried(gateway, "/workflows/test", {
      steps: [{ id: "code", kind: "transformation", resource_id }],
      edges: [edge(null, "code")],
      trigger: { body: { n: 21 } }
    })
  const worked = await test(reshape.id)
  expect(worked.steps[0]).toMatchObject({ status: "succeeded", simulated: false })
  expect(worked.steps[0].output_preview.preview.body).toEqual({ doubled: 42 })
  const failed = await test(broken.id)
  expect(failed).toMatchObject({ status: "failed", error_code: "RUNTIME_ERROR", error_step_id: "code" })
})

it("A live test sends once with the headers of a run and stores nothing", async ({ gateway, target }) => {
  let asked = 0
  target.reply = (response) =>
    void response.writeHead(asked++ === 0 ? 503 : 201, { "content-type": "application/json" }).end('{"made":7}')
  const destination = await gateway.destination({ url: target.origin })
  const body = {
    mode: "live",
    steps: [
      {
        id: "to_crm",
        kind: "destination",
        resource_id: destination.id,
        invocation_inputs: { body: { n: "{{trigger.body.n}}" } },
        config: { retry: { interval: 1000, count: 1 } }
      },
      { id: "mocked", kind: "destination", resource_id: destination.id }
    ],
    edges: [edge(null, "to_crm"), edge("to_crm", "mocked")],
    trigger: { body: { n: 7 } },
    mocks: { mocked: { output: { status: 299 } } }
  }
  const tested = await tried(gateway, "/workflows/test", body)
  expect(tested).toMatchObject({ mode: "live", status: "succeeded", outcome: "completed" })
  expect(tested.steps).toMatchObject([
    { step_id: "to_crm", simulated: false, response_status: 201, attempt_count: 2 },
    { step_id: "mocked", simulated: true }
  ])
  const received = await target.next(2)
  expect(received.map(({ body }) => JSON.parse(body.toString()))).toEqual([{ n: 7 }, { n: 7 }])
  expect(received[0]!.headers).toMatchObject({ "x-gateway-run-id": tested.id, "x-gateway-step-id": "to_crm" })
  expect(received[1]!.headers["idempotency-key"]).toBe(received[0]!.headers["idempotency-key"])
  expect(received[1]!.at - received[0]!.at).toBeGreaterThanOrEqual(950)
  expect(await gateway.sql("select 1 from workflow_runs where id = $1", [tested.id])).toEqual([])
})
