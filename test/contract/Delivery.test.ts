import { createHmac } from "node:crypto"
import { Webhook } from "standardwebhooks"
import { describe, expect } from "vitest"
import type { Event, Source } from "../support/Contract.ts"
import { request, type RequestParts } from "../support/RawHttp.ts"
import type { Received } from "../support/Target.ts"
import { it as gatewayIt } from "../support/it.ts"

/** What arrives at a destination: contract 10. */

const it = gatewayIt
  /** Sends and gives the first delivery. */
  .extend(
    "deliver",
    ({ gateway, target }) =>
      async (source: Source, { path = "", ...parts }: Partial<RequestParts> = {}): Promise<Received> => {
        const answer = await request(gateway.port, { body: "{}", ...parts, path: `/e/${source.id}${path}` })
        expect(answer.status).toBe(200)
        const [delivery] = await target.next()
        return delivery!
      }
  )
  /** The latest event of a source. */
  .extend(
    "event",
    ({ gateway }) =>
      async ({ id }: Source): Promise<Event> =>
        (await gateway.api("GET", `/events?source_id=${id}&limit=1`)).models[0]!
  )
  .extend(
    "finished",
    ({ gateway }) =>
      (id: string): Promise<Event> =>
        gateway.eventually(
          "the event is finished",
          () => gateway.api("GET", `/events/${id}`),
          ({ status }) => ["SUCCESSFUL", "FAILED"].includes(status)
        )
  )

describe("Headers of a delivery", () => {
  it("A delivery has the headers that the gateway adds", async ({ deliver, event, gateway, target }) => {
    const { connection, destination, source } = await gateway.route(target, {
      rules: [{ type: "retry", count: 1, strategy: "linear", interval: 7_000 }]
    })
    const sentAt = Math.floor(Date.now() / 1_000)
    const delivery = await deliver(source)
    const { id, request_id } = await event(source)
    expect(delivery.headers).toMatchObject({
      "x-gateway-event-id": id,
      "x-gateway-request-id": request_id,
      "x-gateway-attempt-count": "1",
      "x-gateway-attempt-trigger": "INITIAL",
      "x-gateway-source-name": source.name,
      "x-gateway-connection-name": connection.name,
      "x-gateway-destination-name": destination.name,
      "x-gateway-verified": "false",
      "x-gateway-original-ip": "127.0.0.1",
      "idempotency-key": id,
      "user-agent": "event-gateway/1"
    })
    const willRetryAfter = Number(delivery.headers["x-gateway-will-retry-after"])
    expect(willRetryAfter).toBeGreaterThanOrEqual(5)
    expect(willRetryAfter).toBeLessThanOrEqual(9)
    const timestamp = Number(delivery.headers["x-gateway-timestamp"])
    expect(timestamp).toBeGreaterThanOrEqual(sentAt)
    expect(timestamp).toBeLessThanOrEqual(Date.now() / 1_000 + 1)
    for (const unsigned of ["x-gateway-signature", "webhook-id", "webhook-signature"]) {
      expect(delivery.headers).not.toHaveProperty(unsigned)
    }
  })

  it("A delivery does not announce a retry without a retry rule", async ({ deliver, gateway, target }) => {
    const { source } = await gateway.route(target)
    expect((await deliver(source)).headers).not.toHaveProperty("x-gateway-will-retry-after")
  })

  it("A resource name that a header cannot hold is percent-encoded", async ({ deliver, gateway, target }) => {
    const { id } = await gateway.source()
    const source = await gateway.api("PATCH", `/sources/${id}`, { name: "заказы → 1" })
    const destination = await gateway.destination({ url: target.origin })
    await gateway.connection(source, destination)
    expect((await deliver(source)).headers["x-gateway-source-name"]).toBe(encodeURIComponent("заказы → 1"))
  })

  it("A delivery keeps the sender's header values, their order and their non-ASCII bytes", async ({
    deliver,
    gateway,
    target
  }) => {
    const { source } = await gateway.route(target)
    const { headers } = await deliver(source, {
      headers: [
        ["X-Twice", "2"],
        ["X-Other", "a, b"],
        ["x-twice", "1"],
        ["X-Latin", "caf\xe9 \xff"],
        ["X-Empty", ""],
        ["Content-Type", 'Text/X; Charset="a b"'],
        ["Authorization", "Bearer of-the-sender"],
        ["Cookie", "a=1; b=2"],
        ["Accept-Encoding", "gzip"],
        ["constructor", "c"],
        ["__proto__", "p"],
        ["tostring", "t"]
      ]
    })
    expect({ ...headers }).toMatchObject({
      "x-twice": ["2", "1"],
      "x-other": "a, b",
      "x-latin": "caf\xe9 \xff",
      "x-empty": "",
      "content-type": 'Text/X; Charset="a b"',
      authorization: "Bearer of-the-sender",
      cookie: "a=1; b=2",
      "accept-encoding": "gzip",
      constructor: "c",
      tostring: "t"
    })
    expect(headers["__proto__"]).toBe("p")
  })

  it("A delivery omits the sender's connection headers and headers that only the gateway sets", async ({
    deliver,
    gateway,
    target
  }) => {
    const { source } = await gateway.route(target)
    const { headers, rawHeaders } = await deliver(source, {
      headers: [
        ["Connection", "close, X-Hop"],
        ["X-Hop", "1"],
        ["Keep-Alive", "timeout=5"],
        ["TE", "trailers"],
        ["Proxy-Authorization", "Basic eA=="],
        ["Proxy-Authenticate", "Basic"],
        ["Proxy-Connection", "close"],
        ["Trailer", "x-sum"],
        ["Host", "sender.test"],
        ["User-Agent", "the sender's"],
        ["X-Gateway-Event-Id", "evt_forged"],
        ["X-Gateway-Verified", "true"],
        ["X-Gateway-Signature", "v1=00"],
        ["X-Gateway-Anything", "1"]
      ]
    })
    for (const gone of [
      "x-hop",
      "keep-alive",
      "te",
      "proxy-authorization",
      "proxy-authenticate",
      "proxy-connection",
      "trailer",
      "x-gateway-signature",
      "x-gateway-anything"
    ]) {
      expect(headers).not.toHaveProperty(gone)
    }
    expect(headers["host"]).toBe(new URL(target.origin).host)
    expect(headers["user-agent"]).toBe("event-gateway/1")
    expect(headers["x-gateway-verified"]).toBe("false")
    expect(headers["x-gateway-event-id"]).toMatch(/^evt_[0-9a-z]{26}$/)
    const names = rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase())
    expect(names).toEqual([...new Set(names)])
  })

  it("Without a signature the sender's idempotency key and webhook headers are kept", async ({
    deliver,
    gateway,
    target
  }) => {
    const { source } = await gateway.route(target)
    const { headers } = await deliver(source, {
      headers: [
        ["Idempotency-Key", "of the sender"],
        ["Webhook-Id", "msg_1"],
        ["Webhook-Signature", "v1,AAAA"]
      ]
    })
    expect(headers).toMatchObject({
      "idempotency-key": "of the sender",
      "webhook-id": "msg_1",
      "webhook-signature": "v1,AAAA"
    })
  })

  it("The delivery of a verified request says that it was verified", async ({ deliver, gateway, target }) => {
    const { source } = await gateway.route(target, {
      source: { auth_type: "API_KEY", auth: { api_key: "sender-key" } }
    })
    const { headers } = await deliver(source, { headers: [["X-Api-Key", "sender-key"]] })
    expect(headers["x-gateway-verified"]).toBe("true")
  })
})

