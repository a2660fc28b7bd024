import { describe, expect } from "vitest"
import { it, handler, identity, type Sent, json } from "./transforming.ts"

/** Code between a source and a destination: through the API, by real requests, as the target sees it. */

describe("Transformed delivery", () => {
  it("A transformation can change body, headers, path, query and method", async ({ send, target, through }) => {
    const { source } = await through(
      handler(`
        request.body = { id: request.body.order.id, all: [null, true, 1.5, "ü"] }
        request.headers["X-Added"] = 7
        request.headers["x-list"] = ["a", "b"]
        delete request.headers["x-removed"]
        request.path = "/orders/" + request.body.id
        request.query = { kept: request.parsed_query.q, more: ["1", "2"] }
        request.method = "PUT"
        return request`)
    )
    await send(source, {
      suffix: "/in?q=a%20b",
      headers: [json, ["X-Removed", "1"], ["X-Kept", "caf\xe9"]],
      body: '{"order":{"id":42}}'
    })
    const [delivery] = await target.next()
    expect([delivery!.method, delivery!.url]).toEqual(["PUT", "/orders/42?kept=a+b&more=1&more=2"])
    expect(delivery!.body.toString()).toBe('{"id":42,"all":[null,true,1.5,"ü"]}')
    expect(delivery!.headers).toMatchObject({
      "content-type": "application/json",
      "content-length": String(delivery!.body.length),
      "x-added": "7",
      "x-list": ["a", "b"],
      "x-kept": "caf\xe9"
    })
    expect(delivery!.headers).not.toHaveProperty("x-removed")
  })

  it("A transformation cannot set the headers that only the gateway sets", async ({
    gateway,
    send,
    target,
    through
  }) => {
    const { source } = await through(
      handler(`
        request.headers["x-gateway-event-id"] = "evt_forged"
        request.headers["x-gateway-verified"] = "true"
        request.headers["host"] = "elsewhere.test"
        request.headers["content-length"] = "1"
        request.headers["transfer-encoding"] = "chunked"
        return request`)
    )
    const { events } = await gateway.traced(await send(source, { body: '{"a":1}' }))
    const [delivery] = await target.next()
    expect(delivery!.body.toString()).toBe('{"a":1}')
    expect(delivery!.headers).toMatchObject({
      "x-gateway-event-id": events[0]!.id,
      "x-gateway-verified": "false",
      "content-length": "7",
      host: new URL(target.origin).host
    })
    expect(delivery!.headers).not.toHaveProperty("transfer-encoding")
  })

  const untouched: Readonly<Record<string, Sent>> = {
    "JSON with odd spacing and numbers": { body: '{ "a" : 1.0e0,\t"a":2, "ü":"\\u00fc", "n":12345678901234567890 }\n' },
    "bytes that are not UTF-8": {
      headers: [["Content-Type", "application/octet-stream"]],
      body: Buffer.from([0, 255, 0xc3, 0x28])
    },
    "an empty body": { body: "" },
    "a megabyte": { headers: [["Content-Type", "text/plain"]], body: "x".repeat(1_000_000) }
  }
  for (const [name, sent] of Object.entries(untouched)) {
    it(`A body that the code leaves alone is delivered byte for byte: ${name}`, async ({
      executions,
      gateway,
      send,
      target,
      through
    }) => {
      const { source, transformation: made } = await through(handler('request.headers["x-seen"] = "1"; return request'))
      const id = await send(source, sent)
      const [delivery] = await target.next()
      expect(delivery!.body.equals(Buffer.from(sent.body!))).toBe(true)
      expect(delivery!.headers["x-seen"]).toBe("1")
      const [row] = await gateway.sql("select body, same_body from event_data where request_id = $1", [id])
      expect(row).toEqual({ body: null, same_body: true })
      expect((await executions(made)).length).toBe(1)
    })
  }

  it("No event data is stored when the transformation changes nothing", async ({
    executions,
    gateway,
    send,
    target,
    through
  }) => {
    const { source, transformation: made } = await through(identity)
    const id = await send(source)
    await target.next()
    expect(await gateway.sql("select id from event_data where request_id = $1", [id])).toEqual([])
    const execution = (await executions(made))[0]!
    expect(execution.transformed_event_data_id).toBe(execution.original_event_data_id)
  })

  it("A transformation can return text or no body", async ({ send, target, through }) => {
    const text = await through(handler('request.body = "plain ü"; return request'))
    await send(text.source)
    expect((await target.next())[0]!.body.toString()).toBe("plain ü")
    target.reset()
    const none = await through(handler("request.body = null; return request"))
    await send(none.source, { body: '{"a":1}' })
    const [delivery] = await target.next()
    expect([delivery!.body.length, delivery!.headers["content-length"]]).toEqual([0, "0"])
  })

  it("Transformation code receives the request, its variables and its context", async ({ send, target, through }) => {
    const { connection, destination, source } = await through(
      handler(`
        const { headers, ...rest } = request
        return { ...request, body: { rest, tenant: headers["x-tenant"], twice: headers["x-twice"], context, env: process.env } }`),
      { env: { TOKEN: "s3cret", EMPTY: "" } }
    )
    const id = await send(source, {
      method: "PATCH",
      suffix: "/p?a=1&a=2&b=%20",
      headers: [json, ["X-Tenant", "acme"], ["X-Twice", "1"], ["x-twice", "2"]],
      body: '{"n":1}'
    })
    const seen = JSON.parse((await target.next())[0]!.body.toString())
    expect(seen).toEqual({
      rest: {
        body: { n: 1 },
        query: "a=1&a=2&b=%20",
        parsed_query: { a: ["1", "2"], b: " " },
        path: "/p",
        method: "PATCH"
      },
      tenant: "acme",
      twice: ["1", "2"],
      env: { TOKEN: "s3cret", EMPTY: "" },
      context: {
        connection_id: connection.id,
        source_id: source.id,
        destination_id: destination.id,
        request_id: id,
        team_id: source.team_id,
        env: { TOKEN: "s3cret", EMPTY: "" },
        timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
      }
    })
  })

  it("A transformation leaves no state for the next execution", async ({ send, target, through }) => {
    const { source } = await through(
      `globalThis.runs = (globalThis.runs ?? 0) + 1
       ${handler(`
        globalThis.secret = globalThis.secret ?? request.body.secret
        Array.prototype.leak = request.body.secret
        return { ...request, body: { runs: globalThis.runs, secret: globalThis.secret } }`)}`
    )
    for (const secret of ["first", "second", "third"]) {
      target.reset()
      await send(source, { body: JSON.stringify({ secret }) })
      expect(JSON.parse((await target.next())[0]!.body.toString())).toEqual({ runs: 1, secret })
    }
  })
})

