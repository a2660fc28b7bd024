import { describe, expect } from "vitest"
import { request } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"
import { edge } from "./workflowRuns.ts"

/** Why nothing came of a request, and what did, in its trace. */

const json = { headers: [["content-type", "application/json"]], body: "{}" } as const

const it = gatewayIt.extend("sent", ({ gateway }) => async (sourceId: string): Promise<string> => {
  const answer = await request(gateway.port, { ...json, path: `/e/${sourceId}` })
  expect(answer.status).toBe(200)
  return JSON.parse(answer.body).request_id as string
})

describe("Trace of a request without an event", () => {
  it("A trace without an event states that the source has no connection", async ({ gateway, sent }) => {
    const { id } = await gateway.source()
    const trace = await gateway.api("GET", `/requests/${await sent(id)}/trace`)
    expect(trace.no_event_reason).toEqual({
      code: "NO_CONNECTION",
      message: "the source had no connection when it came"
    })
    expect(trace).toMatchObject({ skipped_connections: [], workflow_runs: [] })
  })

  it.for<["connections" | "destinations", string]>([
    ["connections", "CONNECTION_DISABLED"],
    ["destinations", "DESTINATION_DISABLED"]
  ])("A trace states that one of the %s is disabled", async ([kind, cause], { gateway, sent, target }) => {
    const { connection, destination, source } = await gateway.route(target)
    const disabled = kind === "connections" ? connection : destination
    await gateway.call("PUT", `/${kind}/${disabled.id}/disable`)
    const id = await sent(source.id)
    const trace = await gateway.api("GET", `/requests/${id}/trace`)
    expect(trace.no_event_reason).toEqual({
      code: "DISABLED",
      message: "no connection of the source, with its destination, was on when it came"
    })
    expect(trace.skipped_connections).toEqual([
      {
        connection_id: connection.id,
        connection_name: connection.name,
        destination_id: destination.id,
        cause,
        since: expect.any(String)
      }
    ])
    expect(trace.counts.skipped_connections).toBe(1)
    expect(trace.timeline).toContainEqual(
      expect.objectContaining({ kind: "skipped_connection", status: cause, connection_id: connection.id })
    )
    // What was made afterwards is not what it was kept from.
    await gateway.connection(source, await gateway.destination({ url: target.origin }))
    expect((await gateway.api("GET", `/requests/${id}/trace`)).skipped_connections).toHaveLength(1)
  })

  it("A trace without an event states that each connection ignored the request", async ({ gateway, sent, target }) => {
    const { source } = await gateway.route(target, { rules: [{ type: "filter", body: { type: "order" } }] })
    const trace = await gateway.traced(await sent(source.id))
    expect(trace.no_event_reason).toEqual({
      code: "IGNORED",
      message: "each connection that it was routed to ignored it (FILTERED)"
    })
  })

  it("A trace without an event states that the request was rejected", async ({ gateway }) => {
    const auth = { auth_type: "API_KEY", auth: { api_key: "key-of-the-sender" } } as const
    const { id } = await gateway.source(auth)
    expect((await request(gateway.port, { ...json, path: `/e/${id}` })).status).toBe(401)
    const [rejected] = await gateway.requests(id)
    const trace = await gateway.api("GET", `/requests/${rejected!.id}/trace`)
    expect(trace.no_event_reason).toMatchObject({
      code: "REJECTED",
      message: expect.stringContaining(trace.request.rejection_cause!)
    })
  })
})

it("A trace with an event has no reason, and it lists the workflow runs of the request", async ({
  gateway,
  sent,
  target
}) => {
  const { source } = await gateway.route(target)
  const steps = [{ id: "only", kind: "filter", config: { conditions: { body: { a: 1 } } } }]
  const workflow = await gateway.call("POST", "/workflows", {
    name: gateway.name("workflow"),
    source_id: source.id,
    steps,
    edges: [edge(null, "only")]
  })
  expect(workflow.status, JSON.stringify(workflow.body)).toBe(200)
  const id = await sent(source.id)
  const trace = await gateway.traced(id)
  expect(trace.no_event_reason).toBeNull()
  expect(trace.workflow_runs).toEqual([
    expect.objectContaining({
      workflow_id: workflow.body.id,
      workflow_name: workflow.body.name,
      request_id: id,
      run_type: "workflow",
      steps: [expect.objectContaining({ step_id: "only", kind: "filter" })]
    })
  ])
  expect(trace.counts.workflow_runs).toBe(1)
  expect(trace.timeline).toContainEqual(
    expect.objectContaining({
      kind: "workflow_run",
      workflow_id: workflow.body.id,
      workflow_run_id: trace.workflow_runs[0]!.id
    })
  )
})