describe("Authentication of deliveries", () => {
  it("CUSTOM_HEADER replaces the sender's header", async ({ deliver, gateway, target }) => {
    const { source } = await gateway.route(target, {
      destination: { auth_type: "CUSTOM_HEADER", auth: { header_name: "Authorization", value: "Bearer of-the-target" } }
    })
    const { headers } = await deliver(source, { headers: [["Authorization", "Bearer of-the-sender"]] })
    expect(headers["authorization"]).toBe("Bearer of-the-target")
  })

  it("CUSTOM_HEADER replaces the gateway's header", async ({ deliver, gateway, target }) => {
    for (const name of ["user-agent", "idempotency-key"]) {
      target.reset()
      const { source } = await gateway.route(target, {
        destination: { auth_type: "CUSTOM_HEADER", auth: { header_name: name, value: "set" } }
      })
      expect((await deliver(source)).headers[name]).toBe("set")
    }
  })

  it("A disabled CUSTOM_HEADER is not sent", async ({ deliver, gateway, target }) => {
    const { source } = await gateway.route(target, {
      destination: { auth_type: "CUSTOM_HEADER", auth: { header_name: "X-Token", value: "secret", disabled: true } }
    })
    expect((await deliver(source)).headers).not.toHaveProperty("x-token")
  })

  it("SERVICE_SIGNATURE is verified by the Standard Webhooks library and by the gateway's own header", async ({
    deliver,
    event,
    gateway,
    target
  }) => {
    const secret = await gateway.signingSecret()
    const { source } = await gateway.route(target, { destination: { auth_type: "SERVICE_SIGNATURE" } })
    const body = '{"type":"order.created","note":"ünï\\u00e7ode"}\n'
    const delivery = await deliver(source, {
      body,
      headers: [
        ["Webhook-Id", "forged"],
        ["Webhook-Timestamp", "1"],
        ["Webhook-Signature", "v1,AAAA"]
      ]
    })
    const { id } = await event(source)
    expect(delivery.headers["webhook-id"]).toBe(id)
    expect(delivery.headers["webhook-timestamp"]).toBe(delivery.headers["x-gateway-timestamp"])
    const webhook = new Webhook(secret, { format: "raw" })
    const signed = Object.fromEntries(
      ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) => [name, String(delivery.headers[name])])
    )
    expect(webhook.verify(delivery.body.toString(), signed)).toEqual(JSON.parse(body))
    expect(() => webhook.verify(`${delivery.body.toString()} `, signed)).toThrow("No matching signature found")
    expect(delivery.headers["x-gateway-signature"]).toBe(
      `v1=${createHmac("sha256", secret)
        .update(`${String(delivery.headers["x-gateway-timestamp"])}.`)
        .update(delivery.body)
        .digest("hex")}`
    )
  })

  it("The signature of a binary body is verified byte for byte", async ({ deliver, gateway, target }) => {
    const secret = await gateway.signingSecret()
    const { source } = await gateway.route(target, { destination: { auth_type: "SERVICE_SIGNATURE" } })
    const { body, headers } = await deliver(source, { body: Buffer.from(Array.from({ length: 256 }, (_, i) => i)) })
    const content = Buffer.concat([
      Buffer.from(`${String(headers["webhook-id"])}.${String(headers["webhook-timestamp"])}.`),
      body
    ])
    expect(headers["webhook-signature"]).toBe(`v1,${createHmac("sha256", secret).update(content).digest("base64")}`)
  })
})

