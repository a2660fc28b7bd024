import { describe, expect, it } from "@effect/vitest"
import { getEventListeners } from "node:events"
import type { Socket } from "node:net"
import { text } from "node:stream/consumers"
import type { TLSSocket } from "node:tls"
import { generateKeyPairSync, X509Certificate } from "node:crypto"
import type { ClientTls } from "@tidegate/model/ClientTls"
import { gzipSync } from "node:zlib"
import { authority, fixture, gate, httpTarget, openEgress, rawTarget, tcpTarget, tlsTarget } from "./targets.ts"

const echo = () =>
  httpTarget(async (request, response) => {
    const body = await text(request)
    response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.rawHeaders, body }))
  })

interface Echoed {
  readonly method: string
  readonly url: string
  readonly headers: ReadonlyArray<string>
  readonly body: string
}

const ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

describe("Delivered request", () => {
  it("Request arrives with its method, URL, headers and body unchanged", async () => {
    await using target = await echo()
    await using egress = await openEgress()
    const before = Date.now()
    const answer = await egress.deliver({
      method: "PATCH",
      url: `${target.url}/a%20b/ü?c=d&e=%2F#fragment`,
      headers: ["Content-Type", "application/json", "X-Twice", "1", "x-twice", "2", "x-latin", "caf\u00e9"],
      body: Buffer.from('{"a":"ä"}')
    })
    const after = Date.now()
    expect(answer).toMatchObject({ status: 200, errorCode: null, errorMessage: null, bodyTruncated: false })
    const received = JSON.parse(answer.body.toString()) as Echoed
    expect(received).toMatchObject({ method: "PATCH", url: "/a%20b/%C3%BC?c=d&e=%2F", body: '{"a":"ä"}' })
    const headers = [
      ["host", `127.0.0.1:${target.port}`],
      ["connection", "keep-alive"],
      ["Content-Type", "application/json"],
      ["X-Twice", "1"],
      ["x-twice", "2"],
      ["x-latin", "caf\u00e9"],
      ["content-length", "10"]
    ]
    expect(received.headers).toEqual(headers.flat())
    expect(answer.sentAt).toBeGreaterThanOrEqual(before)
    expect(answer.respondedAt).toBeGreaterThanOrEqual(answer.sentAt)
    expect(answer.respondedAt).toBeLessThanOrEqual(after + 1)
  })

  it("Request cannot set headers of the connection", async () => {
    await using target = await echo()
    await using egress = await openEgress()
    const given = ["Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Proxy-Connection"]
    const more = ["TE", "Trailer", "Transfer-Encoding", "Upgrade"]
    const answer = await egress.deliver({
      method: "POST",
      url: target.url,
      headers: [...[...given, ...more].flatMap((name) => [name, "5"]), "x-kept", "host"],
      body: "hello world"
    })
    const received = JSON.parse(answer.body.toString()) as Echoed
    expect(received.body).toBe("hello world")
    const headers = [
      ["host", `127.0.0.1:${target.port}`],
      ["connection", "keep-alive"],
      ["x-kept", "host"],
      ["content-length", "11"]
    ]
    expect(received.headers).toEqual(headers.flat())
  })

  it.each([null, "", undefined])("Request without a body (%j) says that its content length is 0", async (body) => {
    await using target = await echo()
    await using egress = await openEgress()
    const answer = await egress.deliver({ method: "POST", url: target.url, ...(body !== undefined && { body }) })
    const received = JSON.parse(answer.body.toString()) as Echoed
    expect(received.body).toBe("")
    expect(received.headers.slice(-2)).toEqual(["content-length", "0"])
  })

  it("Sequential requests reuse one connection", async () => {
    await using target = await echo()
    await using egress = await openEgress()
    for (let index = 0; index < 20; index++) {
      expect((await egress.deliver({ method: "POST", url: target.url, body: "x" })).status).toBe(200)
    }
    expect(target.connections()).toBe(1)
  })

  it("200 concurrent requests use no more connections than the limit for one origin", async () => {
    await using target = await echo()
    await using egress = await openEgress({ connectionsPerOrigin: 16 })
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, index) => egress.deliver({ method: "POST", url: target.url, body: `${index}` }))
    )
    expect(answers.map((answer) => (JSON.parse(answer.body.toString()) as Echoed).body)).toEqual(
      Array.from({ length: 200 }, (_, index) => `${index}`)
    )
    expect(target.connections()).toBe(16)
  })

  it("200 concurrent requests use 200 connections if the limit allows it", async () => {
    await using target = await echo()
    await using egress = await openEgress({ connectionsPerOrigin: 1_000 })
    const requests = Array.from({ length: 200 }, () => egress.deliver({ method: "POST", url: target.url, body: "x" }))
    expect((await Promise.all(requests)).every((answer) => answer.status === 200)).toBe(true)
    expect(target.connections()).toBe(200)
  })

  it("Egress closes the origin that was idle for longest when it exceeds the connection limit", async () => {
    await using first = await echo()
    await using second = await echo()
    await using third = await echo()
    await using egress = await openEgress({ maxConnections: 2 })
    for (const target of [first, second, third, second, third]) {
      expect((await egress.deliver({ method: "POST", url: target.url, body: "x" })).status).toBe(200)
    }
    await first.allClosed()
    expect([first.connections(), second.connections(), third.connections()]).toEqual([1, 1, 1])
  })

  it("Egress opens no more connections than it has requests in flight", async () => {
    await using target = await echo()
    await using egress = await openEgress()
    const oneAfterTheOther = async () => {
      for (let index = 0; index < 20; index++) {
        expect((await egress.deliver({ method: "POST", url: target.url, body: "x" })).status).toBe(200)
      }
    }
    await Promise.all(Array.from({ length: 8 }, oneAfterTheOther))
    expect(target.connections()).toBe(8)
  })
})

