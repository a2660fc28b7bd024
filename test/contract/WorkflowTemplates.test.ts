import { expect } from "vitest"
import { templates } from "@tidegate/workflows/templates/Templates"
import type { Template } from "@tidegate/workflows/templates/Template"
import type { Gateway } from "../support/Gateway.ts"
import { request } from "../support/RawHttp.ts"
import type { Target } from "../support/Target.ts"
import { it } from "../support/it.ts"

/** Each template, from its key to what comes of a webhook: everything that it is bound to leads to one target. */

const places = (gateway: Gateway, target: Target) => ({
  destination: async (key: string) => (await gateway.destination({ url: `${target.origin}/${key}` })).id,
  source: async () => (await gateway.source()).id,
  url: async (key: string) => `${target.origin}/${key}`
})

/** What the target receives of the sample: the bindings, in any order. A wait is where the run stands afterwards. */
const expected: Readonly<
  Record<string, { readonly received: ReadonlyArray<string>; readonly refuses?: string; readonly waits?: true }>
> = {
  "failed-payment-alert": { received: ["alerts"] },
  "normalised-order": { received: ["destination"] },
  "route-by-region": { received: ["europe"] },
  "fallback-destination": { received: ["primary", "fallback"], refuses: "primary" },
  "fan-out-and-join": { received: ["first", "second", "report"] },
  "delayed-follow-up": { received: [], waits: true },
  "each-line-item": { received: ["warehouse", "warehouse"] },
  "large-order-review": { received: ["orders", "review"] },
  "order-enrichment": { received: ["customers", "destination"] },
  "first-of-each-customer": { received: ["welcome"] },
  "dead-letter-source": { received: ["destination"], refuses: "destination" }
}

const bodies: Readonly<Record<string, unknown>> = {
  alerts: { text: "Payment pay_1 of €1,234.50 by Ada Lovelace has failed" },
  "normalised-order destination": {
    id: "o_1",
    total: "1234.50",
    created_at: "2026-03-01T10:00:00+0000",
    email: "ada@example.com"
  },
  report: { id: "o_1", first: 200, second: 200 },
  review: { text: "Order o_1 of 1200, lines 1200" },
  "order-enrichment destination": {
    order: { id: "o_1", customer_id: "cus_1", total: 120 },
    customer: { told: "customers" }
  },
  welcome: { customer: { id: "cus_1", email: "ada@example.com" }, first_order: "o_1" }
}

const nameOf = (url: string): string => url.slice(1).split(/[/?]/)[0]!

const through = async (gateway: Gateway, target: Target, template: Template) => {
  const { refuses } = expected[template.key]!
  target.reply = (response, { url }) => {
    const told = nameOf(url)
    response.writeHead(told === refuses ? 400 : 200, { "content-type": "application/json" })
    response.end(JSON.stringify({ told }))
  }
  const at = places(gateway, target)
  const bindings: Record<string, string> = {}
  for (const { key, type } of template.bindings) bindings[key] = await at[type](key)
  const source = await gateway.source()
  const workflow = await gateway.api("POST", `/workflow-templates/${template.key}/instantiate`, {
    name: gateway.name(template.key),
    source_id: source.id,
    bindings
  })
  await gateway.api("PATCH", `/workflows/${workflow.id}`, { status: "active" })
  const accepted = await request(gateway.port, {
    path: `/e/${source.id}`,
    headers: [["content-type", "application/json"]],
    body: JSON.stringify(template.sample)
  })
  expect(accepted.status).toBe(200)
  const { request_id } = JSON.parse(accepted.body)
  return { bindings, request_id: String(request_id) }
}

it("Every template has an expected result", () => {
  expect(Object.keys(expected)).toEqual(templates.map(({ key }) => key))
})

for (const template of templates) {
  const { received, refuses, waits } = expected[template.key] ?? { received: [] }
  it(`The template ${template.key} works as described with a webhook`, async ({ gateway, target }) => {
    const { bindings, request_id } = await through(gateway, target, template)
    const run = await gateway.eventually("the run has ended, or waits", async () => {
      const [row] = await gateway.sql(
        `select status, outcome, error_code, error_message, exists (
          select from workflow_queue q where q.run_id = r.id and q.due_at > now() + interval '1 hour'
        ) as waits from workflow_runs r where request_id = $1`,
        [request_id]
      )
      return row !== undefined && (row.status === "failed" || row.status === "succeeded" || row.waits) ? row : null
    })
    expect(run).toMatchObject(
      waits === true
        ? { status: "running", waits: true }
        : { status: "succeeded", outcome: refuses === undefined ? "completed" : "completed_with_errors" }
    )
    expect(target.received.map(({ url }) => nameOf(url)).toSorted()).toEqual(received.toSorted())
    for (const { body, url } of target.received) {
      const told = nameOf(url)
      const wanted = bodies[told] ?? bodies[`${template.key} ${told}`]
      if (wanted !== undefined) expect(JSON.parse(body.toString())).toEqual(wanted)
    }
    if (bindings["dead_letters"] !== undefined) {
      const [kept] = await gateway.requests(bindings["dead_letters"])
      const { data } = await gateway.api("GET", `/requests/${kept.id}`)
      expect(data).toMatchObject({
        path: "/refused",
        body: { request_id, error: "BAD_RESPONSE", original: template.sample }
      })
    }
  })
}
