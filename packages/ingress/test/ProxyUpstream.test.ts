import { describe, expect, it } from "@effect/vitest"
import { createHash } from "node:crypto"
import { once } from "node:events"
import { get, request as httpRequest } from "node:http"
import type { Socket } from "node:net"
import { buffer, json } from "node:stream/consumers"
import { gzipSync } from "node:zlib"
import { gate, httpTarget, rawTarget, speak, spoken, tcpTarget } from "../../egress/test/targets.ts"
import { openProxy, type ProxyOptions, requestId, untilClosed } from "./proxyHarness.ts"

interface Received {
  readonly method: string
  readonly url: string
  readonly headers: ReadonlyArray<string>
  readonly body: string
}

const echo = () =>
  httpTarget(async (request, response) => {
    const body = (await buffer(request)).toString("base64")
    response.setHeader("content-type", "application/json")
    response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.rawHeaders, body }))
  })

const valuesOf = (headers: ReadonlyArray<string>, name: string): ReadonlyArray<string> =>
  headers.filter((_, index) => index % 2 === 1 && headers[index - 1]!.toLowerCase() === name)

const errorBody = (status: number, error: string, code: string, message: string) => ({ error, code, status, message })

describe("Proxied request", () => {
  it.each(["POST", "PUT", "PATCH", "DELETE", "GET"])("Proxied %s request arrives unchanged", async (method) => {
    await using target = await echo()
    await using proxy = await openProxy(`${target.url}/base?key=1`)
    const body = Buffer.from(Array.from({ length: 256 }, (_, index) => index))
    const request = httpRequest(`${proxy.url}/a%20b/c?d=%26`, {
      method,
      headers: {
        "content-type": "application/x-thing",
        "content-length": body.length,
        "x-twice": ["1", "2"],
        authorization: "Bearer t",
        connection: "keep-alive, x-hop",
        "x-hop": "1",
        te: "trailers",
        "x-forwarded-for": "198.51.100.7",
        "x-latin": "caf\u00e9"
      }
    }).end(body)
    const [response] = await once(request, "response")
    const received = (await json(response)) as Received
    expect(received).toMatchObject({ method, url: "/base/a%20b/c?key=1&d=%26", body: body.toString("base64") })
    const expected: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
      ["host", [new URL(target.url).host]],
      ["content-length", ["256"]],
      ["content-type", ["application/x-thing"]],
      ["x-twice", ["1", "2"]],
      ["authorization", ["Bearer t"]],
      ["x-latin", ["caf\u00e9"]],
      ["x-hop", []],
      ["te", []],
      ["transfer-encoding", []],
      ["x-forwarded-for", ["198.51.100.7, 127.0.0.1"]],
      ["x-forwarded-proto", ["https"]],
      ["x-forwarded-host", ["hooks.example"]],
      ["x-gateway-request-id", [requestId]]
    ]
    for (const [name, values] of expected) expect([name, valuesOf(received.headers, name)]).toEqual([name, values])
    expect(response.headers["x-gateway-request-id"]).toBe(requestId)
    expect(await proxy.outcome()).toMatchObject({
      httpMethod: method,
      targetUrl: `${target.url}/base/a%20b/c?key=1&d=%26`,
      responseStatus: 200,
      errorCode: null
    })
  })

  it("Proxied request whose path leaves the target's path is refused and not sent", async () => {
    await using target = await echo()
    await using proxy = await openProxy(`${target.url}/base`)
    const caller = await proxy.call("GET /..%2fadmin HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
    const { text } = await untilClosed(caller)
    expect(text).toMatch(/^HTTP\/1\.1 400 /)
    expect(text).toContain('"code":"VALIDATION_ERROR"')
    expect(await proxy.outcome()).toMatchObject({
      responseStatus: null,
      errorCode: "PATH_NOT_ALLOWED",
      responseLatency: null
    })
    expect(target.connections()).toBe(0)
  })
})