describe("Answer to a delivery", () => {
  it.each([200, 201, 204, 301, 302, 304, 307, 400, 401, 404, 410, 413, 421, 429, 500, 503, 599])(
    "Answer with the status %d is returned and not treated as a network error",
    async (status) => {
      await using target = await httpTarget((_, response) =>
        response.writeHead(status, { "Retry-After": "120", location: "http://10.0.0.1/" }).end()
      )
      await using egress = await openEgress()
      const answer = await egress.deliver({ method: "POST", url: target.url, body: "x" })
      expect(answer).toMatchObject({ status, errorCode: null, headers: { "retry-after": "120" } })
    }
  )

  it("Delivery fails after more than 32 interim answers without a final one", async () => {
    await using target = await rawTarget((socket) => {
      const again = (): void => {
        while (!socket.destroyed && socket.write("HTTP/1.1 102 Processing\r\n\r\n".repeat(1_000)));
        socket.once("drain", again)
      }
      again()
    })
    await using egress = await openEgress()
    const answer = await egress.deliver({ method: "POST", url: target.url, body: "x" })
    expect(answer).toMatchObject({
      status: null,
      errorCode: "PROTOCOL_ERROR",
      errorMessage: "more than 32 interim answers"
    })
    await target.allClosed()
  })

  it("Final answer after interim 1xx answers is the one that counts", async () => {
    await using target = await rawTarget((socket) =>
      socket.write(`HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${ok}`)
    )
    await using egress = await openEgress()
    const answer = await egress.deliver({ method: "POST", url: target.url, body: "x" })
    expect(answer).toMatchObject({ status: 200, errorCode: null, headers: { "content-length": "2" } })
    expect(answer.headers["link"]).toBeUndefined()
    expect(answer.body.toString()).toBe("ok")
  })

  it("Answer keeps all headers, whatever their names", async () => {
    await using target = await rawTarget((socket) =>
      socket.write(
        "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\n__proto__: x\r\nconstructor: y\r\ncontent-length: 0\r\n\r\n"
      )
    )
    await using egress = await openEgress()
    const { headers } = await egress.deliver({ method: "POST", url: target.url })
    expect(Object.entries(headers)).toEqual([
      ["set-cookie", ["a=1", "b=2"]],
      ["__proto__", "x"],
      ["constructor", "y"],
      ["content-length", "0"]
    ])
  })

  it("Answer without a length ends with its connection", async () => {
    await using target = await rawTarget((socket) => socket.end("HTTP/1.1 200 OK\r\n\r\nuntil the end"))
    await using egress = await openEgress()
    const answer = await egress.deliver({ method: "POST", url: target.url, body: "x" })
    expect(answer).toMatchObject({ status: 200, errorCode: null })
    expect(answer.body.toString()).toBe("until the end")
  })

  it("Complete answer on a half closed connection succeeds", async () => {
    await using target = await rawTarget((socket) => socket.end(ok))
    await using egress = await openEgress()
    expect(await egress.deliver({ method: "POST", url: target.url, body: "x" })).toMatchObject({
      status: 200,
      errorCode: null
    })
    await target.allClosed()
  })

  it("Answer that arrives byte by byte is put together", async () => {
    const body = Array.from({ length: 5_000 }, (_, index) => String.fromCharCode(97 + (index % 26))).join("")
    await using target = await rawTarget((socket) => {
      socket.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
      for (const letter of body) socket.write(`1\r\n${letter}\r\n`)
      socket.write("0\r\n\r\n")
    })
    await using egress = await openEgress()
    const answer = await egress.deliver({ method: "POST", url: target.url, body: "x" })
    expect(answer).toMatchObject({ errorCode: null, bodyTruncated: false })
    expect(answer.body.toString()).toBe(body)
  })

  it("Answer is not decompressed, so a compression bomb stays small", async () => {
    const bomb = gzipSync(Buffer.alloc(20_000_000))
    await using target = await httpTarget((_, response) =>
      response.writeHead(200, { "content-encoding": "gzip" }).end(bomb)
    )
    await using egress = await openEgress()
    const answer = await egress.deliver({ method: "POST", url: target.url, body: "x" })
    expect(answer).toMatchObject({ status: 200, errorCode: null, bodyTruncated: false })
    expect(answer.headers["content-encoding"]).toBe("gzip")
    expect(answer.body.equals(bomb)).toBe(true)
  })
})

