import { setTimeout as sleep } from "node:timers/promises"
import { describe, expect } from "vitest"
import type { Rule, Rules, Source } from "../support/Contract.ts"
import { request } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"

/** The same request twice: contract 5.3 and (c). */

interface Sent {
  readonly method?: string
  readonly suffix?: string
  readonly headers?: ReadonlyArray<readonly [string, string]>
  readonly body?: string
}

const json = ["Content-Type", "application/json"] as const
const minute = 60_000

const twice = ["event", "DEDUPLICATED"]
const both = ["event", "event"]

const it = gatewayIt
  /** Sends; the request's id. */
  .extend(
    "send",
    ({ gateway }) =>
      async (source: Source, { body = "{}", headers = [], suffix = "", ...parts }: Sent = {}): Promise<string> => {
        const answer = await request(gateway.port, {
          ...parts,
          headers: [json, ...headers],
          path: `/e/${source.id}${suffix}`,
          body
        })
        expect(answer.status).toBe(200)
        return String(JSON.parse(answer.body).request_id)
      }
  )
  /** What became of a request on its only connection: `event`, or why not. */
  .extend("fate", ({ gateway }) => async (requestId: string): Promise<string> => {
    const { events, ignored_events } = await gateway.traced(requestId)
    return events.length === 1 ? "event" : ignored_events[0]!.cause
  })
  /** Sends one after the other and tells what became of each. */
  .extend(
    "fates",
    ({ fate, send }) =>
      async (source: Source, requests: ReadonlyArray<Sent>): Promise<ReadonlyArray<string>> => {
        const found: Array<string> = []
        for (const one of requests) found.push(await fate(await send(source, one)))
        return found
      }
  )
  .extend(
    "deduplicating",
    ({ gateway, target }) =>
      async (rule: Partial<Extract<Rule, { readonly type: "deduplicate" }>> = {}, more: Rules = []) =>
        gateway.route(target, { rules: [{ type: "deduplicate", window: minute, ...rule }, ...more] })
  )