describe("Request line of a delivery", () => {
  const urls: ReadonlyArray<readonly [destination: string, sent: string, received: string]> = [
    ["", "", "/"],
    ["", "/", "/"],
    ["", "/a/b?x=1", "/a/b?x=1"],
    ["/", "/a", "/a"],
    ["/base", "", "/base"],
    ["/base", "/a%2Fb/%C3%A9//c", "/base/a%2Fb/%C3%A9//c"],
    ["/base/", "/a", "/base/a"],
    ["/base", "?x=1&x=2&y=%20+%26&=&z", "/base?x=1&x=2&y=%20+%26&=&z"],
    ["/base?own=1", "/a?x=1", "/base/a?own=1&x=1"],
    ["/base?own=1", "", "/base?own=1"],
    ["/base", "/%zz/%", "/base/%zz/%"],
    ["/base?own=1", "/../../admin", "/base/admin?own=1"],
    ["/base", "/%2e%2E/.%2e/admin", "/base/admin"],
    ["/base", "/\\admin", "/base/%5Cadmin"],
    ["/base?own=1", "/a%23#?x", "/base/a%23%23?own=1&x"]
  ]
  for (const [destination, sent, received] of urls) {
    it(`A delivery joins path and query: ${sent === "" ? "nothing" : sent} after ${destination === "" ? "the origin" : destination}`, async ({
      deliver,
      gateway,
      target
    }) => {
      const { source } = await gateway.route(target, { destination: { url: target.origin + destination } })
      expect((await deliver(source, { path: sent })).url).toBe(received)
    })
  }

  it("A delivery has no path and query of the sender when path forwarding is disabled", async ({
    deliver,
    gateway,
    target
  }) => {
    const { source } = await gateway.route(target, {
      destination: { url: `${target.origin}/base?own=1`, path_forwarding_disabled: true }
    })
    expect((await deliver(source, { path: "/a?x=1" })).url).toBe("/base?own=1")
  })

  it("A delivery has the sender's method or the configured one", async ({ deliver, gateway, target }) => {
    const all = ["POST", "PUT", "PATCH", "DELETE", "GET", "HEAD"] as const
    const asSent = await gateway.route(target, { source: { allowed_http_methods: all } })
    const always = await gateway.route(target, {
      source: { allowed_http_methods: all },
      destination: { http_method: "PATCH" }
    })
    const seen: Array<readonly [string, string, string]> = []
    for (const method of all) {
      const body = method === "HEAD" || method === "GET" ? {} : { body: "x" }
      target.reset()
      const first = await deliver(asSent.source, { method, body: undefined, ...body } as Partial<RequestParts>)
      target.reset()
      const second = await deliver(always.source, { method, body: undefined, ...body } as Partial<RequestParts>)
      seen.push([method, first.method, second.method])
    }
    expect(seen).toEqual([
      ["POST", "POST", "PATCH"],
      ["PUT", "PUT", "PATCH"],
      ["PATCH", "PATCH", "PATCH"],
      ["DELETE", "DELETE", "PATCH"],
      ["GET", "POST", "PATCH"],
      ["HEAD", "POST", "PATCH"]
    ])
  })
})