describe("Capture limit of an answer", () => {
  const sized = (size: number) => httpTarget((_, response) => response.end(Buffer.alloc(size, "a")))

  it.each([
    { size: 99, limit: 100, kept: 99, cut: false },
    { size: 100, limit: 100, kept: 100, cut: false },
    { size: 101, limit: 100, kept: 100, cut: true },
    { size: 1, limit: 0, kept: 0, cut: true },
    { size: 0, limit: 0, kept: 0, cut: false },
    { size: 65_536, limit: undefined, kept: 65_536, cut: false },
    { size: 1_000_000, limit: undefined, kept: 65_536, cut: true }
  ])("Capture limit keeps $kept of $size bytes", async ({ size, limit, kept, cut }) => {
    await using target = await sized(size)
    await using egress = await openEgress()
    const answer = await egress.deliver({
      method: "POST",
      url: target.url,
      ...(limit !== undefined && { captureBytes: limit })
    })
    expect(answer).toMatchObject({ status: 200, errorCode: null, errorMessage: null, bodyTruncated: cut })
    expect(answer.body.toString()).toBe("a".repeat(kept))
  })

  it("Capture limit ends the exchange and the connection of a target that never ends its body", async () => {
    await using target = await rawTarget((socket) => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n")
      const more = () => {
        while (!socket.destroyed && socket.write("a".repeat(1_000)));
      }
      socket.on("drain", more)
      more()
    })
    await using egress = await openEgress()
    const answer = await egress.deliver({ method: "POST", url: target.url, body: "x", timeoutMs: 10_000 })
    expect(answer).toMatchObject({ status: 200, errorCode: null, bodyTruncated: true })
    expect(answer.body.toString()).toBe("a".repeat(65_536))
    await target.allClosed()
  })
})

