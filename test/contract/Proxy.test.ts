import { randomBytes } from "node:crypto"
import { once } from "node:events"
import { createServer } from "node:net"
import type { AddressInfo } from "node:net"
import { gzipSync } from "node:zlib"
import { describe, expect } from "vitest"
import { freePort } from "../support/Ports.ts"
import { originWide } from "@tidegate/model/HeaderRules"
import { request, requestBytes, talk } from "../support/RawHttp.ts"
import { it, allMethods, idOf } from "./proxying.ts"

/** What a source in proxy mode answers: contract 2.5. */

describe("Upstream page in a browser", () => {
  it("An upstream's page cannot run scripts or change state of the origin", async ({ proxying, send, upstream }) => {
    upstream.reply = (response) => {
      response.writeHead(200, {
        "Content-Type": "text/html",
        "Content-Security-Policy": "script-src *",
        "Content-Security-Policy-Report-Only": "default-src *; report-uri https://evil.example",
        "X-Content-Type-Options": "none",
        "Set-Cookie": ["a=1; Path=/", "b=2"],
        "Service-Worker-Allowed": "/",
        "Clear-Site-Data": '"*"',
        "Strict-Transport-Security": "max-age=31536000; includeSubDomains",
        "Alt-Svc": 'h2="evil.example:443"',
        NEL: '{"report_to":"x","max_age":1}',
        "Report-To": '{"group":"x"}',
        "Reporting-Endpoints": 'x="https://evil.example"',
        "Origin-Agent-Cluster": "?1",
        "Accept-CH": "Sec-CH-UA-Model",
        "Speculation-Rules": '"/e/rules"',
        "Observe-Browsing-Topics": "?1",
        "Attribution-Reporting-Register-Source": "{}",
        "Attribution-Reporting-Register-OS-Trigger": '"https://evil.example"',
        "Shared-Storage-Write": "clear",
        "Ad-Auction-Allowed": "?1",
        "X-Own": "stays",
        "WWW-Authenticate": "Bearer"
      })
      response.end("<script>navigator.serviceWorker.register('sw.js')</script>")
    }
    const { body, headers } = await send(await proxying(), { method: "GET" })
    expect(body).toContain("<script>")
    expect(headers).toMatchObject({
      "content-security-policy": "sandbox",
      "x-content-type-options": "nosniff",
      "content-type": "text/html",
      "x-own": "stays",
      "www-authenticate": "Bearer"
    })
    for (const name in headers) expect([name, originWide.has(name)]).toEqual([name, false])
    expect(
      Object.keys(headers).filter((name) => /^(?:observe|attribution|shared-storage|ad-auction)-/.test(name))
    ).toEqual([])
    expect(headers).not.toHaveProperty("content-security-policy-report-only")
  })

  it("A request for a service worker script is refused and stored", async ({ gateway, proxying, send, upstream }) => {
    const source = await proxying()
    const answer = await send(source, { method: "GET", headers: [["Service-Worker", "script"]] })
    expect([answer.status, JSON.parse(answer.body).code]).toEqual([403, "SERVICE_WORKER_REFUSED"])
    expect(upstream.received).toEqual([])
    const [row] = await gateway.requests(source.id)
    expect([row.status, row.rejection_cause]).toEqual(["rejected", "SERVICE_WORKER_REFUSED"])
  })

  it("Every answer below an ingress URL is sandboxed", async ({ gateway, proxying, send }) => {
    const dead = await proxying({ target_url: `http://127.0.0.1:${await freePort()}` })
    const closed = await gateway.source({ auth_type: "API_KEY", auth: { header_key: "x", api_key: "sender-key" } })
    const bin = await gateway.call("POST", "/public-bins", {})
    const answers = {
      acknowledgement: await send(await gateway.source()),
      "custom response": await send(
        await gateway.source({ custom_response: { content_type: "xml", body: "<ok/>", rules: [] } })
      ),
      "dead upstream": await send(dead),
      "wrong credential": await send(closed),
      "unknown source": await request(gateway.port, { path: "/e/src_00000000000000000000000000" }),
      "no URL of a source": await request(gateway.port, { path: "/e/" }),
      bin: await request(gateway.port, { path: `/e/${bin.body.id}` }),
      "bad framing": await request(gateway.port, { path: "/e/x", headers: [["Host", "twice"]] }),
      handshake: await send(await gateway.api("POST", "/sources", { name: gateway.name("hello"), type: "SLACK" }), {
        headers: [["Content-Type", "application/json"]],
        body: '{"type":"url_verification","challenge":"<b>"}'
      })
    }
    for (const [name, { headers }] of Object.entries(answers)) {
      const policy = headers["content-security-policy"]
      expect([name, policy?.endsWith("sandbox"), headers["x-content-type-options"]]).toEqual([name, true, "nosniff"])
    }
  })
})