describe("Proxied answer", () => {
  it("Proxied answer reaches the caller with its headers and every byte, and is recorded", async () => {
    const packed = gzipSync("a".repeat(10_000))
    await using target = await httpTarget((_, response) =>
      response
        .writeHead(418, {
          "content-encoding": "gzip",
          "content-length": packed.length,
          "set-cookie": ["a=1", "b=2"],
          "x-latin": "caf\u00e9",
          date: "Thu, 01 Jan 1970 00:00:00 GMT"
        })
        .end(packed)
    )
    await using proxy = await openProxy(target.url, { settings: { capture_response_bytes: 10 } })
    const before = Date.now()
    const [response] = await once(get(proxy.url), "response")
    expect((await buffer(response)).equals(packed)).toBe(true)
    expect(response.statusCode).toBe(418)
    expect(response.headers).toMatchObject({
      "content-encoding": "gzip",
      "content-length": String(packed.length),
      "set-cookie": ["a=1", "b=2"],
      "x-latin": "caf\u00e9",
      date: "Thu, 01 Jan 1970 00:00:00 GMT"
    })
    const outcome = await proxy.outcome()
    expect(outcome).toMatchObject({
      requestId,
      targetUrl: `${target.url}/`,
      httpMethod: "GET",
      responseStatus: 418,
      responseBodyTruncated: true,
      errorCode: null,
      errorText: null
    })
    expect(Buffer.from(outcome.responseBody!).equals(packed.subarray(0, 10))).toBe(true)
    expect(JSON.parse(outcome.responseHeaders!)).toMatchObject({ "set-cookie": ["a=1", "b=2"] })
    expect(outcome.startedAt).toBeGreaterThanOrEqual(before)
    expect(outcome.respondedAt).toBe(outcome.startedAt + outcome.responseLatency!)
    expect(outcome.createdAt).toBeGreaterThanOrEqual(outcome.respondedAt!)
    expect(outcome.createdAt).toBeLessThanOrEqual(Date.now() + 1)
    expect(proxy.leftOver).toEqual([])
  })

  /** All that a caller gets, without the date. */
  const answerTo = async (upstream: string, method = "GET", version = "1.1") => {
    await using target = await rawTarget((socket) => socket.end(upstream, "latin1"))
    await using proxy = await openProxy(target.url)
    const caller = await proxy.call(`${method} / HTTP/${version}\r\nhost: a\r\nconnection: close\r\n\r\n`)
    const { text, wasReset } = await untilClosed(caller)
    expect(wasReset).toBe(false)
    expect((await proxy.outcome()).errorCode).toBeNull()
    return text.replace(/Date: .*\r\n/i, "").replace(`x-gateway-request-id: ${requestId}\r\n`, "")
  }

  it.each([
    {
      name: "with a length keeps it",
      upstream: "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
      expected: "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nConnection: close\r\n\r\nok"
    },
    {
      name: "in chunks stays in chunks, and loses its trailers",
      upstream:
        "HTTP/1.1 200 OK\r\ntrailer: x-t\r\ntransfer-encoding: chunked\r\n\r\n2;ext=1\r\nok\r\n0\r\nx-t: 1\r\n\r\n",
      expected: "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    },
    {
      name: "that ends with its connection comes in chunks",
      upstream: "HTTP/1.1 200 OK\r\n\r\nok",
      expected: "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    },
    {
      name: "in chunks to a caller that knows none ends with the connection",
      upstream: "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
      version: "1.0",
      expected: "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok"
    },
    {
      name: "to HEAD keeps its length and has no body",
      upstream: "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n",
      method: "HEAD",
      expected: "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nConnection: close\r\n\r\n"
    },
    {
      name: "of 204 has neither length nor body",
      upstream: "HTTP/1.1 204 No Content\r\ncontent-length: 0\r\nx-a: 1\r\n\r\n",
      expected: "HTTP/1.1 204 No Content\r\nx-a: 1\r\nConnection: close\r\n\r\n"
    },
    {
      name: "of 304 has no body",
      upstream: "HTTP/1.1 304 Not Modified\r\netag: a\r\ncontent-length: 5\r\n\r\n",
      expected: "HTTP/1.1 304 Not Modified\r\netag: a\r\ncontent-length: 5\r\nConnection: close\r\n\r\n"
    },
    {
      name: "that redirects is not followed",
      upstream: "HTTP/1.1 302 Found\r\nlocation: http://10.0.0.1/\r\ncontent-length: 0\r\n\r\n",
      expected: "HTTP/1.1 302 Found\r\nlocation: http://10.0.0.1/\r\ncontent-length: 0\r\nConnection: close\r\n\r\n"
    },
    {
      name: "after interim answers arrives alone",
      upstream: "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
      expected: "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nConnection: close\r\n\r\nok"
    },
    {
      name: "loses the headers of its own connection",
      upstream:
        "HTTP/1.1 200 OK\r\nconnection: close, x-hop\r\nx-hop: 1\r\nkeep-alive: timeout=9\r\nproxy-authenticate: a\r\n" +
        "content-length: 2\r\n\r\nok",
      expected: "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nConnection: close\r\n\r\nok"
    }
  ])("Proxied answer $name", async ({ expected, method, upstream, version }) => {
    expect(await answerTo(upstream, method, version)).toBe(expected)
  })

  it("Proxied answer begins before its body arrives and continues while the upstream sends", async () => {
    const speaking = gate()
    await using target = await httpTarget(async (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders()
      await speaking.opened
      speak(response)
    })
    await using proxy = await openProxy(target.url, { settings: { timeout_ms: 2_000, capture_response_bytes: 20 } })
    const askedAt = performance.now()
    const response = await fetch(proxy.url)
    const beganMs = performance.now() - askedAt
    expect(response.headers.get("content-type")).toBe("text/event-stream")
    speaking.open()
    const events: Array<string> = []
    for await (const chunk of response.body!) events.push(Buffer.from(chunk).toString())
    // As they came: one by one, not all at the end.
    expect(events.length).toBeGreaterThan(6)
    expect(events.join("")).toBe(spoken)
    const outcome = await proxy.outcome()
    expect(outcome).toMatchObject({ errorCode: null, responseBodyTruncated: true })
    expect(outcome.createdAt - outcome.startedAt).toBeGreaterThan(2_000)
    // Up to the beginning of the answer, which the caller had before anything was said.
    expect(outcome.responseLatency).toBeLessThanOrEqual(Math.ceil(beganMs))
  })
})

describe("Proxy without an answer", () => {
  const expectFailure = async (
    url: string,
    expected: { readonly status: number; readonly body: unknown; readonly errorCode: string },
    options: ProxyOptions = {}
  ) => {
    await using proxy = await openProxy(url, options)
    const response = await fetch(proxy.url, { method: "POST", body: "x" })
    expect(response.status).toBe(expected.status)
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8")
    expect(response.headers.get("x-gateway-request-id")).toBe(requestId)
    expect(await response.json()).toEqual(expected.body)
    const outcome = await proxy.outcome()
    expect(outcome).toMatchObject({
      targetUrl: new URL(url).href,
      responseStatus: null,
      responseHeaders: null,
      responseBody: null,
      responseBodyTruncated: false,
      errorCode: expected.errorCode,
      respondedAt: null,
      responseLatency: null
    })
    return outcome.errorText
  }
  const unreachable = {
    status: 502,
    body: errorBody(502, "Bad gateway", "UPSTREAM_ERROR", "the upstream could not be reached, or its answer was broken")
  }

  it("Proxy answers 504 when the upstream does not answer in time", async () => {
    await using target = await tcpTarget((socket) => socket.resume())
    const body = errorBody(504, "Gateway timeout", "UPSTREAM_TIMEOUT", "the upstream did not answer in time")
    const settings = { timeout_ms: 150 }
    const text = await expectFailure(target.url, { status: 504, body, errorCode: "TIMEOUT" }, { settings })
    expect(text).toBe("no answer within 150 ms")
    await target.allClosed()
  })

  it("Proxy hides the address of an upstream that refuses connections from the caller but records it", async () => {
    const target = await tcpTarget(() => undefined)
    await target[Symbol.asyncDispose]()
    const text = await expectFailure(target.url, { ...unreachable, errorCode: "CONNECTION_REFUSED" })
    expect(text).toBe(`connect ECONNREFUSED 127.0.0.1:${target.port}`)
  })

  it("Proxy fails when the egress guard refuses the target", async () => {
    await expectFailure("http://10.0.0.1/internal", { ...unreachable, errorCode: "TARGET_NOT_ALLOWED" })
    await expectFailure("http://127.0.0.1:1/", { ...unreachable, errorCode: "TARGET_NOT_ALLOWED" }, { allow: [] })
  })

  it.each([
    ["no HTTP at all\r\n\r\n", "PROTOCOL_ERROR"],
    ["HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\nok", "PROTOCOL_ERROR"],
    ["HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok", "PROTOCOL_ERROR"],
    ["HTTP/1.1 200 OK\r\ncontent-le", "SOCKET_CLOSED"],
    [`HTTP/1.1 200 OK\r\n${`x: ${"a".repeat(1_000)}\r\n`.repeat(100)}\r\n`, "RESPONSE_TOO_LARGE"]
  ])("Proxy fails when the upstream's answer is malformed: %j gives %s", async (upstream, errorCode) => {
    await using target = await rawTarget((socket) => socket.end(upstream))
    await expectFailure(target.url, { ...unreachable, errorCode })
  })
})

describe("Interrupted proxied answer", () => {
  const heads = [
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n100\r\nhalf",
    "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf",
    "HTTP/1.1 200 OK\r\n\r\nhalf"
  ]

  it.each(heads)("Interrupted proxied answer never looks complete to the caller: %j", async (head) => {
    const seen = gate()
    await using target = await rawTarget((socket) => {
      socket.write(head)
      void seen.opened.then(() => socket.resetAndDestroy())
    })
    await using proxy = await openProxy(target.url)
    const response = await fetch(proxy.url)
    const reader = response.body!.getReader()
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe("half")
    seen.open()
    await expect(reader.read()).rejects.toThrow()
    const outcome = await proxy.outcome()
    expect(outcome).toMatchObject({ responseStatus: 200, errorCode: "CONNECTION_RESET", errorText: "read ECONNRESET" })
    expect(Buffer.from(outcome.responseBody!).toString()).toBe("half")
  })

  it.each(heads)("Interrupted proxied answer does not look complete to an HTTP/1.0 caller: %j", async (head) => {
    const seen = gate()
    await using target = await rawTarget((socket) => {
      socket.write(head)
      void seen.opened.then(() => socket.resetAndDestroy())
    })
    await using proxy = await openProxy(target.url)
    const caller = await proxy.call("GET / HTTP/1.0\r\n\r\n")
    const closed = untilClosed(caller)
    await once(caller, "data")
    seen.open()
    expect((await closed).wasReset).toBe(true)
  })

  it("Interrupted proxied answer after a timeout does not look complete to the caller", async () => {
    await using target = await rawTarget((socket) => socket.write(heads[1]!))
    await using proxy = await openProxy(target.url, { settings: { timeout_ms: 1_000 } })
    const response = await fetch(proxy.url)
    await expect(response.text()).rejects.toThrow()
    expect(await proxy.outcome()).toMatchObject({
      responseStatus: 200,
      errorCode: "TIMEOUT",
      errorText: "no more of the answer within 1000 ms"
    })
    await target.allClosed()
  })
})

describe("Caller of the proxy", () => {
  it("Caller that disconnects before the answer ends the upstream exchange", async () => {
    const reached = gate()
    await using target = await rawTarget(reached.open)
    await using proxy = await openProxy(target.url)
    const caller = await proxy.call("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    await reached.opened
    caller.destroy()
    expect(await proxy.outcome()).toMatchObject({
      responseStatus: null,
      errorCode: "NETWORK_REQUEST_CANCELED",
      errorText: "the caller went away"
    })
    await target.allClosed()
    expect(proxy.leftOver).toEqual([])
  })

  it("Caller that disconnects within the answer ends the upstream exchange", async () => {
    await using target = await rawTarget((socket) => socket.write("HTTP/1.1 200 OK\r\n\r\nhalf"))
    await using proxy = await openProxy(target.url)
    const caller = await proxy.call("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    await once(caller, "data")
    caller.destroy()
    const outcome = await proxy.outcome()
    expect(outcome).toMatchObject({ responseStatus: 200, errorCode: "NETWORK_REQUEST_CANCELED" })
    expect(Buffer.from(outcome.responseBody!).toString()).toBe("half")
    await target.allClosed()
  })

  it("Caller that disconnects before forwarding causes no connection to the upstream", async () => {
    await using target = await echo()
    const stored = gate()
    const asked = gate()
    await using proxy = await openProxy(target.url, {
      beforeForward: async (response) => {
        asked.open()
        await once(response, "close")
        stored.open()
      }
    })
    const caller = await proxy.call("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    await asked.opened
    caller.destroy()
    await stored.opened
    expect(await proxy.outcome()).toMatchObject({ errorCode: "NETWORK_REQUEST_CANCELED", responseStatus: null })
    expect(target.connections()).toBe(0)
  })

  it("Caller gets several answers over one connection, complete and in order", async () => {
    await using target = await httpTarget((request, response) => response.end(`answer to ${request.url}`))
    await using proxy = await openProxy(target.url)
    const caller = await proxy.call("GET /1 HTTP/1.1\r\nhost: a\r\n\r\nGET /2 HTTP/1.1\r\nhost: a\r\n\r\n")
    caller.write("GET /3 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
    const { text } = await untilClosed(caller)
    expect(text.match(/answer to \/\d/g)).toEqual(["answer to /1", "answer to /2", "answer to /3"])
    for (let index = 0; index < 3; index++) expect((await proxy.outcome()).errorCode).toBeNull()
    expect(proxy.leftOver).toEqual([])
  })

  const size = 64 * 1024 * 1024
  const block = Buffer.from(Array.from({ length: 65_536 }, (_, index) => (index * 31) % 256))

  /** An upstream that sends 64 MiB as fast as they are taken. */
  const pouring = async () => {
    const poured = { bytes: 0 }
    const target = await rawTarget((socket: Socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${size}\r\n\r\n`)
      const more = (): void => {
        while (poured.bytes < size) {
          poured.bytes += block.length
          if (!socket.write(block)) return
        }
      }
      socket.on("drain", more)
      more()
    })
    return { target, poured }
  }

  it("Slow caller slows the upstream down and gets every byte", async () => {
    const { poured, target } = await pouring()
    await using _ = target
    await using proxy = await openProxy(target.url)
    const [response] = await once(get(proxy.url), "response")
    for (let before = -1; before !== poured.bytes || proxy.responses[0]!.writableLength === 0;) {
      before = poured.bytes
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    // The kernel's buffers on both sides, some megabytes each; and what the gateway holds.
    expect(poured.bytes).toBeLessThan(size / 2)
    expect(proxy.responses[0]!.writableLength).toBeLessThan(256 * 1024)
    const hash = createHash("sha256")
    for await (const chunk of response) hash.update(chunk as Buffer)
    const expected = createHash("sha256")
    for (let sent = 0; sent < size; sent += block.length) expected.update(block)
    expect(hash.digest("hex")).toBe(expected.digest("hex"))
    expect(await proxy.outcome()).toMatchObject({ errorCode: null, responseBodyTruncated: true })
  })

  it("Caller that stops reading is disconnected together with the upstream", async () => {
    const { target } = await pouring()
    await using _ = target
    await using proxy = await openProxy(target.url, { callerPatienceMs: 100 })
    const caller = await proxy.call("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    expect(await proxy.outcome()).toMatchObject({
      responseStatus: 200,
      errorCode: "NETWORK_REQUEST_CANCELED",
      errorText: "the caller stopped reading"
    })
    await target.allClosed()
    expect((await untilClosed(caller)).text.length).toBeLessThan(size)
  })
})