describe("Time budget of a delivery", () => {
  const timeoutMs = 150

  /** Ends as TIMEOUT in good time, and leaves no connection behind. */
  const expectTimeout = async (onConnection: (socket: Socket) => void, status: number | null, body?: string) => {
    // Where an answer has to have begun by then, a busy machine gets the time for it.
    const budget = status === null ? timeoutMs : 1_000
    await using target = await tcpTarget(onConnection)
    await using egress = await openEgress()
    const startedAt = performance.now()
    const answer = await egress.deliver({ method: "POST", url: target.url, body: body ?? "x", timeoutMs: budget })
    const took = performance.now() - startedAt
    expect(answer).toMatchObject({
      status,
      errorCode: "TIMEOUT",
      errorMessage: `no full answer within ${budget} ms`
    })
    expect(took).toBeGreaterThanOrEqual(budget - 2)
    // Not the budget that a delivery has of itself.
    expect(took).toBeLessThan(20_000)
    expect(answer.respondedAt - answer.sentAt).toBeGreaterThanOrEqual(budget - 2)
    await target.allClosed()
    return answer
  }

  it("Time budget covers a target that never answers", () => expectTimeout((socket) => socket.resume(), null))

  it("Time budget covers a target that stops within its headers", () =>
    expectTimeout((socket) => socket.resume().write("HTTP/1.1 200 OK\r\ncontent-le"), null))

  it("Time budget covers a target that sends interim 102 answers without end", () =>
    expectTimeout((socket) => {
      socket.resume()
      const timer = setInterval(() => socket.write("HTTP/1.1 102 Processing\r\n\r\n"), 10)
      socket.on("close", () => clearInterval(timer))
    }, null))

  it("Time budget covers a target that stops within its body, and the received part is kept", async () => {
    const answer = await expectTimeout(
      (socket) => socket.resume().write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"),
      200
    )
    expect(answer.body.toString()).toBe("half")
    expect(answer.bodyTruncated).toBe(false)
  })

  it("Time budget covers a target that sends its body one byte at a time", () =>
    expectTimeout((socket) => {
      socket.resume().write("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
      const timer = setInterval(() => socket.write("a"), 10)
      socket.on("close", () => clearInterval(timer))
    }, 200))

  it("Time budget covers a target that does not read the request", () =>
    expectTimeout((socket) => socket.pause(), null, "a".repeat(50_000_000)))

  it("Time budget covers the TLS handshake", async () => {
    await using target = await tcpTarget((socket) => socket.resume())
    await using egress = await openEgress()
    const url = target.url.replace("http:", "https:")
    expect((await egress.deliver({ method: "POST", url, timeoutMs })).errorCode).toBe("TIMEOUT")
  })

  it("Time budget covers the DNS lookup", async () => {
    await using egress = await openEgress({ resolve: () => new Promise(() => undefined) })
    const answer = await egress.deliver({ method: "POST", url: "http://silent.example/", timeoutMs })
    expect(answer.errorCode).toBe("TIMEOUT")
  })

  it("Time budget covers the wait for a free connection, and an expired request is never sent", async () => {
    const answering = gate()
    const bodies: Array<string> = []
    await using target = await httpTarget(async (request, response) => {
      bodies.push(await text(request))
      await answering.opened
      response.end("ok")
    })
    await using egress = await openEgress({ connectionsPerOrigin: 1 })
    const send = (body: string, budget: number) =>
      egress.deliver({ method: "POST", url: target.url, body, timeoutMs: budget })
    const first = send("first", 10_000)
    const waiting = await Promise.all([send("second", timeoutMs), send("third", timeoutMs)])
    expect(waiting.map((answer) => answer.errorCode)).toEqual(["TIMEOUT", "TIMEOUT"])
    answering.open()
    expect((await first).status).toBe(200)
    expect((await send("fourth", 10_000)).status).toBe(200)
    expect(bodies).toEqual(["first", "fourth"])
    expect(target.connections()).toBe(1)
  })
})

describe("Cancellation of a delivery", () => {
  const cancelled = { errorCode: "NETWORK_REQUEST_CANCELED", status: null }

  it("Cancellation ends an exchange in flight and its connection", async () => {
    const reached = gate()
    await using target = await rawTarget(reached.open)
    await using egress = await openEgress()
    const controller = new AbortController()
    const answer = egress.deliver({ method: "POST", url: target.url, body: "x", signal: controller.signal })
    await reached.opened
    controller.abort()
    expect(await answer).toMatchObject(cancelled)
    await target.allClosed()
  })

  it("Cancellation before the start sends nothing", async () => {
    await using target = await echo()
    await using egress = await openEgress()
    const answer = await egress.deliver({ method: "POST", url: target.url, signal: AbortSignal.abort() })
    expect(answer).toMatchObject(cancelled)
    expect(target.connections()).toBe(0)
  })

  it("Cancellation after the end changes nothing", async () => {
    await using target = await echo()
    await using egress = await openEgress()
    const controller = new AbortController()
    const answer = await egress.deliver({ method: "POST", url: target.url, signal: controller.signal })
    expect(getEventListeners(controller.signal, "abort")).toEqual([])
    controller.abort()
    expect(answer.status).toBe(200)
    expect((await egress.deliver({ method: "POST", url: target.url })).status).toBe(200)
    expect(target.connections()).toBe(1)
  })
})

describe("TLS of a delivery", () => {
  it("TLS connection goes to the checked address with the host's name and is reused and resumed", async () => {
    const seen: Array<{ readonly name: TLSSocket["servername"]; readonly resumed: boolean }> = []
    await using target = await tlsTarget("valid.pem", {
      onConnection: (socket) => seen.push({ name: socket.servername, resumed: socket.isSessionReused() })
    })
    const resolve = async () => ["127.0.0.1"]
    await using egress = await openEgress({ ca: [authority], connectionsPerOrigin: 1, resolve })
    const send = (host: string, captureBytes = 100) =>
      egress.deliver({ method: "POST", url: `https://${host}:${target.port}/`, body: "x", captureBytes })

    expect((await send("target.test")).body.toString()).toBe("ok")
    // Cut off by the limit, so that the next one needs a new connection.
    expect((await send("target.test", 1)).bodyTruncated).toBe(true)
    expect((await send("target.test")).status).toBe(200)
    expect(seen).toEqual([
      { name: "target.test", resumed: false },
      { name: "target.test", resumed: true }
    ])
  })

  it("TLS server name has no final dot and is omitted for an IP address", async () => {
    const names: Array<TLSSocket["servername"]> = []
    await using target = await tlsTarget("valid.pem", { onConnection: (socket) => names.push(socket.servername) })
    await using egress = await openEgress({ ca: [authority], resolve: async () => ["127.0.0.1"] })
    for (const host of ["target.test.", "a.target.test", "127.0.0.1"]) {
      const answer = await egress.deliver({ method: "POST", url: `https://${host}:${target.port}/`, body: "x" })
      expect({ host, errorCode: answer.errorCode }).toEqual({ host, errorCode: null })
    }
    expect(names).toEqual(["target.test", "a.target.test", false])
  })
})

describe("Client certificate of a delivery", () => {
  const otherKey = generateKeyPairSync("ec", {
    namedCurve: "P-256",
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" }
  }).privateKey
  const own = (certificate: string): ClientTls => ({
    id: certificate,
    identity: { certificate: fixture(certificate), key: fixture("key.pem") },
    authorities: authority
  })
  /** A server that talks only to those who show `self-signed.pem`, and notes whose certificate each connection shows. */
  const demanding = (shown: Array<string>) =>
    tlsTarget("valid.pem", {
      settings: { requestCert: true, rejectUnauthorized: true, ca: [fixture("self-signed.pem")] },
      onConnection: (socket) => shown.push(socket.getPeerX509Certificate()!.fingerprint256)
    })
  const fingerprint = new X509Certificate(fixture("self-signed.pem")).fingerprint256

  it("Server that demands a certificate answers only to the one that it knows, and connections are not shared", async () => {
    const shown: Array<string> = []
    await using target = await demanding(shown)
    await using egress = await openEgress({ ca: [authority] })
    const send = (tls?: ClientTls) =>
      egress.deliver({
        method: "POST",
        url: `https://127.0.0.1:${target.port}/`,
        ...(tls === undefined ? {} : { tls })
      })
    expect(await send(own("self-signed.pem"))).toMatchObject({ status: 200, errorCode: null })
    expect(await send(own("self-signed.pem"))).toMatchObject({ status: 200, errorCode: null })
    for (const tls of [
      undefined,
      own("stranger-leaf.pem"),
      { ...own("self-signed.pem"), id: "none", identity: null }
    ]) {
      const { errorCode, errorMessage, status } = await send(tls)
      expect({ status, isRefused: errorCode !== null }).toEqual({ status: null, isRefused: true })
      expect(errorMessage).not.toContain("BEGIN")
    }
    // Two deliveries over one connection; the refused ones never got as far.
    expect(shown).toEqual([fingerprint])
    expect(egress.openOrigins()).toBe(4)
  })

  it("Authorities of a destination replace those of the process, and those that cannot be used fail the delivery", async () => {
    await using target = await tlsTarget("valid.pem")
    await using egress = await openEgress({ ca: [authority] })
    const send = (id: string, authorities: string | null, identity: ClientTls["identity"] = null) =>
      egress.deliver({
        method: "POST",
        url: `https://127.0.0.1:${target.port}/`,
        tls: { id, identity, authorities }
      })
    expect(await send("theirs", authority)).toMatchObject({ status: 200 })
    expect(await send("of the process", null)).toMatchObject({ status: 200 })
    expect(await send("another", fixture("self-signed.pem"))).toMatchObject({ status: null })
    const mismatched = { certificate: fixture("self-signed.pem"), key: otherKey }
    expect(await send("mismatched", null, mismatched)).toMatchObject({
      status: null,
      errorMessage: "the certificate, its key or the authorities of this destination cannot be used"
    })
  })

  it("Idle origins with certificates are closed above their number", async () => {
    await using target = await tlsTarget("valid.pem")
    await using egress = await openEgress({ maxIdleOrigins: 3 })
    for (let i = 0; i < 8; i++) {
      const tls = { id: String(i), identity: null, authorities: authority }
      expect(await egress.deliver({ method: "POST", url: `https://127.0.0.1:${target.port}/`, tls })).toMatchObject({
        status: 200
      })
    }
    expect(egress.openOrigins()).toBeLessThanOrEqual(4)
  })
})

describe("Shutdown of egress", () => {
  it("Shutdown lets requests in flight finish and refuses new ones", async () => {
    const reached = gate()
    const answering = gate()
    await using target = await httpTarget(async (_, response) => {
      reached.open()
      await answering.opened
      response.end("ok")
    })
    const egress = await openEgress()
    const inFlight = egress.deliver({ method: "POST", url: target.url })
    await reached.opened
    let closed = false
    const closing = egress.close().then(() => (closed = true))
    expect((await egress.deliver({ method: "POST", url: target.url })).errorCode).toBe("NETWORK_REQUEST_CANCELED")
    expect(closed).toBe(false)
    answering.open()
    expect(await inFlight).toMatchObject({ status: 200, errorCode: null })
    await closing
    expect(egress.openOrigins()).toBe(0)
    await target.allClosed()
  })

  it("Shutdown cancels running and waiting requests that do not finish in time", async () => {
    await using target = await tcpTarget((socket) => socket.resume())
    const egress = await openEgress({ connectionsPerOrigin: 1, drainMs: 50 })
    const inFlight = [1, 2, 3].map(() => egress.deliver({ method: "POST", url: target.url }))
    const startedAt = performance.now()
    await egress.close()
    // Not as long as a delivery may take.
    expect(performance.now() - startedAt).toBeLessThan(20_000)
    const codes = (await Promise.all(inFlight)).map((answer) => answer.errorCode)
    expect(codes).toEqual(Array.from({ length: 3 }, () => "NETWORK_REQUEST_CANCELED"))
    await target.allClosed()
  })
})

describe("Memory of egress", () => {
  it("Egress keeps a limited number of idle origins, whether they answer or not", async () => {
    await using target = await echo()
    await using egress = await openEgress({ maxIdleOrigins: 10, resolve: async () => ["127.0.0.1"] })
    for (const port of [target.port, 1]) {
      for (let index = 0; index < 300; index += 20) {
        await Promise.all(
          Array.from({ length: 20 }, (_, offset) =>
            egress.deliver({ method: "POST", url: `http://h${index + offset}.example:${port}/`, body: "x" })
          )
        )
        expect(egress.openOrigins()).toBeLessThanOrEqual(10 + 20)
      }
    }
    expect(target.connections()).toBe(300)
  })
})

describe("URLs that a target will fetch", () => {
  const hosts: Readonly<Record<string, ReadonlyArray<string>>> = {
    "media.example": ["93.184.216.34"],
    "inner.example": ["10.0.0.1"],
    "both.example": ["93.184.216.34", "169.254.169.254"]
  }
  const resolve = async (host: string) => hosts[host] ?? []

  it("Delivery is sent when the URLs that the target will fetch are public", async () => {
    await using target = await echo()
    await using egress = await openEgress({ resolve })
    const fetched = ["https://media.example/a.png", "http://media.example:8080/b.png", "https://93.184.216.34/c.png"]
    const answer = await egress.deliver({ method: "POST", url: target.url, fetched })
    expect(answer).toMatchObject({ status: 200, errorCode: null })
  })

  it.each([
    ["https://inner.example/a.png", "TARGET_NOT_ALLOWED"],
    ["https://both.example/a.png", "TARGET_NOT_ALLOWED"],
    ["http://10.0.0.1/a.png", "TARGET_NOT_ALLOWED"],
    ["http://0x0a000001/a.png", "TARGET_NOT_ALLOWED"],
    ["http://[::ffff:10.0.0.1]/a.png", "TARGET_NOT_ALLOWED"],
    ["http://169.254.169.254/latest/meta-data", "TARGET_NOT_ALLOWED"],
    ["https://nobody.example/a.png", "DNS_LOOKUP_FAILED"],
    ["ftp://media.example/a.png", "INVALID_URL"],
    ["https://user:s3cret@media.example/a.png", "INVALID_URL"],
    ["no url", "INVALID_URL"]
  ])("Delivery is not sent when the target would fetch %s", async (url, code) => {
    await using target = await echo()
    await using egress = await openEgress({ resolve })
    const fetched = ["https://media.example/a.png", url]
    const answer = await egress.deliver({ method: "POST", url: target.url, fetched })
    expect(answer).toMatchObject({ status: null, errorCode: code })
    expect(answer.errorMessage).not.toMatch(/169\.254\.169\.254 and|s3cret/)
    expect(target.connections()).toBe(0)
  })

  it("Check of fetched URLs counts in the time of the delivery and ends when it is cancelled", async () => {
    await using target = await echo()
    await using egress = await openEgress({ resolve: () => new Promise(() => undefined) })
    const request = { method: "POST", url: target.url, fetched: ["https://media.example/a.png"] }
    expect((await egress.deliver({ ...request, timeoutMs: 20 })).errorCode).toBe("TIMEOUT")
    const abort = new AbortController()
    const cancelled = egress.deliver({ ...request, signal: abort.signal })
    abort.abort()
    expect((await cancelled).errorCode).toBe("NETWORK_REQUEST_CANCELED")
    expect(target.connections()).toBe(0)
  })

  it("Check of fetched URLs ends with DNS_LOOKUP_FAILED after the connect timeout", async () => {
    await using target = await echo()
    await using egress = await openEgress({ connectTimeoutMs: 50, resolve: () => new Promise(() => undefined) })
    const answer = await egress.deliver({ method: "POST", url: target.url, fetched: ["https://media.example/a.png"] })
    expect(answer.errorCode).toBe("DNS_LOOKUP_FAILED")
    expect(target.connections()).toBe(0)
  })
})
