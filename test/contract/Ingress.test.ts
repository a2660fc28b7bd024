import { createHmac, randomBytes } from "node:crypto"
import { gzipSync } from "node:zlib"
import { describe, expect } from "vitest"
import type { Source } from "../support/Contract.ts"
import { request, requestBytes, talk } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"

/** What a sender meets at an ingress URL: contract 2.6, byte for byte. */

const url = (source: Source): string => `/e/${source.id}`
const mebibytes = (n: number): number => n * 1024 * 1024

const it = gatewayIt.extend(
  "verified",
  ({ gateway }) =>
    async (
      config: Record<string, unknown>,
      headers: ReadonlyArray<readonly [string, string]>,
      body: Uint8Array | string = "{}",
      query = ""
    ): Promise<void> => {
      const source = await gateway.source(config)
      const answer = await request(gateway.port, { path: url(source) + query, headers, body })
      expect([answer.status, (await gateway.requests(source.id))[0].verified]).toEqual([200, true])
    }
)

describe("Order of the ingress checks", () => {
  /** Everything is wrong with a request; one after the other is put right. */
  it("Ingress checks source, state, method, size and verification in this order", async ({ gateway }) => {
    const source = await gateway.source({
      allowed_http_methods: ["PUT"],
      auth_type: "API_KEY",
      auth: { header_key: "x-api-key", api_key: "sender-key" }
    })
    await gateway.api("PUT", `/sources/${source.id}/disable`)
    const tooLong = ["Content-Length", String(mebibytes(10) + 1)] as const
    const send = (method: string, length: boolean, key: boolean, path = url(source)) =>
      request(gateway.port, {
        method,
        path,
        headers: [...(length ? [tooLong] : []), ...(key ? [["X-Api-Key", "sender-key"] as const] : [])],
        ...(length ? {} : { body: "{}" })
      })

    const unknown = await send("POST", true, false, "/e/src_00000000000000000000000000")
    expect([unknown.status, JSON.parse(unknown.body).code]).toEqual([404, "NOT_FOUND"])
    expect((await send("POST", true, false)).status).toBe(403)
    await gateway.api("PUT", `/sources/${source.id}/enable`)
    const method = await send("POST", true, false)
    expect([method.status, method.headers["allow"]]).toEqual([405, "PUT"])
    expect((await send("PUT", true, false)).status).toBe(413)
    expect((await send("PUT", false, false)).status).toBe(401)
    expect((await send("PUT", false, true)).status).toBe(200)

    const stored = await gateway.requests(source.id)
    expect(stored.map((row) => [row.status, row.rejection_cause, row.verified, row.method])).toEqual([
      ["rejected", "SOURCE_DISABLED", false, "POST"],
      ["rejected", "SOURCE_METHOD_NOT_ALLOWED", false, "POST"],
      ["rejected", "PAYLOAD_TOO_LARGE", false, "PUT"],
      ["rejected", "SOURCE_AUTH_FAILED", false, "PUT"],
      ["accepted", null, true, "PUT"]
    ])
    expect(stored[2].body).toBeNull()
    expect(stored[2].body_size).toBe(mebibytes(10) + 1)
    expect(Buffer.from(stored[3].body).toString()).toBe("{}")
  })

  it("An ingress error has the usual shape of errors", async ({ gateway }) => {
    const answer = await request(gateway.port, { path: "/e/nowhere", body: "{}" })
    expect(answer.headers["content-type"]).toContain("application/json")
    expect(JSON.parse(answer.body)).toEqual({
      error: "Not found",
      code: "NOT_FOUND",
      status: 404,
      message: expect.any(String)
    })
  })

  it("An accepted request is answered with its id and can be read", async ({ gateway }) => {
    const source = await gateway.source()
    const answer = await request(gateway.port, { path: url(source), body: "{}" })
    expect(answer.status).toBe(200)
    const body = JSON.parse(answer.body)
    expect(body).toEqual({ ok: true, queued: true, transport: "queue", request_id: expect.stringMatching(/^req_/) })
    expect(await gateway.api("GET", `/requests/${body.request_id}`)).toMatchObject({
      id: body.request_id,
      status: "accepted",
      verified: false,
      rejection_cause: null,
      events_count: 0,
      source_id: source.id
    })
  })

  it("A body that is invalid JSON is accepted as text", async ({ gateway }) => {
    const source = await gateway.source()
    const answer = await request(gateway.port, {
      path: url(source),
      headers: [["Content-Type", "application/json"]],
      body: '{"cut'
    })
    expect(answer.status).toBe(200)
    const { data } = await gateway.api("GET", `/requests/${JSON.parse(answer.body).request_id}`)
    expect([data?.body, data?.encoding]).toEqual(['{"cut', "text"])
  })
})

