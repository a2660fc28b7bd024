import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { get as httpGet, type IncomingMessage } from "node:http"
import { createServer } from "node:net"
import type { AddressInfo } from "node:net"
import { gzipSync } from "node:zlib"
import { describe, expect } from "vitest"
import { type Body, Gateway } from "../support/Gateway.ts"
import { type Answer, request, requestBytes, talk } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"

/** A source in proxy mode: its sender is answered by its upstream, and what came in is routed beside that: contract 2.5. */

const it = gatewayIt
  .extend(
    "proxying",
    ({ gateway, upstream }) =>
      (proxy: object = {}, config: object = {}): Promise<Body> =>
        gateway.source({
          allowed_http_methods: allMethods,
          mode: "proxy",
          proxy: { target_url: upstream.origin, ...proxy },
          ...config
        })
  )
  .extend(
    "send",
    ({ gateway }) =>
      (source: Body, { suffix = "", ...parts }: Sent = {}): Promise<Answer> =>
        request(gateway.port, { ...parts, path: `/e/${source.id}${suffix}` })
  )
  /** The exchange of a request once it is stored, which is after the caller has been answered. */
  .extend(
    "exchangeOf",
    ({ gateway }) =>
      (requestId: string): Promise<Body> =>
        gateway.eventually(`the exchange of ${requestId}`, async () => {
          const { proxy_exchange } = await gateway.api("GET", `/requests/${requestId}`)
          return proxy_exchange
        })
  )
  /** Asks through Node's own client, which reads an answer as it comes. */
  .extend("ask", ({ gateway }) => async (source: Body, suffix = ""): Promise<IncomingMessage> => {
    const asked = httpGet(`${gateway.origin}/e/${source.id}${suffix}`, { agent: false })
    const [message] = await once(asked, "response")
    return message
  })

const allMethods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]

interface Sent {
  readonly method?: string
  readonly suffix?: string
  readonly headers?: ReadonlyArray<readonly [string, string]>
  readonly body?: string | Uint8Array
}

const idOf = ({ headers }: { readonly headers: Answer["headers"] | IncomingMessage["headers"] }): string =>
  String(headers["x-gateway-request-id"])