describe("Duplicate request", () => {
  it("A duplicate request is ignored, refers to the first request, and is not delivered", async ({
    deduplicating,
    gateway,
    send,
    target
  }) => {
    const { connection, source } = await deduplicating()
    const first = await send(source, { body: '{"id":1}' })
    await gateway.traced(first)
    const second = await send(source, { body: '{"id":1}' })
    const trace = await gateway.traced(second)
    expect(trace.request).toMatchObject({ status: "accepted", events_count: 0, ignored_count: 1 })
    expect(trace.ignored_events).toMatchObject([
      {
        cause: "DEDUPLICATED",
        connection_id: connection.id,
        meta: [{ key: expect.any(String), first_request_id: first }]
      }
    ])
    await target.next()
    const next = await send(source, { body: '{"id":2}' })
    await gateway.traced(next)
    const deliveries = await target.next(2)
    expect(deliveries.map(({ body }) => body.toString())).toEqual(['{"id":1}', '{"id":2}'])
  })

  const table: ReadonlyArray<
    readonly [name: string, rule: object, requests: readonly [Sent, Sent], expected: ReadonlyArray<string>]
  > = [
    ["whole requests with different headers", {}, [{ headers: [["X-Id", "1"]] }, { headers: [["X-Id", "2"]] }], twice],
    [
      "whole requests with different spelling of the JSON",
      {},
      [{ body: '{"a":1,"b":2}' }, { body: '{ "b":2, "a":1.0 }' }],
      twice
    ],
    ["whole requests with different bodies", {}, [{ body: '{"a":1}' }, { body: '{"a":2}' }], both],
    ["whole requests with different types of a value", {}, [{ body: '{"a":1}' }, { body: '{"a":"1"}' }], both],
    ["whole requests with different paths", {}, [{ suffix: "/a" }, { suffix: "/b" }], both],
    ["whole requests with different queries", {}, [{ suffix: "?a=1" }, { suffix: "?a=2" }], both],
    ["whole requests with different methods", {}, [{ method: "POST" }, { method: "PUT" }], both],
    [
      "the included field is equal",
      { include_fields: ["body.id"] },
      [
        { body: '{"id":1,"at":1}', suffix: "/a" },
        { body: '{"id":1,"at":2}', suffix: "/b" }
      ],
      twice
    ],
    ["the included field differs", { include_fields: ["body.id"] }, [{ body: '{"id":1}' }, { body: '{"id":2}' }], both],
    [
      "the included header is equal",
      { include_fields: ["headers.X-Event-Id"] },
      [
        { headers: [["x-event-id", "7"]], body: '{"a":1}' },
        { headers: [["X-EVENT-ID", "7"]], body: '{"a":2}' }
      ],
      twice
    ],
    [
      "the included query parameter is equal",
      { include_fields: ["query.id"] },
      [{ suffix: "?id=1&x=1" }, { suffix: "?x=2&id=1" }],
      twice
    ],
    [
      "the included fields of all items are equal",
      { include_fields: ["body.items[*].id"] },
      [{ body: '{"items":[{"id":1,"n":1},{"id":2}]}' }, { body: '{"items":[{"id":1,"n":2},{"id":2}]}' }],
      twice
    ],
    [
      "the included field of one item differs",
      { include_fields: ["body.items[*].id"] },
      [{ body: '{"items":[{"id":1},{"id":2}]}' }, { body: '{"items":[{"id":1},{"id":3}]}' }],
      both
    ],
    [
      "one of two included fields is missing",
      { include_fields: ["body.id", "body.kind"] },
      [{ body: '{"id":1}' }, { body: '{"id":1,"kind":null}' }],
      twice
    ],
    ["all included fields are missing", { include_fields: ["body.id"] }, [{ body: "{}" }, { body: "{}" }], both],
    [
      "what differs is excluded",
      { exclude_fields: ["body.at", "query.nonce"] },
      [
        { body: '{"id":1,"at":1}', suffix: "?nonce=1" },
        { body: '{"id":1,"at":2}', suffix: "?nonce=2" }
      ],
      twice
    ],
    [
      "what differs is not all excluded",
      { exclude_fields: ["body.at"] },
      [{ body: '{"id":1,"at":1}' }, { body: '{"id":2,"at":2}' }],
      both
    ],
    [
      "both match the predicate",
      { include_fields: ["body.id"], body: { type: "order" } },
      [{ body: '{"id":1,"type":"order"}' }, { body: '{"id":1,"type":"order","x":1}' }],
      twice
    ],
    [
      "neither matches the predicate",
      { include_fields: ["body.id"], headers: { "x-env": "prod" } },
      [{ body: '{"id":1}' }, { body: '{"id":1}' }],
      both
    ],
    ["equal texts", {}, [{ body: "plain" }, { body: "plain" }], twice]
  ]
  for (const [name, rule, requests, expected] of table) {
    it(`A deduplicate rule finds ${expected === twice ? "a duplicate" : "two events"}: ${name}`, async ({
      deduplicating,
      fates
    }) => {
      const { source } = await deduplicating(rule)
      expect(await fates(source, requests)).toEqual(expected)
    })
  }

  it("Each connection finds duplicates on its own", async ({ gateway, send, target }) => {
    const source = await gateway.source()
    const destination = await gateway.destination({ url: target.origin })
    const [whole, byId, none] = [
      await gateway.connection(source, destination, [{ type: "deduplicate", window: minute }]),
      await gateway.connection(source, destination, [
        { type: "deduplicate", window: minute, include_fields: ["body.id"] }
      ]),
      await gateway.connection(source, destination)
    ]
    await gateway.traced(await send(source, { body: '{"id":1,"n":1}' }), 3)
    const { events, ignored_events } = await gateway.traced(await send(source, { body: '{"id":1,"n":2}' }), 3)
    expect(new Set(events.map((event) => event.connection_id))).toEqual(new Set([whole.id, none.id]))
    expect(ignored_events.map((ignored) => ignored.connection_id)).toEqual([byId.id])
  })
})

describe("Duplicates sent at once", () => {
  it("Exactly one of fifty duplicates sent at once is delivered", async ({
    deduplicating,
    fate,
    gateway,
    send,
    target
  }) => {
    const { connection, source } = await deduplicating({ include_fields: ["body.id"] })
    const ids = await Promise.all(
      Array.from({ length: 50 }, (_, n) => send(source, { body: `{"id":"twin","n":${n}}` }))
    )
    const found = await Promise.all(ids.map(fate))
    expect(found.filter((one) => one === "event").length).toBe(1)
    expect(found.filter((one) => one === "DEDUPLICATED").length).toBe(49)
    const events = await gateway.sql("select request_id from events where connection_id = $1", [connection.id])
    expect(events.length).toBe(1)
    // All of the others name the one.
    const meta = await gateway.sql(
      "select distinct meta -> 0 ->> 'first_request_id' as id from ignored_events where connection_id = $1",
      [connection.id]
    )
    expect(meta).toEqual([{ id: events[0].request_id }])
    await target.next()
    // One that is another comes behind them all.
    await send(source, { body: '{"id":"last"}' })
    const deliveries = await target.next(2)
    expect(JSON.parse(deliveries[1]!.body.toString())).toEqual({ id: "last" })
  })

  it("Exactly one of each of ten groups of duplicates sent at once is delivered", async ({
    deduplicating,
    fate,
    send,
    target
  }) => {
    const { source } = await deduplicating({ include_fields: ["body.family"] })
    const ids = await Promise.all(
      Array.from({ length: 100 }, (_, n) => send(source, { body: JSON.stringify({ family: n % 10, n }) }))
    )
    const found = await Promise.all(ids.map(fate))
    expect(found.filter((one) => one === "event").length).toBe(10)
    const deliveries = await target.next(10)
    expect(new Set(deliveries.map(({ body }) => JSON.parse(body.toString()).family)).size).toBe(10)
  })
})