describe("Retries", () => {
  it("A destination's own time-out ends a call, and the retry rule applies", async ({
    event,
    finished,
    gateway,
    target
  }) => {
    let isSilent = true
    target.reply = (response) => {
      if (!isSilent) response.end("ok")
      isSilent = false
    }
    const { source } = await gateway.route(target, {
      destination: { timeout_ms: 1_000 },
      // On a busy machine an answer may take longer than a second, too.
      rules: [{ type: "retry", count: 10, strategy: "linear", interval: 1_000 }]
    })
    expect((await request(gateway.port, { path: `/e/${source.id}`, body: "{}" })).status).toBe(200)
    const { id } = await event(source)
    expect((await finished(id)).status).toBe("SUCCESSFUL")
    const { models } = await gateway.api("GET", `/attempts?event_id=${id}`)
    const first = models.find(({ attempt_number }) => attempt_number === 1)
    expect(first).toMatchObject({ status: "FAILED", error_code: "TIMEOUT", response_status: null })
  })

  it("A retry repeats the body and the webhook-id, and counts the attempts", async ({
    deliver,
    event,
    finished,
    gateway,
    target
  }) => {
    const { source } = await gateway.route(target, {
      destination: { auth_type: "SERVICE_SIGNATURE" },
      rules: [{ type: "retry", count: 2, strategy: "linear", interval: 1_000 }]
    })
    target.reply = (response) => void response.writeHead(target.received.length < 3 ? 500 : 204).end()
    await deliver(source, { body: "again" })
    const { id } = await event(source)
    const deliveries = await target.next(3)
    expect(
      deliveries.map(({ body, headers }) => [
        body.toString(),
        headers["webhook-id"],
        headers["idempotency-key"],
        headers["x-gateway-event-id"],
        headers["x-gateway-attempt-count"],
        headers["x-gateway-attempt-trigger"]
      ])
    ).toEqual([
      ["again", id, id, id, "1", "INITIAL"],
      ["again", id, id, id, "2", "AUTOMATIC"],
      ["again", id, id, id, "3", "AUTOMATIC"]
    ])
    expect(deliveries[2]!.headers).not.toHaveProperty("x-gateway-will-retry-after")
    expect(await finished(id)).toMatchObject({ status: "SUCCESSFUL", attempts: 3, response_status: 204 })
  })

  it("A retry by hand is a new event with the webhook-id of the first one", async ({
    deliver,
    event,
    finished,
    gateway,
    target
  }) => {
    const { source } = await gateway.route(target, { destination: { auth_type: "SERVICE_SIGNATURE" } })
    await deliver(source, { body: "by hand" })
    const { id } = await event(source)
    await finished(id)
    const ids = [id]
    for (let round = 2; round <= 3; round++) {
      const { event_id, replay_event_id } = await gateway.api("POST", `/events/${ids.at(-1)!}/retry`)
      expect(event_id).toBe(ids.at(-1))
      ids.push(replay_event_id)
      const deliveries = await target.next(round)
      const { body, headers } = deliveries[round - 1]!
      expect(body.toString()).toBe("by hand")
      expect(headers).toMatchObject({
        "x-gateway-event-id": replay_event_id,
        "webhook-id": id,
        "x-gateway-attempt-count": "1",
        "x-gateway-attempt-trigger": "MANUAL"
      })
      await finished(replay_event_id)
    }
    expect(new Set(ids).size).toBe(3)
  })
})

