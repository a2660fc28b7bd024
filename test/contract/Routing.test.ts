import { describe, expect } from "vitest"
import type { Source, Trace } from "../support/Contract.ts"
import { request } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"

/** What a request becomes: events and ignored events, by the source's connections and their rules. */

interface Sent {
  readonly method?: string
  readonly path?: string
  readonly headers?: ReadonlyArray<readonly [string, string]>
  readonly body?: string
}

const it = gatewayIt
  /** Sends, and gives what became of it by the trace. */
  .extend(
    "send",
    ({ gateway }) =>
      async (source: Source, { body = "{}", path = "", ...parts }: Sent = {}): Promise<Trace> => {
        const answer = await request(gateway.port, { ...parts, path: `/e/${source.id}${path}`, body })
        expect(answer.status).toBe(200)
        return gateway.api("GET", `/requests/${JSON.parse(answer.body).request_id}/trace`)
      }
  )

describe("Filter rules", () => {
  const json = [["Content-Type", "application/json"]] as const
  const table: ReadonlyArray<
    readonly [name: string, rule: object, passes: Sent, misses: Sent, failing: ReadonlyArray<string>]
  > = [
    ["the body", { body: { a: { b: { $gt: 1 } } } }, { body: '{"a":{"b":2}}' }, { body: '{"a":{"b":1}}' }, ["body"]],
    ["a body that is text", { body: { $contains: "lo wo" } }, { body: "hello world" }, { body: "hello" }, ["body"]],
    [
      "headers",
      { headers: { "X-Env": "prod" } },
      { headers: [["x-ENV", "prod"]] },
      { headers: [["x-env", "test"]] },
      ["headers"]
    ],
    [
      "a repeated header",
      { headers: { "x-env": "prod" } },
      {
        headers: [
          ["x-env", "test"],
          ["x-env", "prod"]
        ]
      },
      {},
      ["headers"]
    ],
    ["the query", { query: { kind: { $in: ["a", "b"] } } }, { path: "?kind=b" }, { path: "?kind=c&Kind=a" }, ["query"]],
    ["a repeated query parameter", { query: { kind: "a" } }, { path: "?kind=b&kind=a" }, { path: "/" }, ["query"]],
    ["the path", { path: { $startsWith: "/orders" } }, { path: "/orders/1" }, { path: "/invoices" }, ["path"]],
    ["the path as it is encoded", { path: "/a%20b" }, { path: "/a%20b" }, { path: "/a+b" }, ["path"]],
    [
      "several parts and lists all that fail",
      { body: { a: 1 }, headers: { "x-a": "1" }, query: { q: "1" }, path: "/p" },
      { path: "/p?q=1", headers: [["x-a", "1"]], body: '{"a":1}' },
      { path: "/p?q=2", headers: [["x-a", "2"]], body: '{"a":1}' },
      ["headers", "query"]
    ]
  ]
  for (const [name, rule, passes, misses, failing] of table) {
    it(`A filter rule decides by ${name}`, async ({ gateway, send, target }) => {
      const { connection, source } = await gateway.route(target, { rules: [{ type: "filter", ...rule }] })
      const withType = (sent: Sent): Sent =>
        sent.body?.startsWith("{") === true ? { ...sent, headers: [...(sent.headers ?? []), ...json] } : sent
      const passed = await send(source, withType(passes))
      expect(passed.counts).toMatchObject({ events: 1, ignored_events: 0 })
      const missed = await send(source, withType(misses))
      expect(missed.counts).toMatchObject({ events: 0, ignored_events: 1 })
      expect(missed.ignored_events[0]).toMatchObject({
        cause: "FILTERED",
        connection_id: connection.id,
        webhook_id: connection.id,
        request_id: missed.request.id,
        meta: failing
      })
      expect(missed.request).toMatchObject({ status: "accepted", events_count: 0, ignored_count: 1 })
    })
  }
})

describe("Several connections", () => {
  it("Each connection of a source decides for itself", async ({ gateway, send, target }) => {
    const source = await gateway.source()
    const destination = await gateway.destination({ url: target.origin })
    const passing = await gateway.connection(source, destination)
    const filtering = await gateway.connection(source, destination, [{ type: "filter", path: "/other" }])
    const delaying = await gateway.connection(source, destination, [{ type: "delay", delay: 3_600_000 }])
    const paused = await gateway.connection(source, destination)
    const disabled = await gateway.connection(source, destination)
    await gateway.api("PUT", `/connections/${paused.id}/pause`)
    await gateway.api("PUT", `/connections/${disabled.id}/disable`)

    const { events, ignored_events, request: stored } = await send(source)
    expect([stored.events_count, stored.ignored_count]).toEqual([3, 1])
    expect(ignored_events.map((ignored) => ignored.connection_id)).toEqual([filtering.id])
    const byConnection = new Map(events.map((event) => [event.connection_id, event]))
    expect(new Set(byConnection.keys())).toEqual(new Set([passing.id, delaying.id, paused.id]))

    const delayed = byConnection.get(delaying.id)!
    expect(delayed.status).toBe("SCHEDULED")
    expect(Date.parse(delayed.next_attempt_at!) - Date.parse(delayed.created_at)).toBe(3_600_000)
    expect(byConnection.get(paused.id)).toMatchObject({ status: "HOLD", attempts: 0 })
    const [delivery] = await target.next()
    expect(delivery!.headers["x-gateway-connection-name"]).toBe(passing.name)

    await gateway.api("PUT", `/connections/${paused.id}/unpause`)
    const [, unpaused] = await target.next(2)
    expect(unpaused!.headers["x-gateway-connection-name"]).toBe(paused.name)
    expect(unpaused!.headers["x-gateway-attempt-trigger"]).toBe("UNPAUSE")
    expect(target.received.length).toBe(2)
  })

  it("A disabled or deleted destination gets nothing", async ({ gateway, send, target }) => {
    const source = await gateway.source()
    for (const [method, end] of [
      ["PUT", "/disable"],
      ["DELETE", ""]
    ] as const) {
      const destination = await gateway.destination({ url: target.origin })
      await gateway.connection(source, destination)
      expect((await send(source)).counts.events).toBe(1)
      await gateway.api(method, `/destinations/${destination.id}${end}`)
      expect((await send(source)).counts.events).toBe(0)
    }
  })

  it("A changed connection applies from the first request after the answer", async ({ gateway, send, target }) => {
    const { connection, source } = await gateway.route(target)
    for (let i = 0; i < 10; i++) {
      await gateway.api("PUT", `/connections/${connection.id}/disable`)
      expect((await send(source)).counts.events).toBe(0)
      await gateway.api("PUT", `/connections/${connection.id}/enable`)
      expect((await send(source)).counts.events).toBe(1)
    }
  })

  it("A delivery waits for a short delay rule", async ({ gateway, send, target }) => {
    const { source } = await gateway.route(target, { rules: [{ type: "delay", delay: 700 }] })
    const startedAt = Date.now()
    const { events } = await send(source)
    const [delivery] = await target.next()
    // Not when it was made, and not when this test has looked.
    expect(delivery!.at - Date.parse(events[0]!.created_at)).toBeGreaterThanOrEqual(690)
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(690)
    expect(delivery!.headers["x-gateway-attempt-trigger"]).toBe("INITIAL")
  })
})
