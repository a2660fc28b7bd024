import { describe, expect } from "vitest"
import type { Body, Gateway } from "../support/Gateway.ts"
import { request } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"

const it = gatewayIt.extend("owner", { scope: "file" }, ({ gateway }) => gateway.session("owner"))

const written = async (
  gateway: Gateway,
  owner: string,
  method: string,
  path: string,
  body?: unknown
): Promise<Body> => {
  const answer = await gateway.call(method, path, body, owner)
  expect(answer.status, `${method} ${path}: ${JSON.stringify(answer.body)}`).toBe(200)
  return answer.body
}

/** Sends this body, and answers what became of it: the request's ignored events, none when it was routed. */
const sent = async (gateway: Gateway, source: string, body: object): Promise<Body> => {
  const answer = await request(gateway.port, {
    path: `/e/${source}`,
    headers: [["content-type", "application/json"]],
    body: JSON.stringify(body)
  })
  const { request_id } = JSON.parse(answer.body)
  const settled = await gateway.eventually("the request is worked off", async () => {
    const trace = await gateway.call("GET", `/requests/${request_id}/trace`)
    const { events, ignored_events } = trace.body
    return events.length + ignored_events.length > 0 ? trace.body : null
  })
  return settled.ignored_events
}

describe.each([
  ["at ingress", []],
  ["after a deduplicate rule", [{ type: "deduplicate", window: 1_000, include_fields: ["body.n"] }]]
] as const)("Rule with a linked filter %s", (_, before) => {
  it("A rule uses its linked filter, and an ignored event shows the filter's version", async ({ gateway, owner }) => {
    const name = gateway.name("filter")
    const filter = await written(gateway, owner, "POST", "/filters", { name, conditions: { body: { rule: 1 } } })
    const source = await gateway.source()
    const destination = await gateway.destination({}, "MOCK_API")
    const connection = await gateway.connection(source, destination, [
      ...before,
      { type: "filter", filter_id: filter.id }
    ])
    const hashNow = async (): Promise<string> => {
      const { body } = await gateway.call("GET", `/connections/${connection.id}`)
      return body.rules.at(-1).filter_snapshot.hash
    }
    const first = await hashNow()
    expect(await sent(gateway, source.id, { n: 1, rule: 1 })).toEqual([])
    expect(await sent(gateway, source.id, { n: 2, rule: 2 })).toMatchObject([
      { cause: "FILTERED", meta: ["body", { filter_id: filter.id, hash: first }] }
    ])
    await written(gateway, owner, "PATCH", `/filters/${filter.id}`, { conditions: { body: { rule: 2 } } })
    expect(await sent(gateway, source.id, { n: 3, rule: 2 })).toEqual([])
    expect(await sent(gateway, source.id, { n: 4, rule: 1 })).toMatchObject([
      { cause: "FILTERED", meta: ["body", { filter_id: filter.id, hash: await hashNow() }] }
    ])
    expect(await hashNow()).not.toBe(first)
    await written(gateway, owner, "DELETE", `/filters/${filter.id}`)
    expect(await sent(gateway, source.id, { n: 5, rule: 2 })).toEqual([])
    expect(await sent(gateway, source.id, { n: 6, rule: 1 })).toMatchObject([{ cause: "FILTERED", meta: ["body"] }])
  })
})