describe("Bodies", () => {
  const allBytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
  const bodies: Readonly<Record<string, Buffer>> = {
    "all byte values": allBytes,
    "random bytes": randomBytes(100_000),
    "an empty body": Buffer.alloc(0),
    "JSON with odd spacing and numbers": Buffer.from('{ "a" : 1.0e0,\t"a":2, "ü":"\\u00fc" }\n'),
    "invalid UTF-8": Buffer.from([0xc3, 0x28, 0xa0, 0xa1, 0x00, 0xff]),
    "a byte order mark": Buffer.from("\ufeff{}"),
    "10 MiB": randomBytes(mebibytes(10))
  }
  for (const [name, body] of Object.entries(bodies)) {
    it(`Bodies arrive unchanged at the target: ${name}`, async ({ gateway, target }) => {
      const { source } = await gateway.route(target)
      expect((await request(gateway.port, { path: url(source), body })).status).toBe(200)
      const [delivery] = await target.next()
      expect(delivery!.body.equals(body)).toBe(true)
      expect(delivery!.headers["content-length"]).toBe(String(body.length))
      const [stored] = await gateway.requests(source.id)
      expect(Buffer.from(stored.body).equals(body)).toBe(true)
    })
  }

  it("A compressed body stays compressed and keeps its content-encoding", async ({ gateway, target }) => {
    const { source } = await gateway.route(target)
    const body = gzipSync('{"a":1}')
    const headers = [
      ["Content-Type", "application/json"],
      ["Content-Encoding", "gzip"]
    ] as const
    expect((await request(gateway.port, { path: url(source), headers, body })).status).toBe(200)
    const [delivery] = await target.next()
    expect(delivery!.body.equals(body)).toBe(true)
    expect(delivery!.headers["content-encoding"]).toBe("gzip")
  })

  it("A chunked body arrives complete and with a length", async ({ gateway, target }) => {
    const { source } = await gateway.route(target)
    const parts = [
      `POST ${url(source)} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n`,
      "5;name=value\r\nhello\r\n",
      "1\r\n \r\n",
      "5\r\nworld\r\n0\r\nx-sum: 1\r\n\r\n"
    ]
    expect((await talk(gateway.port, parts, { answers: 1, pause: 5 })).final.status).toBe(200)
    const [delivery] = await target.next()
    expect(delivery!.body.toString()).toBe("hello world")
    expect(delivery!.headers["content-length"]).toBe("11")
    expect(delivery!.headers).not.toHaveProperty("transfer-encoding")
    expect(delivery!.headers).not.toHaveProperty("trailer")
    expect(delivery!.headers).not.toHaveProperty("x-sum")
  })

  for (const framing of ["length", "chunks"]) {
    it(`A body above 10 MiB framed by ${framing} is refused with an answer`, async ({ gateway, target }) => {
      const { source } = await gateway.route(target)
      const body = Buffer.alloc(mebibytes(10) + 1, "x")
      const head = `POST ${url(source)} HTTP/1.1\r\nHost: x\r\n`
      const parts =
        framing === "length"
          ? [`${head}Content-Length: ${body.length}\r\n\r\n`, body]
          : [`${head}Transfer-Encoding: chunked\r\n\r\n`, `${body.length.toString(16)}\r\n`, body, "\r\n0\r\n\r\n"]
      const { final } = await talk(gateway.port, parts, { answers: 1 })
      expect([final.status, JSON.parse(final.body).code]).toEqual([413, "PAYLOAD_TOO_LARGE"])
      expect(final.headers["connection"]).toBe("close")
      const [stored, ...more] = await gateway.requests(source.id)
      expect(stored).toMatchObject({ rejection_cause: "PAYLOAD_TOO_LARGE", body: null, events_count: 0 })
      expect(stored.body_size).toBeGreaterThan(mebibytes(10))
      expect(more).toEqual([])
    })
  }
})