describe("the upstream's answer is the caller's", () => {
  it("status, headers and body, as they are", async ({ gateway, proxying, upstream }) => {
    const body = randomBytes(5_000)
    upstream.reply = (response) => {
      response.writeHead(418, {
        "Content-Type": "application/octet-stream",
        "Set-Cookie": ["a=1", "b=2"],
        "X-Upstream": "caf\xe9",
        ETag: '"1"',
        "Keep-Alive": "timeout=99",
        Connection: "keep-alive, X-Hop",
        "X-Hop": "1"
      })
      response.end(body)
    }
    const source = await proxying()
    const response = await fetch(`${gateway.origin}/e/${source.id}`, { method: "POST", body: "{}" })
    expect(response.status).toBe(418)
    expect(Buffer.from(await response.arrayBuffer()).equals(body)).toBe(true)
    expect(response.headers.getSetCookie()).toEqual(["a=1", "b=2"])
    expect(response.headers.get("x-upstream")).toBe("caf\xe9")
    expect(response.headers.get("etag")).toBe('"1"')
    expect(response.headers.get("x-hop")).toBeNull()
    expect(response.headers.get("keep-alive")).not.toBe("timeout=99")
  })

  it("header values beyond ASCII, byte for byte, however late the body comes", async ({ proxying, send, upstream }) => {
    for (const body of ["at once", "later"]) {
      upstream.reply = async (response) => {
        response.writeHead(200, ["X-Upstream", "caf\xe9"])
        response.write(Buffer.alloc(0))
        if (body === "later") await new Promise((resolve) => setTimeout(resolve, 100))
        response.end(Buffer.from(body))
      }
      const answer = await send(await proxying())
      expect([answer.body, answer.headers["x-upstream"]]).toEqual([body, "caf\xe9"])
    }
  })

  it("the request reaches it as it came: method, body and headers, but for those of the connection", async ({
    gateway,
    proxying,
    send,
    upstream
  }) => {
    const source = await proxying()
    const body = randomBytes(10_000)
    await send(source, {
      method: "PATCH",
      headers: [
        ["X-Tenant", "acme"],
        ["Authorization", "Bearer for-the-upstream"],
        ["X-Gateway-Verified", "true"],
        ["X-Forwarded-For", "203.0.113.9"],
        ["Connection", "close, X-Hop"],
        ["X-Hop", "1"]
      ],
      body
    })
    const [call] = upstream.received
    const [row] = await gateway.requests(source.id)
    expect([call!.method, call!.body.equals(body)]).toEqual(["PATCH", true])
    expect(call!.headers).toMatchObject({
      "x-tenant": "acme",
      authorization: "Bearer for-the-upstream",
      host: new URL(upstream.origin).host,
      "content-length": "10000",
      "x-forwarded-for": "203.0.113.9, 127.0.0.1",
      "x-forwarded-host": new URL(source.url).host,
      "x-forwarded-proto": "http",
      "x-gateway-request-id": row.id
    })
    expect(call!.headers).not.toHaveProperty("x-hop")
    expect(call!.headers).not.toHaveProperty("x-gateway-verified")
  })

  for (const method of allMethods) {
    it(method, async ({ proxying, send, upstream }) => {
      const answer = await send(await proxying(), {
        method,
        ...(method === "GET" || method === "HEAD" ? {} : { body: "x" })
      })
      expect([answer.status, answer.body]).toEqual([200, method === "HEAD" ? "" : "upstream"])
      expect(upstream.received.map((call) => call.method)).toEqual([method])
    })
  }

  it("HEAD keeps the length, 204 and 304 have no body; the connection goes on", async ({
    gateway,
    proxying,
    send,
    upstream
  }) => {
    const source = await proxying()
    upstream.reply = (response, { method, url }) => {
      if (method === "HEAD") response.writeHead(200, { "content-length": "12345" }).end()
      else response.writeHead(Number(url.slice(1)), { etag: '"1"' }).end()
    }
    const head = await send(source, { method: "HEAD", suffix: "/200" })
    expect([head.status, head.headers["content-length"], head.body]).toEqual([200, "12345", ""])
    const { answers } = await talk(
      gateway.port,
      [
        requestBytes({ method: "GET", path: `/e/${source.id}/204`, keepAlive: true }),
        requestBytes({ method: "GET", path: `/e/${source.id}/304`, keepAlive: true }),
        requestBytes({ method: "GET", path: `/e/${source.id}/200` })
      ],
      { pause: 50 }
    )
    expect(answers.map(({ body, headers, status }) => [status, body, headers["etag"]])).toEqual([
      [204, "", '"1"'],
      [304, "", '"1"'],
      [200, "", '"1"']
    ])
  })

  it("a redirect is the caller's to follow", async ({ proxying, send, upstream }) => {
    upstream.reply = (response) => void response.writeHead(302, { location: "http://127.0.0.1:1/elsewhere" }).end()
    const answer = await send(await proxying())
    expect([answer.status, answer.headers["location"]]).toEqual([302, "http://127.0.0.1:1/elsewhere"])
    expect(upstream.received.length).toBe(1)
  })

  it("a compressed body stays compressed", async ({ gateway, proxying, upstream }) => {
    const packed = gzipSync("x".repeat(10_000))
    upstream.reply = (response) => void response.writeHead(200, { "content-encoding": "gzip" }).end(packed)
    const response = await fetch(`${gateway.origin}/e/${(await proxying()).id}`, { method: "POST" })
    expect(response.headers.get("content-encoding")).toBe("gzip")
    expect(await response.text()).toBe("x".repeat(10_000))
  })

  it("a body of 24 MiB comes through whole, in and out up to the gateway's own limit", async ({
    exchangeOf,
    gateway,
    proxying,
    upstream
  }) => {
    const large = randomBytes(24 * 1024 * 1024)
    upstream.reply = (response) => void response.end(large)
    const source = await proxying({ capture_response_bytes: 1_000 })
    const sent = randomBytes(10 * 1024 * 1024)
    const response = await fetch(`${gateway.origin}/e/${source.id}`, { method: "POST", body: sent })
    expect(Buffer.from(await response.arrayBuffer()).equals(large)).toBe(true)
    expect(upstream.received[0]!.body.equals(sent)).toBe(true)
    const exchange = await exchangeOf(String(response.headers.get("x-gateway-request-id")))
    expect([exchange.response_body_truncated, exchange.response_body_encoding]).toEqual([true, "base64"])
    expect(Buffer.from(exchange.response_body, "base64").equals(large.subarray(0, 1_000))).toBe(true)
  })

  it("a custom response is not asked", async ({ gateway, proxying, send }) => {
    const source = await proxying({}, { custom_response: { content_type: "text", body: "custom" } })
    expect((await send(source)).body).toBe("upstream")
    await gateway.api("PATCH", `/sources/${source.id}`, { config: { mode: "webhook" } })
    expect((await send(source)).body).toBe("custom")
  })
})