describe("Filters and delays after a transformation", () => {
  it("A filter uses the transformed request", async ({ executions, gateway, send, target, through }) => {
    const code = handler("request.body = { kind: request.body.type.toUpperCase() }; return request")
    const {
      connection,
      source,
      transformation: made
    } = await through(code, {
      rules: [{ type: "filter", body: { kind: "ORDER" } }]
    })
    const passed = await gateway.traced(await send(source, { body: '{"type":"order"}' }))
    expect(passed.counts).toMatchObject({ events: 1, ignored_events: 0, transformations: 1 })
    const missed = await gateway.traced(await send(source, { body: '{"type":"other"}' }))
    expect(missed.counts).toMatchObject({ events: 0, ignored_events: 1, transformations: 1 })
    expect(missed.ignored_events[0]).toMatchObject({ cause: "FILTERED", meta: ["body"], connection_id: connection.id })
    // It ran well, and no event came of it.
    expect(missed.transformations[0]).toMatchObject({ error_code: null, event_id: null })
    expect((await executions(made)).map(({ event_id }) => event_id)).toEqual([null, passed.events[0]!.id])
    await target.next()
    expect(target.received.length).toBe(1)
  })

  it("Rules are stored in a fixed order, however they were written", async ({ gateway, target, transformation }) => {
    const made = await transformation(identity)
    const { connection } = await gateway.route(target, {
      rules: [
        { type: "retry", strategy: "linear", count: 1, interval: 1_000 },
        { type: "delay", delay: 0 },
        { type: "filter", path: "/" },
        { type: "transformation", transformation_id: made.id },
        { type: "deduplicate", window: 1_000 }
      ]
    })
    const types = (await gateway.api("GET", `/connections/${connection.id}`)).rules.map((rule) => rule.type)
    expect(types).toEqual(["deduplicate", "transform", "filter", "delay", "retry"])
  })

  it("A delay after a transformation starts when the event is created", async ({ gateway, send, through }) => {
    const { source } = await through(identity, { rules: [{ type: "delay", delay: 3_600_000 }] })
    const { events } = await gateway.traced(await send(source))
    const event = events[0]!
    expect(event.status).toBe("SCHEDULED")
    expect(Date.parse(event.next_attempt_at!) - Date.parse(event.created_at)).toBeGreaterThan(3_599_000)
  })
})

