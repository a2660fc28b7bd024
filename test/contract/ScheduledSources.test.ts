import { expect } from "vitest"
import type { Gateway } from "../support/Gateway.ts"
import { request } from "../support/RawHttp.ts"
import { it } from "../support/it.ts"

/** Sources of type CRON in a running gateway: from the schedule to the target and to the workflow. */

/** A night in half a year: no time of the schedule comes by itself, whenever the test runs. */
const night = new Date(Date.now() + 180 * 86_400_000)
const cron = `0 3 ${night.getUTCDate()} ${night.getUTCMonth() + 1} *`

const nightly = (gateway: Gateway, schedule: object = {}) =>
  gateway.api("POST", "/sources", {
    name: gateway.name("nightly"),
    type: "CRON",
    config: { schedule: { cron, timezone: "Europe/Berlin", ...schedule } }
  })

/** Lets the source be due now. */
const comeDue = (gateway: Gateway, source: string) =>
  gateway.sql("update source_schedules set due_at = date_trunc('minute', now()) where source_id = $1", [source])

it("A schedule that has come due is delivered to the target of its connection, and begins a run of its workflow", async ({
  gateway,
  startTarget
}) => {
  const target = await startTarget()
  const source = await nightly(gateway, {
    body: { report: "nightly", for: "{{scheduled_at}}", by: "{{source.name}}" },
    headers: { "X-Kind": "report" }
  })
  expect(source).toMatchObject({
    type: "CRON",
    config: {
      schedule: { cron, timezone: "Europe/Berlin", missed: "once", headers: { "x-kind": "report" } }
    }
  })
  expect(Date.parse(source.next_due_at!) % 60_000).toBe(0)
  await gateway.connection(source, await gateway.destination({ url: target.origin }))
  const workflow = await gateway.api("POST", "/workflows", {
    name: gateway.name("night"),
    source_id: source.id,
    steps: [
      {
        id: "shout",
        kind: "action",
        action: { provider_key: "formatter", action_key: "text.uppercase", version: "1.0.0" },
        invocation_inputs: { input: "{{trigger.body.report}}" }
      }
    ],
    edges: [{ source_type: "trigger", target_step_id: "shout" }]
  })
  await comeDue(gateway, source.id)
  const [delivered] = await target.next()
  const body = JSON.parse(delivered!.body.toString())
  expect(body).toEqual({ report: "nightly", for: expect.any(String), by: source.name })
  expect(delivered!.headers).toMatchObject({ "x-kind": "report", "content-type": "application/json" })
  const run = await gateway.eventually("the run has succeeded", async () => {
    const { models } = await gateway.api("GET", `/workflows/${workflow.id}/runs`)
    return models[0]?.status === "succeeded" ? models[0] : null
  })
  const [stored, ...others] = await gateway.requests(source.id)
  expect(others).toEqual([])
  expect(stored).toMatchObject({ status: "accepted", verified: true })
  expect(run.request_id).toBe(stored!.id)
  expect((await gateway.api("GET", `/requests/${stored!.id}`)).data?.headers).toMatchObject({
    "x-gateway-scheduled-at": body.for
  })
  const after = await gateway.api("GET", `/sources/${source.id}`)
  expect(Date.parse(after.next_due_at!)).toBeGreaterThan(Date.parse(body.for))
})

it("Nobody can send to a source with a schedule, and it is disabled and written back like any other", async ({
  gateway
}) => {
  const source = await nightly(gateway)
  expect((await request(gateway.port, { path: `/e/${source.id}`, body: "{}" })).status).toBe(404)
  const disabled = await gateway.api("PUT", `/sources/${source.id}/disable`)
  expect(disabled).toMatchObject({ status: "disabled", next_due_at: null })
  await gateway.api("PUT", `/sources/${source.id}/enable`)
  const read = await gateway.api("GET", `/sources/${source.id}`)
  expect(read.next_due_at).toBe(source.next_due_at)
  const { config, description, name, status, type } = read
  const { body: written } = await gateway.call("PUT", "/sources", { config, description, name, status, type })
  expect(written).toMatchObject({ id: source.id, config, next_due_at: source.next_due_at })
  const refused = await gateway.call("PATCH", `/sources/${source.id}`, { config: { schedule: { crom: "0 4 * * *" } } })
  expect(refused).toMatchObject({ status: 400, body: { data: { fields: [{ path: "config.schedule.crom" }] } } })
})