describe("Upstream answer", () => {
  it("The caller gets the upstream's status, headers and body unchanged", async ({ gateway, proxying, upstream }) => {
    const body = randomBytes(5_000)
    upstream.reply = (response) => {
      response.writeHead(418, {
        "Content-Type": "application/octet-stream",
        "X-Several": ["a=1", "b=2"],
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
    expect(response.headers.get("x-several")).toBe("a=1, b=2")
    expect(response.headers.get("x-upstream")).toBe("caf\xe9")
    expect(response.headers.get("etag")).toBe('"1"')
    expect(response.headers.get("x-hop")).toBeNull()
    expect(response.headers.get("keep-alive")).not.toBe("timeout=99")
  })

  it("Non-ASCII header values of an upstream are kept byte for byte, however late the body comes", async ({
    proxying,
    send,
    upstream
  }) => {
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

  it("The upstream gets method, body and headers as they came, except those of the connection", async ({
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
    it(`The method ${method} is passed to the upstream and its answer to the caller`, async ({
      proxying,
      send,
      upstream
    }) => {
      const answer = await send(await proxying(), {
        method,
        ...(method === "GET" || method === "HEAD" ? {} : { body: "x" })
      })
      expect([answer.status, answer.body]).toEqual([200, method === "HEAD" ? "" : "upstream"])
      expect(upstream.received.map((call) => call.method)).toEqual([method])
    })
  }

  it("HEAD keeps the content-length, 204 and 304 have no body, and the connection stays open", async ({
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

  it("A redirect of the upstream is passed to the caller", async ({ proxying, send, upstream }) => {
    upstream.reply = (response) => void response.writeHead(302, { location: "http://127.0.0.1:1/elsewhere" }).end()
    const answer = await send(await proxying())
    expect([answer.status, answer.headers["location"]]).toEqual([302, "http://127.0.0.1:1/elsewhere"])
    expect(upstream.received.length).toBe(1)
  })

  it("A compressed body of the upstream stays compressed", async ({ gateway, proxying, upstream }) => {
    const packed = gzipSync("x".repeat(10_000))
    upstream.reply = (response) => void response.writeHead(200, { "content-encoding": "gzip" }).end(packed)
    const response = await fetch(`${gateway.origin}/e/${(await proxying()).id}`, { method: "POST" })
    expect(response.headers.get("content-encoding")).toBe("gzip")
    expect(await response.text()).toBe("x".repeat(10_000))
  })

  it("A request body of 10 MiB and an answer of 24 MiB pass through a proxy source completely", async ({
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
    expect(Buffer.from(exchange.response_body!, "base64").equals(large.subarray(0, 1_000))).toBe(true)
  })

  it("A source in proxy mode does not use its custom response", async ({ gateway, proxying, send }) => {
    const source = await proxying({}, { custom_response: { content_type: "text", body: "custom" } })
    expect((await send(source)).body).toBe("upstream")
    await gateway.api("PATCH", `/sources/${source.id}`, { config: { mode: "webhook" } })
    expect((await send(source)).body).toBe("custom")
  })
})

describe("Paths and queries of a proxy source", () => {
  const table: ReadonlyArray<readonly [proxy: object, base: string, suffix: string, called: string]> = [
    [{}, "", "", "/"],
    [{}, "/base", "/orders/1?a=1&a=2", "/base/orders/1?a=1&a=2"],
    [{}, "/base/?k=v", "/a%2Fb//c?x=%20+", "/base/a%2Fb//c?k=v&x=%20+"],
    [{ path_forwarding: false }, "/base", "/orders?a=1", "/base?a=1"],
    [{ query_forwarding: false }, "/base?k=v", "/orders?a=1", "/base/orders?k=v"],
    [{ path_forwarding: false, query_forwarding: false }, "/base?k=v", "/orders?a=1", "/base?k=v"]
  ]
  for (const [proxy, base, suffix, called] of table) {
    it(`A proxy source with ${JSON.stringify(proxy)} and base "${base}" maps "${suffix}" to ${called}`, async ({
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

  it("A path that would leave the upstream's path is not sent", async ({ exchangeOf, proxying, send, upstream }) => {
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

describe("Streamed upstream answers", () => {
  it("The caller gets the beginning of an answer before the upstream has ended it", async ({
    ask,
    proxying,
    upstream
  }) => {
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

  it("Server-sent events are passed on one by one, and the headers before the first", async ({
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

  it("When the caller disconnects, the upstream call is aborted and the exchange records it", async ({
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

describe("Failing upstream", () => {
  it("An upstream that does not answer in time results in 504", async ({ exchangeOf, proxying, send, upstream }) => {
    upstream.reply = () => undefined
    const source = await proxying({ timeout_ms: 1_000 })
    const startedAt = performance.now()
    const answer = await send(source)
    const waited = performance.now() - startedAt
    expect([answer.status, JSON.parse(answer.body).code]).toEqual([504, "UPSTREAM_TIMEOUT"])
    expect(waited).toBeGreaterThan(950)
    // Not the 10 s of a source that says nothing of it.
    expect(waited).toBeLessThan(10_000)
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

  it("An unreachable upstream results in 502, and the request is stored and routed", async ({
    exchangeOf,
    gateway,
    proxying,
    send,
    target
  }) => {
    const source = await proxying({ target_url: `http://127.0.0.1:${await freePort()}/secret-path` })
    await gateway.connection(source, await gateway.destination({ url: target.origin }))
    const answer = await send(source, { body: "kept" })
    expect([answer.status, JSON.parse(answer.body).code]).toEqual([502, "UPSTREAM_ERROR"])
    expect(answer.body).not.toMatch(/127\.0\.0\.1|secret-path/)
    expect((await target.next())[0]!.body.toString()).toBe("kept")
    expect(await exchangeOf(idOf(answer))).toMatchObject({ error_code: "CONNECTION_REFUSED", response_status: null })
  })

  for (const [name, bytes] of [
    ["text that is not HTTP", "220 smtp ready\r\n"],
    ["a connection that ends without an answer", ""]
  ] as const) {
    it(`A broken upstream answer results in 502: ${name}`, async ({ exchangeOf, proxying, send }) => {
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

  it("An upstream answer that breaks off breaks off for the caller too", async ({
    ask,
    exchangeOf,
    proxying,
    upstream
  }) => {
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

  it("An upstream that stops within its answer does not hold the caller forever", async ({
    ask,
    exchangeOf,
    proxying,
    upstream
  }) => {
    upstream.reply = (response) => void response.writeHead(200).write("a part")
    const message = await ask(await proxying({ timeout_ms: 2_000 }))
    message.resume()
    const [error] = await once(message, "error")
    expect(error.code).toBe("ECONNRESET")
    expect(await exchangeOf(idOf(message))).toMatchObject({ response_status: 200, error_code: "TIMEOUT" })
  })
})
