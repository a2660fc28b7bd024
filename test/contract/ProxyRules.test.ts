import { describe, expect } from "vitest"
import { Gateway } from "../support/Gateway.ts"
import { request } from "../support/RawHttp.ts"
import type { Row } from "../support/sql.ts"
import { it as proxyingIt, idOf } from "./proxying.ts"

/** What a source in proxy mode keeps, and what goes before its upstream: contract 2.5. */

/** Some cut its way to the database. */
const it = proxyingIt.extend("settings", { scope: "file" }, {}).extend("isLinked", { scope: "file" }, true)

describe("Stored proxy exchange", () => {
  it("A stored proxy exchange is shown in full with its request and in the trace", async ({
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
    expect(exchange.response_headers?.["x-a"]).toEqual(["1", "2"])
    expect(Date.parse(exchange.responded_at!) - Date.parse(exchange.started_at)).toBe(exchange.response_latency)

    const trace = await gateway.traced(idOf(answer))
    expect(trace.proxy_exchange).toEqual(exchange)
    expect(trace.counts).toMatchObject({ events: 1, proxy_exchanges: 1 })
    expect(trace.events[0]!.connection_id).toBe(connection.id)
    expect(trace.timeline.find((item) => item.kind === "proxy_exchange")).toMatchObject({
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
    it(`The caller gets all of ${size} bytes, and with a limit of ${limit} the exchange keeps ${kept}`, async ({
      exchangeOf,
      proxying,
      send,
      upstream
    }) => {
      upstream.reply = (response) => void response.end("x".repeat(size))
      const answer = await send(await proxying({ capture_response_bytes: limit }))
      expect(answer.body.length).toBe(size)
      const exchange = await exchangeOf(idOf(answer))
      expect([exchange.response_body?.length, exchange.response_body_truncated]).toEqual([kept, size > kept])
    })
  }
})

describe("Gateway rules before the upstream", () => {
  it("A refused request never reaches the upstream", async ({ exchangeOf, gateway, proxying, send, upstream }) => {
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

  it("A provider's handshake is answered by the gateway and not by the upstream", async ({
    gateway,
    send,
    upstream
  }) => {
    const source = await gateway.api("POST", "/sources", {
      name: gateway.name("source"),
      type: "DROPBOX",
      config: { auth: { secret: "the secret" }, mode: "proxy", proxy: { target_url: upstream.origin } }
    })
    const answer = await send(source, { method: "GET", suffix: "?challenge=hello" })
    expect([answer.status, answer.body]).toEqual([200, "hello"])
    expect(upstream.received).toEqual([])
  })

  it("A request is stored before the upstream receives it", async ({ gateway, proxying, send, upstream }) => {
    const source = await proxying()
    const seen: Array<ReadonlyArray<Row>> = []
    upstream.reply = async (response, { headers }) => {
      seen.push(await gateway.sql("select id, status from requests where id = $1", [headers["x-gateway-request-id"]]))
      response.end("seen")
    }
    const answers = await Promise.all(Array.from({ length: 10 }, () => send(source)))
    expect(seen.map((rows) => rows.map(({ status }) => status))).toEqual(answers.map(() => ["accepted"]))
    expect(new Set(seen.map(([row]) => row!["id"]))).toEqual(new Set(answers.map(idOf)))
  })

  it("Without the database the upstream receives nothing", async ({ gateway, proxying, send, upstream }) => {
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

  it("Connections of a proxy source are routed without waiting for a slow upstream", async ({
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
    const delivered = async (): Promise<void> => {
      expect((await target.next())[0]!.body.toString()).toBe("beside")
      expect(target.received.length).toBe(1)
    }
    const [answer] = await Promise.all([send(source, { body: "beside" }), delivered().finally(release)])
    expect(answer.body).toBe("at last")
    const [row] = await gateway.requests(source.id)
    expect(row).toMatchObject({ events_count: 1, ignored_count: 1 })
  })

  it("A change of the proxy mode applies from the next request on", async ({ gateway, proxying, send, upstream }) => {
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

  it("A slow upstream of one caller does not delay others", async ({ gateway, proxying, send, upstream }) => {
    const held: Array<() => void> = []
    upstream.reply = (response) => void held.push(() => response.end("late"))
    const slow = await proxying({ timeout_ms: 30_000 })
    let answered = 0
    const waiting = Array.from({ length: 100 }, () => send(slow).finally(() => answered++))
    const others = async (): Promise<void> => {
      await gateway.eventually("all hundred wait", async () => (upstream.received.length >= 100 ? true : null))
      const source = await gateway.source()
      for (let i = 0; i < 10; i++) expect((await send(source)).status).toBe(200)
      // They came later, and are answered first.
      expect(answered).toBe(0)
      for (const answer of held) answer()
    }
    const [answers] = await Promise.all([Promise.all(waiting), others()])
    expect(new Set(answers.map(({ body, status }) => `${status} ${body}`))).toEqual(new Set(["200 late"]))
  })
})

describe("Proxy settings", () => {
  const wrong: ReadonlyArray<readonly [name: string, config: object, path: string]> = [
    ["no target", { mode: "proxy" }, "config.proxy"],
    ["an empty proxy", { mode: "proxy", proxy: {} }, "config.proxy"],
    ["a target that is not a URL", { proxy: { target_url: "example.com" } }, "config.proxy.target_url"],
    ["a target with another scheme", { proxy: { target_url: "ftp://example.com" } }, "config.proxy.target_url"],
    ["a user in the URL", { proxy: { target_url: "http://a:b@example.com" } }, "config.proxy.target_url"],
    ["a fragment in the URL", { proxy: { target_url: "http://example.com/#a" } }, "config.proxy.target_url"],
    [
      "a timeout of 999 ms",
      { proxy: { target_url: "http://example.com", timeout_ms: 999 } },
      "config.proxy.timeout_ms"
    ],
    [
      "a timeout of 30,001 ms",
      { proxy: { target_url: "http://example.com", timeout_ms: 30_001 } },
      "config.proxy.timeout_ms"
    ],
    [
      "a capture of 65,537 bytes",
      { proxy: { target_url: "http://example.com", capture_response_bytes: 65_537 } },
      "config.proxy.capture_response_bytes"
    ],
    ["an unknown mode", { mode: "mirror" }, "config.mode"],
    [
      "a mode and a switch that disagree",
      { mode: "webhook", proxy: { enabled: true, target_url: "http://example.com" } },
      "config.proxy.enabled"
    ]
  ]
  for (const [name, config, path] of wrong) {
    it(`Proxy settings are refused: ${name}`, async ({ gateway }) => {
      const { body, status } = await gateway.call("POST", "/sources", { name: gateway.name("source"), config })
      expect([status, body.code]).toEqual([400, "VALIDATION_ERROR"])
      expect(body.data.fields).toContainEqual(expect.objectContaining({ path }))
    })
  }

  it("Proxy settings get their defaults and are kept in webhook mode", async ({ gateway, upstream }) => {
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

describe("Gateway without access to its own network", () => {
  it("A gateway without access to its own network calls no upstream there and reveals nothing about it", async ({
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
