import { describe, expect } from "vitest"
import type { Attempt, Event, Source } from "../support/Contract.ts"
import { type Answer, request } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"

/** What leaves the gateway, and what is kept of it, when a sender or a team's code wants more than that: limits and containment. */

const retrying = { type: "retry", count: 3, strategy: "linear", interval: 60_000 } as const

const outcome = ({ attempt, event }: { readonly attempt: Attempt; readonly event: Event }) => ({
  status: event.status,
  attempts: event.attempts,
  next: event.next_attempt_at,
  codes: [event.error_code, attempt.error_code],
  answered: attempt.response_status
})

const refusedAs = (code: string) => ({
  status: "FAILED",
  attempts: 1,
  next: null,
  codes: [code, code],
  answered: null
})

/** Steps that only a target would see. */
const hidden = [
  "/..%2fadmin",
  "/%2e%2e%2fadmin",
  "/..%5cadmin",
  "/..;/admin",
  "/.%2e;x/admin",
  "/%252e%252e%252fadmin",
  "/%c0%ae%c0%ae%c0%afadmin",
  "/a%2f..%2f..%2fadmin"
]

const it = gatewayIt
  .extend(
    "finished",
    ({ gateway }) =>
      (id: string): Promise<Event> =>
        gateway.eventually(
          `event ${id} is finished`,
          () => gateway.api("GET", `/events/${id}`),
          ({ status }) => ["SUCCESSFUL", "FAILED"].includes(status)
        )
  )
  .extend(
    "send",
    ({ gateway }) =>
      (source: Source, suffix = "", body: string | Uint8Array = "{}"): Promise<Answer> =>
        request(gateway.port, {
          path: `/e/${source.id}${suffix}`,
          headers: [["Content-Type", "application/json"]],
          body
        })
  )
  /** Sends, and waits until the only event of the request is finished; the event and its only attempt. */
  .extend(
    "delivered",
    ({ finished, gateway, send }) =>
      async (source: Source, suffix = "", body: string | Uint8Array = "{}") => {
        const { request_id } = JSON.parse((await send(source, suffix, body)).body)
        const { events } = await gateway.traced(request_id)
        const event = await finished(events[0]!.id)
        const { models } = await gateway.api("GET", `/attempts?event_id=${event.id}`)
        expect(models.length).toBe(1)
        return { event, attempt: models[0]! }
      }
  )

describe("Path of a destination", () => {
  it("A delivery whose encoded path would leave the destination's path fails and is not retried", async ({
    delivered,
    gateway,
    target
  }) => {
    const { destination, source } = await gateway.route(target, {
      destination: { url: `${target.origin}/public?key=1` },
      rules: [retrying]
    })
    for (const suffix of [...hidden, "/\\..\\admin"]) {
      const ended = await delivered(source, suffix)
      expect([suffix, outcome(ended)]).toEqual([suffix, refusedAs("PATH_NOT_ALLOWED")])
      expect(ended.attempt.requested_url).toBe(destination.config.url)
      expect(ended.event.failure_message).toContain("encoded steps")
    }
    expect(target.received).toEqual([])
  })

  it("A transformation cannot leave the destination's path", async ({ delivered, gateway, target }) => {
    const code = `addHandler("transform", (request) => ({ ...request, path: request.body.path }))`
    const { source } = await gateway.route(target, {
      destination: { url: `${target.origin}/public/` },
      rules: [{ type: "transform", transformation: { name: gateway.name("steps"), code } }, retrying]
    })
    for (const path of hidden) {
      const ended = await delivered(source, "", JSON.stringify({ path }))
      expect([path, outcome(ended)]).toEqual([path, refusedAs("PATH_NOT_ALLOWED")])
    }
    expect(target.received).toEqual([])
    await delivered(source, "", JSON.stringify({ path: "/a/../../b%2Fc" }))
    expect(target.received.map(({ url }) => url)).toEqual(["/public/b%2Fc"])
  })

  it("A delivery's path keeps its encoding, and plain dot segments stay within the destination's path", async ({
    delivered,
    gateway,
    target
  }) => {
    const { source } = await gateway.route(target, { destination: { url: `${target.origin}/public?key=1` } })
    const sent: ReadonlyArray<readonly [suffix: string, url: string]> = [
      ["/a%2Fb%5cc%20d?q=%2F..%2f", "/public/a%2Fb%5cc%20d?key=1&q=%2F..%2f"],
      ["/caf%C3%A9/%E2%82%AC", "/public/caf%C3%A9/%E2%82%AC?key=1"],
      ["/a;b=c/100%25/..d/e../...", "/public/a;b=c/100%25/..d/e../...?key=1"],
      ["/a/../b", "/public/b?key=1"],
      ["/../../b", "/public/b?key=1"],
      ["/%2e%2E/b/.", "/public/b/?key=1"]
    ]
    for (const [suffix, url] of sent) {
      target.reset()
      const { attempt } = await delivered(source, suffix)
      expect([suffix, target.received.map((delivery) => delivery.url)]).toEqual([suffix, [url]])
      expect(attempt.requested_url).toBe(target.origin + url)
    }
  })

  it("A request whose path would leave the upstream's path is answered with 400 in proxy mode", async ({
    gateway,
    send,
    upstream
  }) => {
    const proxy = { target_url: `${upstream.origin}/public`, enabled: true }
    const source = await gateway.source({ mode: "proxy", proxy })
    for (const suffix of hidden) {
      const answer = await send(source, suffix)
      expect([suffix, answer.status, JSON.parse(answer.body).code]).toEqual([suffix, 400, "VALIDATION_ERROR"])
    }
    expect(upstream.received).toEqual([])
  })
})