describe("paths and queries", () => {
  const table: ReadonlyArray<readonly [proxy: object, base: string, suffix: string, called: string]> = [
    [{}, "", "", "/"],
    [{}, "/base", "/orders/1?a=1&a=2", "/base/orders/1?a=1&a=2"],
    [{}, "/base/?k=v", "/a%2Fb//c?x=%20+", "/base/a%2Fb//c?k=v&x=%20+"],
    [{ path_forwarding: false }, "/base", "/orders?a=1", "/base?a=1"],
    [{ query_forwarding: false }, "/base?k=v", "/orders?a=1", "/base/orders?k=v"],
    [{ path_forwarding: false, query_forwarding: false }, "/base?k=v", "/orders?a=1", "/base?k=v"]
  ]
  for (const [proxy, base, suffix, called] of table) {
    it(`${JSON.stringify(proxy)} ${base} + ${suffix} is ${called}`, async ({
      exchangeOf,
      gateway,
      proxying,
      send,
      upstream
    }) => {
      const source = await proxying({ target_url: upstream.origin + base, ...proxy })
      await send(source, { suffix })
      expect(upstream.received.map(({ url }) => url)).toEqual([called])
      const [row] = await gateway.requests(source.id)
      expect((await exchangeOf(row.id)).target_url).toBe(upstream.origin + called)
    })
  }

  it("what would lead out of the target's path is not sent", async ({ exchangeOf, proxying, send, upstream }) => {
    const source = await proxying({ target_url: `${upstream.origin}/public/` })
    for (const suffix of ["/..%2f..%2fadmin", "/%252e%252e%252fadmin", "/..;/admin"]) {
      const answer = await send(source, { suffix })
      expect([suffix, answer.status, JSON.parse(answer.body).code]).toEqual([suffix, 400, "VALIDATION_ERROR"])
      expect(await exchangeOf(idOf(answer))).toMatchObject({ error_code: "PATH_NOT_ALLOWED", response_status: null })
    }
    for (const suffix of ["/../admin", "/%2e%2e/admin"]) {
      await send(source, { suffix })
      expect(upstream.received.at(-1)!.url).toBe("/public/admin")
    }
  })
})