describe("Stored request", () => {
  it("A stored request has its method, path, query, headers and client address", async ({ gateway }) => {
    const source = await gateway.source()
    const answer = await request(gateway.port, {
      method: "PATCH",
      path: `${url(source)}/a%2Fb//c/%zz?x=1&x=2&y=%20+&=&z`,
      headers: [
        ["X-Twice", "1"],
        ["x-twice", "2"],
        ["X-Latin", "caf\xe9"],
        ["X-Empty", ""],
        ["Content-Type", "text/plain"]
      ],
      body: "text"
    })
    const stored = await gateway.api("GET", `/requests/${JSON.parse(answer.body).request_id}`)
    expect(stored.data).toMatchObject({
      method: "PATCH",
      path: "/a%2Fb//c/%zz",
      query: "x=1&x=2&y=%20+&=&z",
      parsed_query: { x: ["1", "2"], y: "  ", "": "", z: "" },
      body: "text",
      content_type: "text/plain",
      size_bytes: 4,
      headers: { "x-twice": ["1", "2"], "x-latin": "caf\xe9", "x-empty": "" }
    })
    const [row] = await gateway.requests(source.id)
    expect(row.original_ip).toBe("127.0.0.1")
  })

  const externalIds: ReadonlyArray<
    readonly [name: string, headers: ReadonlyArray<readonly [string, string]>, id: unknown]
  > = [
    ["no id", [["X-Other", "x"]], null],
    ["webhook-id", [["Webhook-Id", "msg_1"]], "msg_1"],
    ["a provider's delivery id", [["X-GitHub-Delivery", "72d3162e"]], "72d3162e"],
    [
      "the most specific of several",
      [
        ["Idempotency-Key", "i"],
        ["X-Request-Id", "r"],
        ["Svix-Id", "s"]
      ],
      "s"
    ],
    ["a very long id, cut", [["X-Request-Id", "x".repeat(400)]], "x".repeat(255)],
    [
      "an empty id, ignored",
      [
        ["Webhook-Id", ""],
        ["X-Request-Id", "r"]
      ],
      "r"
    ]
  ]
  for (const [name, headers, id] of externalIds) {
    it(`A stored request has the sender's id: ${name}`, async ({ gateway }) => {
      const source = await gateway.source()
      await request(gateway.port, { path: url(source), headers, body: "{}" })
      expect((await gateway.requests(source.id))[0].external_id).toBe(id)
    })
  }
})

describe("Methods", () => {
  it("A source accepts all methods but GET and HEAD by default", async ({ gateway }) => {
    const source = await gateway.source()
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
      expect((await request(gateway.port, { method, path: url(source), body: "{}" })).status).toBe(200)
    }
    for (const method of ["GET", "HEAD"]) {
      const answer = await request(gateway.port, { method, path: url(source) })
      expect([answer.status, answer.headers["allow"]]).toEqual([405, "POST, PUT, PATCH, DELETE"])
    }
  })

  it("A source can accept GET and HEAD, and HEAD is answered without a body", async ({ gateway }) => {
    const source = await gateway.source({ allowed_http_methods: ["GET", "HEAD"] })
    expect((await request(gateway.port, { method: "GET", path: url(source) })).status).toBe(200)
    const { answers } = await talk(
      gateway.port,
      [
        requestBytes({ method: "HEAD", path: url(source), keepAlive: true }),
        requestBytes({ method: "HEAD", path: url(source) })
      ],
      { head: true }
    )
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect(Number(answers[0]!.headers["content-length"])).toBeGreaterThan(0)
    expect((await gateway.requests(source.id)).map((row) => row.method)).toEqual(["GET", "HEAD", "HEAD"])
  })
})