describe("MOCK_API destination", () => {
  it("A MOCK_API destination shows its fixed URL and accepts it when written back", async ({ gateway, target }) => {
    const made = await gateway.destination({ path: "/status/201" }, "MOCK_API")
    expect(made.config).toMatchObject({ url: "https://mock.invalid/", path: "/status/201" })
    const { config, name, type } = await gateway.api("GET", `/destinations/${made.id}`)
    expect(config).toEqual(made.config)
    const { config: again } = await gateway.api("PUT", `/destinations/${made.id}`, { name, type, config })
    expect(again).toEqual(made.config)
    const elsewhere = await gateway.call("PATCH", `/destinations/${made.id}`, { config: { url: target.origin } })
    expect([elsewhere.status, elsewhere.body.message]).toEqual([
      400,
      "config.url is fixed for MOCK_API destinations; use config.path"
    ])
  })

  it("A MOCK_API destination echoes the query, and its stored body is limited like any answer's", async ({
    delivered,
    gateway
  }) => {
    const source = await gateway.source()
    await gateway.connection(source, await gateway.destination({}, "MOCK_API"))
    const small = await delivered(source, "/a?x=1&y=%20", "hello")
    expect(JSON.parse(small.attempt.body!)).toMatchObject({ path: "/a", query: "x=1&y=%20", body: "hello" })
    const large = await delivered(source, "/a", "\u20ac".repeat(3_400_000))
    expect(large.event.status).toBe("SUCCESSFUL")
    expect(large.attempt.body_encoding).toBe("text")
    expect(large.attempt.body!.startsWith('{"method":"POST","path":"/a","query":"","headers":{')).toBe(true)
    expect(large.attempt.body!.endsWith("\u20ac\u20ac\u20ac")).toBe(true)
    const [row] = await gateway.sql("select length(body) as bytes from attempts where id = $1", [large.attempt.id])
    expect(row.bytes).toBeGreaterThan(65_536 - 3)
    expect(row.bytes).toBeLessThanOrEqual(65_536)
  })
})