describe("answers as they come", () => {
  it("the caller has the beginning before the upstream has the end", async ({ ask, proxying, upstream }) => {
    let last!: () => void
    const more = new Promise<void>((resolve) => (last = resolve))
    upstream.reply = async (response) => {
      response.writeHead(200, { "content-type": "text/plain" })
      response.write("first ")
      await more
      response.end("last")
    }
    const message = await ask(await proxying())
    const [first] = await once(message, "data")
    expect(String(first)).toBe("first ")
    last()
    const chunks: Array<Buffer> = []
    for await (const chunk of message) chunks.push(chunk)
    expect(Buffer.concat(chunks).toString()).toBe("last")
  })

  it("events: the headers before the first, and each as it is sent", async ({
    ask,
    exchangeOf,
    proxying,
    upstream
  }) => {
    const acts: Array<() => void> = []
    upstream.reply = (response) => {
      response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" })
      response.flushHeaders()
      acts.push(() => response.write("id: 1\ndata: one\n\n"))
      acts.push(() => response.write("id: 2\ndata: two\n\n"))
      acts.push(() => response.end())
    }
    const message = await ask(await proxying())
    expect(message.headers["content-type"]).toBe("text/event-stream")
    for (const expected of ["id: 1\ndata: one\n\n", "id: 2\ndata: two\n\n"]) {
      acts.shift()!()
      const [event] = await once(message, "data")
      expect(String(event)).toBe(expected)
    }
    const ended = once(message, "end")
    acts.shift()!()
    await ended
    const exchange = await exchangeOf(idOf(message))
    expect(exchange).toMatchObject({ response_status: 200, error_code: null, response_body_truncated: false })
    expect(exchange.response_body).toBe("id: 1\ndata: one\n\nid: 2\ndata: two\n\n")
  })

  it("a caller that goes away takes the upstream's call with it, and the exchange says so", async ({
    ask,
    exchangeOf,
    proxying,
    upstream
  }) => {
    upstream.reply = (response) => void response.writeHead(200).write("first")
    const message = await ask(await proxying())
    await once(message, "data")
    message.destroy()
    await upstream.received[0]!.abandoned
    const exchange = await exchangeOf(idOf(message))
    expect(exchange).toMatchObject({
      response_status: 200,
      response_body: "first",
      error_code: "NETWORK_REQUEST_CANCELED"
    })
  })
})

describe("an upstream that fails", () => {
  it("no answer in time is 504", async ({ exchangeOf, proxying, send, upstream }) => {
    upstream.reply = () => undefined
    const source = await proxying({ timeout_ms: 1_000 })
    const startedAt = performance.now()
    const answer = await send(source)
    const waited = performance.now() - startedAt
    expect([answer.status, JSON.parse(answer.body).code]).toEqual([504, "UPSTREAM_TIMEOUT"])
    expect(waited).toBeGreaterThan(950)
    expect(waited).toBeLessThan(3_000)
    expect(answer.body).not.toContain("127.0.0.1")
    await upstream.received[0]!.abandoned
    expect(await exchangeOf(idOf(answer))).toMatchObject({
      error_code: "TIMEOUT",
      response_status: null,
      response_headers: null,
      response_body: null,
      responded_at: null,
      response_latency: null
    })
  })

  it("nobody there is 502, and the request is kept and routed", async ({
    exchangeOf,
    gateway,
    proxying,
    send,
    target
  }) => {
    const closed = createServer()
    await once(closed.listen(0, "127.0.0.1"), "listening")
    const { port } = closed.address() as AddressInfo
    closed.close()
    await once(closed, "close")
    const source = await proxying({ target_url: `http://127.0.0.1:${port}/secret-path` })
    await gateway.connection(source, await gateway.destination({ url: target.origin }))
    const answer = await send(source, { body: "kept" })
    expect([answer.status, JSON.parse(answer.body).code]).toEqual([502, "UPSTREAM_ERROR"])
    expect(answer.body).not.toMatch(/127\.0\.0\.1|secret-path/)
    expect((await target.next())[0]!.body.toString()).toBe("kept")
    expect(await exchangeOf(idOf(answer))).toMatchObject({ error_code: "CONNECTION_REFUSED", response_status: null })
  })

  for (const [name, bytes] of [
    ["what is no HTTP", "220 smtp ready\r\n"],
    ["a connection that ends without an answer", ""]
  ] as const) {
    it(`${name} is 502`, async ({ exchangeOf, proxying, send }) => {
      const server = createServer((socket) => {
        socket.on("error", () => undefined)
        socket.once("data", () => socket.end(bytes))
      })
      await once(server.listen(0, "127.0.0.1"), "listening")
      try {
        const { port } = server.address() as AddressInfo
        const answer = await send(await proxying({ target_url: `http://127.0.0.1:${port}` }))
        expect([answer.status, JSON.parse(answer.body).code]).toEqual([502, "UPSTREAM_ERROR"])
        expect((await exchangeOf(idOf(answer))).error_code).not.toBeNull()
      } finally {
        server.close()
      }
    })
  }

  it("an answer that breaks off breaks off for the caller, too", async ({ ask, exchangeOf, proxying, upstream }) => {
    for (const headers of [{ "content-length": "1000" }, {}] as const) {
      upstream.reply = (response) => {
        response.writeHead(200, headers)
        response.write("a part", () => response.destroy())
      }
      const source = await proxying()
      const message = await ask(source)
      const failure = await (async () => {
        for await (const _ of message);
      })().then(
        () => null,
        (error: NodeJS.ErrnoException) => error
      )
      expect(failure).not.toBeNull()
      const exchange = await exchangeOf(idOf(message))
      expect([exchange.response_status, exchange.response_body]).toEqual([200, "a part"])
      expect(exchange.error_code).not.toBeNull()
    }
  })

  it("an upstream that falls silent within its answer does not hold the caller for ever", async ({
    ask,
    exchangeOf,
    proxying,
    upstream
  }) => {
    upstream.reply = (response) => void response.writeHead(200).write("a part")
    const message = await ask(await proxying({ timeout_ms: 1_000 }))
    message.resume()
    const [error] = await once(message, "error")
    expect(error.code).toBe("ECONNRESET")
    expect(await exchangeOf(idOf(message))).toMatchObject({ response_status: 200, error_code: "TIMEOUT" })
  })
})