describe("Verification over HTTP", () => {
  it("Ingress verifies BASIC_AUTH", ({ verified }) =>
    verified({ auth_type: "BASIC_AUTH", auth: { username: "ü", password: "p:w" } }, [
      ["Authorization", `basic ${Buffer.from("ü:p:w").toString("base64")}`]
    ]))
  it("Ingress verifies an API_KEY in a header", ({ verified }) =>
    verified({ auth_type: "API_KEY", auth: { header_key: "X-Sender-Key", api_key: "k e y" } }, [
      ["x-sender-key", "k e y"]
    ]))
  it("Ingress verifies an API_KEY in the query", ({ verified }) =>
    verified({ auth_type: "API_KEY", auth: { query_key: "key", api_key: "a+b&c" } }, [], "{}", "?key=a%2Bb%26c"))
  it("Ingress verifies an HMAC over the raw bytes", ({ verified }) => {
    const body = randomBytes(5_000)
    const signature = createHmac("sha512", "s").update(body).digest("base64")
    return verified(
      {
        auth_type: "HMAC",
        auth: { webhook_secret_key: "s", algorithm: "sha512", encoding: "base64", header_key: "X-Sig", prefix: "v=" }
      },
      [["x-sig", `v=${signature}`]],
      body
    )
  })
  it("Ingress verifies an HMAC with a timestamp", ({ verified }) => {
    const seconds = String(Math.floor(Date.now() / 1000) - 200)
    const signature = createHmac("sha256", "s").update(`${seconds}.{}`).digest("hex")
    return verified({ auth_type: "HMAC", auth: { webhook_secret_key: "s", timestamp_header: "x-time" } }, [
      ["X-Time", seconds],
      ["X-Signature", signature]
    ])
  })
  it("A changed source secret applies from the next request on", async ({ gateway }) => {
    const source = await gateway.source({ auth_type: "API_KEY", auth: { api_key: "first-key" } })
    const send = async (key: string) =>
      (await request(gateway.port, { path: url(source), headers: [["X-Api-Key", key]], body: "{}" })).status
    expect(await send("first-key")).toBe(200)
    await gateway.api("PATCH", `/sources/${source.id}`, {
      config: { auth_type: "API_KEY", auth: { api_key: "second-key" } }
    })
    expect([await send("first-key"), await send("second-key")]).toEqual([401, 200])
  })
})

describe("Connections of senders", () => {
  it("A rejected request keeps the connection usable for the next one", async ({ gateway }) => {
    const source = await gateway.source()
    const { answers } = await talk(
      gateway.port,
      [
        requestBytes({ method: "GET", path: url(source), body: "thrown away", keepAlive: true }),
        requestBytes({ path: "/e/nowhere", body: "thrown away as well", keepAlive: true }),
        requestBytes({ path: url(source), body: "{}" })
      ],
      { pause: 30 }
    )
    expect(answers.map(({ status }) => status)).toEqual([405, 404, 200])
  })

  it("Pipelined requests are answered in their order", async ({ gateway }) => {
    const source = await gateway.source()
    const bodies = Array.from({ length: 20 }, (_, i) => `body ${i}`)
    const all = Buffer.concat(
      bodies.map((body, i) => requestBytes({ path: `${url(source)}/${i}`, body, keepAlive: i < bodies.length - 1 }))
    )
    const { answers } = await talk(gateway.port, [all], { answers: bodies.length })
    const rows = new Map((await gateway.requests(source.id)).map((row) => [row.id, row]))
    const inOrder = answers.map(({ body }) => rows.get(JSON.parse(body).request_id))
    expect(inOrder.map((row) => [row.path, Buffer.from(row.body).toString()])).toEqual(
      bodies.map((body, i) => [`/${i}`, body])
    )
  })

  it("A request whose sender disconnects within the body is not stored", async ({ gateway }) => {
    const source = await gateway.source()
    const head = `POST ${url(source)} HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n`
    for (let i = 0; i < 10; i++) await talk(gateway.port, [head, "x".repeat(50_000)], { cut: true, pause: 5 })
    // Stored after all those that could have been.
    expect((await request(gateway.port, { path: url(source), body: "whole" })).status).toBe(200)
    const stored = await gateway.requests(source.id)
    expect(stored.map((row) => Buffer.from(row.body).toString())).toEqual(["whole"])
  })

  it("Slow senders do not delay others", async ({ gateway }) => {
    const source = await gateway.source()
    let answered = 0
    const others = Promise.withResolvers<void>()
    const bytes = `POST ${url(source)} HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nslow`
    // One half stops within its headers, the other within its body.
    const slow = Array.from({ length: 50 }, (_, i) => {
      const at = i % 2 === 0 ? bytes.indexOf("st: x") : -2
      const parts = [bytes.slice(0, at), bytes.slice(at)]
      return talk(gateway.port, parts, { answers: 1, pause: others.promise }).finally(() => answered++)
    })
    const served = async (): Promise<void> => {
      for (let i = 0; i < 20; i++)
        expect((await request(gateway.port, { path: url(source), body: "{}" })).status).toBe(200)
      // They came later, and are answered first.
      expect(answered).toBe(0)
    }
    const [ends] = await Promise.all([Promise.all(slow), served().finally(() => others.resolve())])
    expect(ends.map(({ final }) => final.status)).toEqual(slow.map(() => 200))
  })
})