describe("Deduplication window", () => {
  it("A deduplication window ends a fixed time after the first request, and duplicates do not extend it", async ({
    deduplicating,
    fate,
    fates,
    send
  }) => {
    const window = 6_000
    for (const isLast of [false, false, true]) {
      const { source } = await deduplicating({ window })
      const startedAt = performance.now()
      const after = async (ms: number) => {
        const rest = startedAt + ms - performance.now()
        if (rest > 0) await sleep(rest)
      }
      const first = await send(source)
      await after(2_000)
      const duplicate = await send(source)
      // On a machine that was away for the rest of the window, this was no duplicate: then it is sent again, to another source.
      if (performance.now() - startedAt > window && !isLast) continue
      expect([await fate(first), await fate(duplicate)]).toEqual(twice)
      await after(window + 200)
      expect(await fates(source, [{}, {}])).toEqual(twice)
      break
    }
  })

  it("A request that a filter holds back opens no deduplication window", async ({ deduplicating, fates }) => {
    const { source } = await deduplicating({ include_fields: ["body.id"] }, [{ type: "filter", body: { ready: true } }])
    expect(
      await fates(source, [
        { body: '{"id":1,"ready":false}' },
        { body: '{"id":1,"ready":true}' },
        { body: '{"id":1,"ready":true}' },
        { body: '{"id":1,"ready":false}' }
      ])
    ).toEqual(["FILTERED", "event", "DEDUPLICATED", "DEDUPLICATED"])
  })

  it("A deduplication window survives a killed process", async ({ deduplicating, fate, gateway, send }) => {
    const { source } = await deduplicating({ include_fields: ["body.id"] })
    const first = await send(source, { body: '{"id":"kept"}' })
    expect(await fate(first)).toBe("event")
    await gateway.restart("SIGKILL")
    const trace = await gateway.traced(await send(source, { body: '{"id":"kept","again":true}' }))
    expect(trace.ignored_events).toMatchObject([{ cause: "DEDUPLICATED", meta: [{ first_request_id: first }] }])
    expect(await fate(await send(source, { body: '{"id":"another"}' }))).toBe("event")
  })

  it("Duplicates that are being accepted when the process is killed result in one event", async ({
    deduplicating,
    gateway,
    send
  }) => {
    const { connection, source } = await deduplicating({ include_fields: ["body.id"] })
    const sent = Array.from({ length: 60 }, (_, n) =>
      send(source, { body: `{"id":"torn","n":${n}}` }).catch(() => null)
    )
    await Promise.any(sent)
    await gateway.restart("SIGKILL")
    await Promise.all(sent)
    await gateway.eventually("all that was taken is decided", async () => {
      const [{ count }] = await gateway.sql(
        "select count(*)::int as count from pending_routes where connection_id = $1",
        [connection.id]
      )
      return count === 0 ? true : null
    })
    const [counts] = await gateway.sql(
      `select (select count(*)::int from events where connection_id = $1) as events,
         (select count(*)::int from ignored_events where connection_id = $1) as ignored,
         (select count(*)::int from requests where source_id = $2) as requests`,
      [connection.id, source.id]
    )
    expect(counts.events).toBe(1)
    expect(counts.ignored).toBe(counts.requests - 1)
  })

  it("A changed deduplicate rule starts anew, and without the rule every request passes", async ({
    deduplicating,
    fates,
    gateway
  }) => {
    const { connection, source } = await deduplicating({ include_fields: ["body.id"] })
    const body = '{"id":1,"kind":2}'
    expect(await fates(source, [{ body }, { body }])).toEqual(twice)
    await gateway.api("PATCH", `/connections/${connection.id}`, {
      rules: [{ type: "deduplicate", window: minute, include_fields: ["body.kind"] }]
    })
    expect(await fates(source, [{ body }, { body }])).toEqual(twice)
    await gateway.api("PATCH", `/connections/${connection.id}`, { rules: [] })
    expect(await fates(source, [{ body }, { body }])).toEqual(both)
  })
})