describe("what is kept of an exchange", () => {
  it("all that the API shows of it, in the request and its trace", async ({
    exchangeOf,
    gateway,
    proxying,
    send,
    target,
    upstream
  }) => {
    upstream.reply = (response) =>
      void response.writeHead(201, { "content-type": "text/plain; charset=utf-8", "x-a": ["1", "2"] }).end("grüße")
    const source = await proxying({}, {})
    const connection = await gateway.connection(source, await gateway.destination({ url: target.origin }))
    const answer = await send(source, { suffix: "/x?y=1" })
    await target.next()
    const exchange = await exchangeOf(idOf(answer))
    expect(exchange).toMatchObject({
      id: expect.stringMatching(/^prx_/),
      team_id: source.team_id,
      source_id: source.id,
      request_id: idOf(answer),
      target_url: `${upstream.origin}/x?y=1`,
      http_method: "POST",
      response_status: 201,
      response_body: "grüße",
      response_body_encoding: "text",
      response_body_truncated: false,
      error_code: null,
      error_text: null
    })
    expect(exchange.response_headers["x-a"]).toEqual(["1", "2"])
    expect(Date.parse(exchange.responded_at) - Date.parse(exchange.started_at)).toBe(exchange.response_latency)

    const trace = await gateway.traced(idOf(answer))
    expect(trace.proxy_exchange).toEqual(exchange)
    expect(trace.counts).toMatchObject({ events: 1, proxy_exchanges: 1 })
    expect(trace.events[0].connection_id).toBe(connection.id)
    expect(trace.timeline.find((item: Body) => item.kind === "proxy_exchange")).toMatchObject({
      label: "Answered by upstream",
      status: "201",
      at: exchange.started_at,
      proxy_exchange_id: exchange.id
    })
  })

  const sizes: ReadonlyArray<readonly [limit: number, size: number, kept: number]> = [
    [0, 10, 0],
    [10, 10, 10],
    [10, 11, 10],
    [65_536, 65_536, 65_536],
    [65_536, 65_537, 65_536]
  ]
  for (const [limit, size, kept] of sizes) {
    it(`${size} bytes by a limit of ${limit}: the caller gets all, ${kept} are kept`, async ({
      exchangeOf,
      proxying,
      send,
      upstream
    }) => {
      upstream.reply = (response) => void response.end("x".repeat(size))
      const answer = await send(await proxying({ capture_response_bytes: limit }))
      expect(answer.body.length).toBe(size)
      const exchange = await exchangeOf(idOf(answer))
      expect([exchange.response_body.length, exchange.response_body_truncated]).toEqual([kept, size > kept])
    })
  }
})