describe("Outcomes of a delivery", () => {
  const answers: ReadonlyArray<readonly [status: number, headers: Record<string, string>, expected: string]> = [
    [200, {}, "SUCCESSFUL"],
    [299, {}, "SUCCESSFUL"],
    [301, { location: "/elsewhere" }, "FAILED"],
    [400, {}, "FAILED"],
    [410, {}, "FAILED"],
    [503, { "retry-after": "-1" }, "FAILED"]
  ]
  for (const [status, headers, expected] of answers) {
    it(`An attempt answered with ${status} makes the event ${expected}`, async ({
      deliver,
      event,
      finished,
      gateway,
      target
    }) => {
      target.reply = (response) => void response.writeHead(status, headers).end("the answer")
      // A failed attempt is retried only if the answer allows a retry.
      const rules = status === 410 ? [{ type: "retry", count: 3, interval: 1_000 } as const] : []
      const { source } = await gateway.route(target, { rules })
      await deliver(source)
      const { id } = await event(source)
      expect(await finished(id)).toMatchObject({
        status: expected,
        attempts: 1,
        response_status: status,
        error_code: expected === "FAILED" ? "BAD_RESPONSE" : null
      })
      const { models } = await gateway.api("GET", `/attempts?event_id=${id}`)
      expect(models).toHaveLength(1)
      expect(models[0]).toMatchObject({ body: "the answer", response_status: status, requested_url: target.origin })
      expect(target.received).toHaveLength(1)
    })
  }

  it("An attempt does not keep the destination's credential when the target sends it back", async ({
    deliver,
    event,
    finished,
    gateway,
    target
  }) => {
    const value = "a-credential-of-the-target"
    target.reply = (response, { headers }) =>
      void response
        .writeHead(400, { "x-you-sent": String(headers["x-token"]) })
        .end(JSON.stringify({ headers, error: `wrong token ${String(headers["x-token"])}` }))
    const { source } = await gateway.route(target, {
      destination: { auth_type: "CUSTOM_HEADER", auth: { header_name: "x-token", value } }
    })
    await deliver(source)
    const { id } = await event(source)
    await finished(id)
    expect(target.received[0]!.headers["x-token"]).toBe(value)
    const { models } = await gateway.api("GET", `/attempts?event_id=${id}`)
    expect(models[0]!.response_headers).toMatchObject({ "x-you-sent": "****rget" })
    expect(models[0]!.body).toContain("wrong token ****rget")
    const stored = await gateway.sql("select * from attempts where event_id = $1", [id])
    expect(stored).toHaveLength(1)
    expect(JSON.stringify(stored)).not.toContain(value)
    expect(Buffer.from(stored[0]!["body"] as Buffer).toString()).not.toContain(value)
  })

  it("An attempt keeps the first 64 KiB of an answer", async ({ deliver, event, finished, gateway, target }) => {
    target.reply = (response) => void response.writeHead(200).end("x".repeat(100_000))
    const { source } = await gateway.route(target)
    await deliver(source)
    const { id } = await event(source)
    expect((await finished(id)).status).toBe("SUCCESSFUL")
    const { models } = await gateway.api("GET", `/attempts?event_id=${id}`)
    expect(models[0]!.body).toBe("x".repeat(65_536))
  })

  it("A private address that is not allowed is never called", async ({ event, finished, gateway, target }) => {
    const { source } = await gateway.route(target, { destination: { url: "http://169.254.169.254/latest/meta-data" } })
    await request(gateway.port, { path: `/e/${source.id}`, body: "{}" })
    const found = await finished((await event(source)).id)
    expect([found.status, found.error_code]).toEqual(["FAILED", "TARGET_NOT_ALLOWED"])
  })
})

describe("MOCK_API", () => {
  it("A MOCK_API destination answers with 200 and an echo", async ({ event, finished, gateway }) => {
    const source = await gateway.source()
    await gateway.connection(source, await gateway.destination({ path: "/mock" }, "MOCK_API"))
    await request(gateway.port, { path: `/e/${source.id}/a?x=1`, headers: [["X-A", "1"]], body: "hello" })
    const { id } = await event(source)
    expect((await finished(id)).status).toBe("SUCCESSFUL")
    const [attempt] = (await gateway.api("GET", `/attempts?event_id=${id}`)).models
    expect(JSON.parse(attempt!.body!)).toMatchObject({
      method: "POST",
      path: "/mock/a",
      headers: { "x-a": "1", "x-gateway-event-id": id },
      body: "hello"
    })
  })

  it("A MOCK_API destination answers with the status in its path", async ({ event, finished, gateway }) => {
    const source = await gateway.source()
    const destination = await gateway.destination({}, "MOCK_API")
    await gateway.connection(source, destination)
    for (const [path, status, outcome] of [
      ["/status/204", 204, "SUCCESSFUL"],
      ["/deep/status/503", 503, "FAILED"],
      ["/status/999", 200, "SUCCESSFUL"]
    ] as const) {
      await request(gateway.port, { path: `/e/${source.id}${path}`, body: "{}" })
      const found = await finished((await event(source)).id)
      expect([found.response_status, found.status]).toEqual([status, outcome])
    }
  })
})