describe("Result of a transformation", () => {
  const handler = (body: string): string => `addHandler("transform", (request) => {\n${body}\n})`

  it("A transformation's result that no target could receive is refused in tests and for real", async ({
    gateway,
    send,
    target
  }) => {
    const beyond: ReadonlyArray<readonly [code: string, message: RegExp]> = [
      [
        "for (let i = 0; i < 20000; i++) request.headers['x' + i] = '1'; return request",
        /there are more than 500 headers/
      ],
      ["request.headers.a = 'x'.repeat(5e6); return request", /too long/],
      ["request.headers.a = 'x'.repeat(40000); return request", /header "a" has more than 32768 bytes/],
      ["request.path = '/' + 'x'.repeat(3000); return request", /path has more than 2048 bytes/],
      ["request.query = { a: 'x'.repeat(20000) }; return request", /query has more than 16384 bytes/],
      ["request.body = Array(300000).fill(1); return request", /body has more than 100000 values/]
    ]
    for (const [body, message] of beyond) {
      const tried = await gateway.api("POST", "/transformations/run", { code: handler(body), request: { body: {} } })
      expect([tried.error?.code, tried.request]).toEqual(["INVALID_OUTPUT", null])
      expect(tried.error?.message).toMatch(message)
    }
    const name = gateway.name("too-much")
    const { source } = await gateway.route(target, {
      rules: [{ type: "transform", transformation: { name, code: handler(beyond[0]![0]) } }]
    })
    const { request_id } = JSON.parse((await send(source)).body)
    const trace = await gateway.traced(request_id)
    expect(trace.ignored_events[0]!.cause).toBe("TRANSFORMATION_FAILED")
    expect(trace.transformations[0]!.error_code).toBe("INVALID_OUTPUT")
    expect(target.received).toEqual([])
  })

  it("A stored result beyond today's limits fails only its own attempt", async ({
    finished,
    gateway,
    send,
    target
  }) => {
    const code = handler("request.headers.seen = '1'; return request")
    const { connection, source } = await gateway.route(target, {
      rules: [{ type: "transform", transformation: { name: gateway.name("stored"), code } }, retrying]
    })
    await gateway.api("PUT", `/connections/${connection.id}/pause`)
    const large: ReadonlyArray<readonly [column: string, value: string]> = [
      ["headers", JSON.stringify(Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`x${i}`, "1"])))],
      ["headers", JSON.stringify({ a: "x".repeat(2_000_000) })],
      ["path", `/${"x".repeat(2_000_000)}`],
      ["path", "/..%2f".repeat(100_000)],
      ["query", "x".repeat(2_000_000)]
    ]
    const events: Array<string> = []
    for (const [column, value] of large) {
      const { request_id } = JSON.parse((await send(source)).body)
      events.push((await gateway.traced(request_id)).events[0]!.id)
      await gateway.sql(`update event_data set ${column} = $1 where request_id = $2`, [value, request_id])
    }
    const { request_id } = JSON.parse((await send(source)).body)
    const [sound] = (await gateway.traced(request_id)).events
    await gateway.api("PUT", `/connections/${connection.id}/unpause`)
    expect((await finished(sound!.id)).status).toBe("SUCCESSFUL")
    for (const [i, id] of events.entries()) {
      const event = await finished(id)
      const { models } = await gateway.api("GET", `/attempts?event_id=${id}`)
      const code = large[i]![1].startsWith("/..%2f") ? "PATH_NOT_ALLOWED" : "REQUEST_TOO_LARGE"
      expect(outcome({ event, attempt: models[0]! })).toEqual(refusedAs(code))
      expect(models[0]!.requested_url).toBe(target.origin)
    }
    expect(target.received.length).toBe(1)
  })
})

describe("Code with an interpreter line", () => {
  it("Code with an interpreter line can be saved, tested and run", async ({ delivered, gateway, target }) => {
    const code = '#!/usr/bin/env node\naddHandler("transform", (request) => ({ ...request, body: { ran: true } }))'
    const tried = await gateway.api("POST", "/transformations/run", { code, request: { body: {} } })
    expect(tried.request?.body).toEqual({ ran: true })
    const { source } = await gateway.route(target, {
      rules: [{ type: "transform", transformation: { name: gateway.name("interpreter"), code } }]
    })
    await delivered(source)
    expect(target.received[0]!.body.toString()).toBe('{"ran":true}')
  })

  it("Code with an interpreter line behind a space is refused with 400", async ({ gateway }) => {
    const code = ' #!/usr/bin/env node\naddHandler("transform", (request) => request)'
    const saved = await gateway.call("POST", "/transformations", { name: gateway.name("space"), code })
    expect([saved.status, saved.body.code]).toEqual([400, "TRANSFORMATION_INVALID"])
  })
})