describe("the gateway's own rules go first", () => {
  it("a refused request never reaches the upstream", async ({ exchangeOf, gateway, proxying, send, upstream }) => {
    const source = await proxying(
      {},
      { allowed_http_methods: ["POST"], auth_type: "API_KEY", auth: { api_key: "the-sender's-key" } }
    )
    const key = ["X-Api-Key", "the-sender's-key"] as const
    expect((await send(source, { headers: [["X-Api-Key", "guess"]] })).status).toBe(401)
    expect((await send(source, { method: "PUT", headers: [key] })).status).toBe(405)
    expect((await send(source, { headers: [key, ["Content-Length", String(11 * 1024 * 1024)]] })).status).toBe(413)
    expect(upstream.received).toEqual([])
    expect((await send(source, { headers: [key] })).body).toBe("upstream")
    await gateway.api("PUT", `/sources/${source.id}/disable`)
    expect((await send(source, { headers: [key] })).status).toBe(403)
    expect(upstream.received.length).toBe(1)
    const rows = await gateway.requests(source.id)
    expect(rows.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected", "accepted", "rejected"])
    await exchangeOf(rows[3].id)
    expect((await gateway.sql("select request_id from proxy_exchanges where source_id = $1", [source.id])).length).toBe(
      1
    )
  })

  it("a handshake is the gateway's to answer", async ({ gateway, send, upstream }) => {
    const source = await gateway.api("POST", "/sources", {
      name: gateway.name("source"),
      type: "DROPBOX",
      config: { auth: { secret: "the secret" }, mode: "proxy", proxy: { target_url: upstream.origin } }
    })
    const answer = await send(source, { method: "GET", suffix: "?challenge=hello" })
    expect([answer.status, answer.body]).toEqual([200, "hello"])
    expect(upstream.received).toEqual([])
  })

  it("a request is durable before the upstream hears of it", async ({ gateway, proxying, send, upstream }) => {
    const source = await proxying()
    const seen: Array<ReadonlyArray<Body>> = []
    upstream.reply = async (response, { headers }) => {
      seen.push(await gateway.sql("select id, status from requests where id = $1", [headers["x-gateway-request-id"]]))
      response.end("seen")
    }
    const answers = await Promise.all(Array.from({ length: 10 }, () => send(source)))
    expect(seen.map((rows) => rows.map(({ status }) => status))).toEqual(answers.map(() => ["accepted"]))
    expect(new Set(seen.map(([row]) => row.id))).toEqual(new Set(answers.map(idOf)))
  })

  it("without the database the upstream hears nothing", async ({ gateway, proxying, send, upstream }) => {
    const source = await proxying()
    expect((await send(source)).status).toBe(200)
    await gateway.link.cut()
    try {
      expect((await send(source)).status).toBe(503)
      expect(upstream.received.length).toBe(1)
    } finally {
      await gateway.link.mend()
    }
    await gateway.eventually("requests are taken again", async () =>
      (await send(source)).status === 200 ? true : null
    )
  })

  it("connections are routed beside it, and do not wait for a slow upstream", async ({
    gateway,
    proxying,
    send,
    target,
    upstream
  }) => {
    let release!: () => void
    const released = new Promise<void>((resolve) => (release = resolve))
    upstream.reply = async (response) => {
      await released
      response.end("at last")
    }
    const source = await proxying()
    await gateway.connection(source, await gateway.destination({ url: target.origin }))
    await gateway.connection(source, await gateway.destination({ url: target.origin }), [
      { type: "filter", path: "/no" }
    ])
    const answered = send(source, { body: "beside" })
    expect((await target.next())[0]!.body.toString()).toBe("beside")
    expect(target.received.length).toBe(1)
    release()
    expect((await answered).body).toBe("at last")
    const [row] = await gateway.requests(source.id)
    expect(row).toMatchObject({ events_count: 1, ignored_count: 1 })
  })

  it("the mode is switched off and on, from the next request on", async ({ gateway, proxying, send, upstream }) => {
    const source = await proxying()
    for (let i = 0; i < 5; i++) {
      await gateway.api("PATCH", `/sources/${source.id}`, { config: { mode: "webhook" } })
      expect(JSON.parse((await send(source)).body).ok).toBe(true)
      await gateway.api("PATCH", `/sources/${source.id}`, {
        config: { proxy: { enabled: true, target_url: upstream.origin } }
      })
      expect((await send(source)).body).toBe("upstream")
    }
    expect(upstream.received.length).toBe(5)
  })

  it("one caller's slow upstream keeps nobody else waiting", async ({ gateway, proxying, send, upstream }) => {
    upstream.reply = () => undefined
    const slow = await proxying({ timeout_ms: 2_000 })
    const waiting = Array.from({ length: 100 }, () => send(slow))
    await gateway.eventually("all hundred wait", async () => (upstream.received.length >= 100 ? true : null))
    const source = await gateway.source()
    const startedAt = performance.now()
    for (let i = 0; i < 10; i++) expect((await send(source)).status).toBe(200)
    expect(performance.now() - startedAt).toBeLessThan(1_000)
    expect(new Set((await Promise.all(waiting)).map(({ status }) => status))).toEqual(new Set([504]))
  })
})

describe("settings", () => {
  const wrong: ReadonlyArray<readonly [name: string, config: object, path: string]> = [
    ["no target", { mode: "proxy" }, "config.proxy"],
    ["an empty one", { mode: "proxy", proxy: {} }, "config.proxy"],
    ["no URL", { proxy: { target_url: "example.com" } }, "config.proxy.target_url"],
    ["another scheme", { proxy: { target_url: "ftp://example.com" } }, "config.proxy.target_url"],
    ["a user in the URL", { proxy: { target_url: "http://a:b@example.com" } }, "config.proxy.target_url"],
    ["a fragment", { proxy: { target_url: "http://example.com/#a" } }, "config.proxy.target_url"],
    ["999 ms", { proxy: { target_url: "http://example.com", timeout_ms: 999 } }, "config.proxy.timeout_ms"],
    ["31 s", { proxy: { target_url: "http://example.com", timeout_ms: 30_001 } }, "config.proxy.timeout_ms"],
    [
      "65,537 bytes",
      { proxy: { target_url: "http://example.com", capture_response_bytes: 65_537 } },
      "config.proxy.capture_response_bytes"
    ],
    ["a mode nobody knows", { mode: "mirror" }, "config.mode"],
    [
      "two that disagree",
      { mode: "webhook", proxy: { enabled: true, target_url: "http://example.com" } },
      "config.proxy.enabled"
    ]
  ]
  for (const [name, config, path] of wrong) {
    it(`${name} is refused`, async ({ gateway }) => {
      const { body, status } = await gateway.call("POST", "/sources", { name: gateway.name("source"), config })
      expect([status, body.code]).toEqual([400, "VALIDATION_ERROR"])
      expect(body.data.fields.map((field: Body) => field.path)).toContain(path)
    })
  }

  it("defaults are filled in, and kept dormant in webhook mode", async ({ gateway, upstream }) => {
    const source = await gateway.source({ proxy: { target_url: upstream.origin } })
    expect(source.config).toMatchObject({
      mode: "webhook",
      proxy: {
        enabled: false,
        target_url: upstream.origin,
        path_forwarding: true,
        query_forwarding: true,
        timeout_ms: 10_000,
        capture_response_bytes: 65_536
      }
    })
    const enabled = await gateway.api("PATCH", `/sources/${source.id}`, { config: { mode: "proxy" } })
    expect(enabled.config.proxy).toEqual({ ...source.config.proxy, enabled: true })
  })
})

describe("a gateway that may not reach its own network", () => {
  it("calls no upstream there, by address, by name or by number, and tells nobody what is there", async ({
    upstream
  }) => {
    const closed = await Gateway.start({ TIDEGATE_EGRESS_ALLOW: "203.0.113.0/24" })
    try {
      const port = new URL(upstream.origin).port
      for (const host of ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "169.254.169.254"]) {
        const source = await closed.source({ mode: "proxy", proxy: { target_url: `http://${host}:${port}` } })
        const answer = await request(closed.port, { path: `/e/${source.id}`, body: "{}" })
        expect([host, answer.status, JSON.parse(answer.body).code]).toEqual([host, 502, "UPSTREAM_ERROR"])
        const exchange = await closed.eventually("the exchange", async () => {
          const { proxy_exchange } = await closed.api("GET", `/requests/${idOf(answer)}`)
          return proxy_exchange
        })
        expect([host, exchange.error_code]).toEqual([host, "TARGET_NOT_ALLOWED"])
      }
      expect(upstream.received).toEqual([])
    } finally {
      await closed.close()
    }
  })
})