describe("Deduplication with a transformation and a filter", () => {
  it("Duplicates are found by the received request, and the filter uses the transformed one", async ({
    fates,
    gateway,
    target
  }) => {
    const code =
      'addHandler("transform", (request) => ({ ...request, body: { id: request.body.id, size: request.body.n * 10 } }))'
    const transformation = await gateway.api("POST", "/transformations", { name: gateway.name("t"), code })
    // Written in another order than they run in.
    const { source } = await gateway.route(target, {
      rules: [
        { type: "filter", body: { size: { $gte: 10 } } },
        { type: "transform", transformation_id: transformation.id },
        { type: "deduplicate", window: minute, include_fields: ["body.id", "body.n"] }
      ]
    })
    expect(
      await fates(source, [
        { body: '{"id":1,"n":0}' },
        { body: '{"id":1,"n":0}' },
        { body: '{"id":1,"n":1}' },
        { body: '{"id":1,"n":1}' },
        { body: '{"id":1,"n":2}' }
      ])
    ).toEqual(["FILTERED", "FILTERED", "event", "DEDUPLICATED", "event"])
    // A duplicate is found first: no code runs for it.
    const executions = await gateway.api("GET", `/transformations/${transformation.id}/executions`)
    expect(executions.count).toBe(4)
    const deliveries = await target.next(2)
    expect(deliveries.map(({ body }) => body.toString()).toSorted()).toEqual([
      '{"id":1,"size":10}',
      '{"id":1,"size":20}'
    ])
  })

  it("A request whose transformation fails does not make the next one a duplicate", async ({
    fates,
    gateway,
    target
  }) => {
    const code =
      'addHandler("transform", (request) => { if (request.headers["x-fail"]) throw new Error(); return request })'
    const { source } = await gateway.route(target, {
      rules: [
        { type: "deduplicate", window: minute },
        { type: "transform", transformation: { name: gateway.name("t"), code } }
      ]
    })
    expect(await fates(source, [{ headers: [["X-Fail", "1"]] }, {}, {}])).toEqual([
      "TRANSFORMATION_FAILED",
      "event",
      "DEDUPLICATED"
    ])
  })

  it("An event that is retried by hand is not a duplicate", async ({ deduplicating, gateway, send, target }) => {
    const { source } = await deduplicating()
    const { events } = await gateway.traced(await send(source, { body: '{"id":"again"}' }))
    await gateway.eventually("the event is successful", async () => {
      const event = await gateway.api("GET", `/events/${events[0]!.id}`)
      return event.status === "SUCCESSFUL" ? event : null
    })
    await gateway.api("POST", `/events/${events[0]!.id}/retry`)
    const deliveries = await target.next(2)
    expect(deliveries.map(({ body }) => body.toString())).toEqual(['{"id":"again"}', '{"id":"again"}'])
  })
})

describe("Invalid deduplicate rules", () => {
  const wrong: ReadonlyArray<readonly [name: string, rule: object]> = [
    ["no window", { window: undefined }],
    ["a window of 999 ms", { window: 999 }],
    ["a window of an hour and a millisecond", { window: 3_600_001 }],
    ["a window with half a millisecond", { window: 1_000.5 }],
    ["included and excluded fields", { include_fields: ["body.a"], exclude_fields: ["body.b"] }],
    ["an empty list of fields", { include_fields: [] }],
    ["a field that no request has", { include_fields: ["cookies.a"] }],
    ["an invalid field path", { exclude_fields: ["body..a"] }],
    ["a predicate with an unknown operator", { body: { $like: 1 } }]
  ]
  for (const [name, rule] of wrong) {
    it(`A deduplicate rule is refused: ${name}`, async ({ gateway, target }) => {
      const source = await gateway.source()
      const destination = await gateway.destination({ url: target.origin })
      const { body, status } = await gateway.call("POST", "/connections", {
        name: gateway.name("connection"),
        source_id: source.id,
        destination_id: destination.id,
        rules: [
          { type: "filter", path: "/" },
          { type: "deduplicate", window: minute, ...rule }
        ]
      })
      expect([status, body.code, body.data.rule_index]).toEqual([400, "RULE_INVALID", 1])
    })
  }
})