describe("Failing transformation code", () => {
  const failures: ReadonlyArray<readonly [code: string, error: string, source: string]> = [
    ["the code throws", "RUNTIME_ERROR", handler('throw new TypeError("no order in " + request.path)')],
    ["the code never ends", "TIMEOUT", handler("for (;;) {}")],
    ["the code loops before it registers its handler", "TIMEOUT", "for (;;) {}"],
    [
      "the code uses all memory",
      "MEMORY_LIMIT",
      handler("const held = []; for (;;) held.push(new Array(100_000).fill(held.length))")
    ],
    ["the code returns nothing", "INVALID_OUTPUT", handler("return")],
    [
      "the code returns an invalid header",
      "INVALID_OUTPUT",
      handler('request.headers["x"] = "a\\r\\nb: c"; return request')
    ],
    ["the code returns an invalid path", "INVALID_OUTPUT", handler('request.path = "orders"; return request')],
    [
      "the code returns a circular body",
      "INVALID_OUTPUT",
      handler("request.body = {}; request.body.self = request.body; return request")
    ],
    [
      "the code returns too much",
      "OUTPUT_TOO_LARGE",
      handler('request.body = "x".repeat(11 * 1024 * 1024); return request')
    ],
    ["the code returns a promise", "ASYNC_NOT_SUPPORTED", 'addHandler("transform", async (request) => request)'],
    ["the code registers no handler", "NO_HANDLER", "const unused = 1"]
  ]
  for (const [name, error_code, code] of failures) {
    it(`Failed code ends in ${error_code}, an ignored event and no delivery: ${name}`, async ({
      gateway,
      send,
      target,
      through
    }) => {
      const { connection, source, transformation: made } = await through(code)
      const id = await send(source, { suffix: "/in" })
      const trace = await gateway.traced(id)
      expect(trace.counts).toMatchObject({ events: 0, ignored_events: 1, transformations: 1, attempts: 0 })
      expect(trace.request).toMatchObject({ status: "accepted", events_count: 0, ignored_count: 1 })
      const execution = trace.transformations[0]!
      expect(execution).toMatchObject({
        id: expect.stringMatching(/^txe_/),
        transformation_id: made.id,
        connection_id: connection.id,
        webhook_id: connection.id,
        request_id: id,
        event_id: null,
        error_code,
        log_level: "fatal",
        code_hash: made.code_hash,
        transformed_event_data_id: null,
        transformed_event_data: null
      })
      expect(execution.original_event_data).toMatchObject({ path: "/in", body: {} })
      expect(trace.ignored_events[0]).toMatchObject({
        cause: "TRANSFORMATION_FAILED",
        meta: [{ transformation_id: made.id, message: execution.error_message }]
      })
      expect(execution.error_message).not.toBe("")
      expect(trace.timeline.map((item) => [item.kind, item.label, item.status])).toContainEqual([
        "transformation",
        "Transformation failed",
        error_code
      ])
      expect(await gateway.sql("select event_id from deliveries where connection_id = $1", [connection.id])).toEqual([])
      expect(target.received).toEqual([])
    })
  }

  it("A failed transformation keeps the log that it wrote before", async ({ gateway, send, through }) => {
    const { source } = await through(
      handler('console.log("begun", { a: 1 }); console.warn("careful"); throw new RangeError("too far")')
    )
    const { transformations } = await gateway.traced(await send(source))
    expect(transformations[0]!.logs).toEqual([
      { type: "log", message: expect.stringContaining("begun") },
      { type: "warn", message: "careful" }
    ])
    expect(transformations[0]!.error_message).toContain("too far")
  })

  it("A request is delivered when it is sent again after the code is corrected", async ({
    gateway,
    send,
    target,
    through
  }) => {
    const { source, transformation: made } = await through(handler("throw new Error()"))
    await gateway.traced(await send(source))
    await gateway.api("PATCH", `/transformations/${made.id}`, {
      code: handler('request.body = "right"; return request')
    })
    await send(source)
    expect((await target.next())[0]!.body.toString()).toBe("right")
  })

  it("Hostile code of one connection does not stop deliveries of others", async ({
    gateway,
    send,
    target,
    through
  }) => {
    const loop = await through(handler("for (;;) {}"))
    const bomb = await through(handler("const held = []; for (;;) held.push(new Array(100_000).fill(held.length))"))
    const honest = await through(handler('request.body = "honest"; return request'))
    const plain = await gateway.route(target)
    const hostile = await Promise.all(
      Array.from({ length: 6 }, (_, i) => send(i % 2 === 0 ? loop.source : bomb.source))
    )
    for (let i = 0; i < 10; i++) {
      await send(plain.source, { body: `"plain ${i}"` })
      await send(honest.source)
    }
    const came = (): ReadonlySet<string> => new Set(target.received.map(({ body }) => body.toString()))
    await gateway.eventually("one of each has come", async () => {
      const bodies = came()
      return bodies.has("honest") && bodies.has('"plain 0"') ? bodies : null
    })
    // They were sent later, and come before the hostile ones have all been ended.
    const [{ ended }] = await gateway.sql("select count(*)::int as ended from executions where request_id = any($1)", [
      hostile
    ])
    expect(ended).toBeLessThan(hostile.length)
    await target.next(20)
    const bodies = target.received.map(({ body }) => body.toString())
    expect(bodies.filter((body) => body === "honest").length).toBe(10)
    expect(bodies.filter((body) => body.startsWith('"plain')).length).toBe(10)
    for (const id of hostile) {
      const { counts, transformations } = await gateway.traced(id)
      expect(counts).toMatchObject({ events: 0, ignored_events: 1 })
      expect(["TIMEOUT", "MEMORY_LIMIT"]).toContain(transformations[0]!.error_code)
    }
  })
})
