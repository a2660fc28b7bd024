import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { describe, expect, onTestFinished, test, vi } from "vitest"
import { type WebSocket, WebSocketServer } from "ws"
import { freePort } from "../../../test/support/Ports.ts"
import { localTarget, openTunnel, type TunnelEvent, type TunnelOptions } from "../src/Tunnel.ts"

/** The tunnel's client with a mock of the gateway that speaks its protocol, and an app on the same machine. */

interface Result {
  readonly type: string
  readonly job_id: string
  readonly status: number
  readonly headers: Record<string, string | Array<string>>
  readonly body?: string
  readonly body_base64?: string
  readonly body_truncated?: boolean
  readonly error?: string
}

/** Things that come in their own time, one after the other. */
class Queue<A> {
  readonly #items: Array<A> = []
  readonly #takers: Array<(item: A) => void> = []
  readonly put = (item: A): void => {
    const taker = this.#takers.shift()
    if (taker === undefined) this.#items.push(item)
    else taker(item)
  }
  take(): Promise<A> {
    if (this.#items.length > 0) return Promise.resolve(this.#items.shift()!)
    return new Promise((resolve) => void this.#takers.push(resolve))
  }
}

/** One listener, as the gateway sees it. */
class Peer {
  readonly results = new Queue<Result>()
  readonly closed: Promise<number>
  readonly url: string
  readonly protocols: ReadonlyArray<string>
  readonly socket: WebSocket

  constructor(socket: WebSocket, request: IncomingMessage) {
    this.socket = socket
    this.url = request.url ?? ""
    this.protocols = (request.headers["sec-websocket-protocol"] ?? "").split(/, */)
    this.closed = new Promise((resolve) => void socket.on("close", resolve))
    socket.on("message", (data: Buffer) => {
      const message = JSON.parse(data.toString()) as Result
      if (message.type === "delivery_result") this.results.put(message)
    })
    this.send({ type: "hello", cli_id: "cli_1", destination_id: "des_1", heartbeat_seconds: 30, max_in_flight: 50 })
  }

  send(message: object): void {
    this.socket.send(JSON.stringify(message))
  }

  deliver(job_id: string, request: object = {}, timeout_ms = 30_000): void {
    const whole = { method: "POST", path: "/", headers: {}, body: "", event_id: `evt_${job_id}`, ...request }
    this.send({ type: "delivery", job_id, timeout_ms, request: whole })
  }
}

const listening = async (server: ReturnType<typeof createServer>): Promise<number> => {
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
  return (server.address() as AddressInfo).port
}

const it = test
  .extend("gateway", async ({}, { onCleanup }) => {
    const server = createServer()
    const sockets = new WebSocketServer({ server, handleProtocols: () => "tunnel.v1" })
    const peers = new Queue<Peer>()
    sockets.on("connection", (socket, request) => peers.put(new Peer(socket, request)))
    const port = await listening(server)
    onCleanup(() => {
      for (const client of sockets.clients) client.terminate()
      server.close()
    })
    return { origin: `http://127.0.0.1:${port}`, peers }
  })
  .extend("app", async ({}, { onCleanup }) => {
    const asked: Array<{
      readonly method: string
      readonly url: string
      readonly headers: IncomingMessage["headers"]
      readonly body: Buffer
    }> = []
    const app = {
      asked,
      origin: "",
      answer: (_: IncomingMessage, response: ServerResponse): void => void response.end("ok")
    }
    const server = createServer((request, response) => {
      const parts: Array<Buffer> = []
      request.on("data", (part: Buffer) => parts.push(part))
      request.on("end", () => {
        asked.push({ method: request.method!, url: request.url!, headers: request.headers, body: Buffer.concat(parts) })
        app.answer(request, response)
      })
    })
    app.origin = `http://127.0.0.1:${await listening(server)}`
    onCleanup(() => {
      server.closeAllConnections()
      server.close()
    })
    return app
  })
  .extend("open", ({ app, gateway }, { onCleanup }) => {
    const ending = new AbortController()
    onCleanup(() => ending.abort())
    return (more: Partial<TunnelOptions> = {}) => {
      const events = new Queue<TunnelEvent>()
      const over = openTunnel({
        baseUrl: gateway.origin,
        key: "gwk_käy",
        destinationId: "des_1",
        localUrl: app.origin,
        signal: ending.signal,
        onEvent: events.put,
        ...more
      })
      over.catch(() => undefined)
      return { over, events, end: () => ending.abort() }
    }
  })

describe("Client tunnel", () => {
  it("Client tunnel sends credentials as subprotocols, delivers and ends cleanly", async ({ app, gateway, open }) => {
    app.answer = (_, response) =>
      void response.writeHead(201, { "x-app": "1", ["__proto__"]: "x", "set-cookie": ["a=1", "b=2"] }).end("made")
    const tunnel = open({ team: "tm_1" })
    const peer = await gateway.peers.take()
    const url = new URL(peer.url, gateway.origin)
    expect([url.pathname, url.searchParams.get("destination_id")]).toEqual(["/v1/connect", "des_1"])
    expect(peer.protocols).toEqual([
      "tunnel.v1",
      `token.${Buffer.from("gwk_käy").toString("base64url")}`,
      `team.${Buffer.from("tm_1").toString("base64url")}`
    ])
    peer.deliver("1", {
      method: "PUT",
      path: "/hooks/a?b=1",
      headers: { "content-type": "text/plain", "x-many": ["1", "2"], host: "elsewhere.example", "content-length": "9" },
      body: "Grüße"
    })
    const { headers, ...result } = await peer.results.take()
    expect(result).toEqual({ type: "delivery_result", job_id: "1", status: 201, body: "made" })
    expect(Object.keys(headers)).toContain("__proto__")
    expect([headers["x-app"], headers["set-cookie"]]).toEqual(["1", ["a=1", "b=2"]])
    expect(
      app.asked.map(({ body, headers, method, url }) => [method, url, body.toString(), headers["x-many"]])
    ).toEqual([["PUT", "/hooks/a?b=1", "Grüße", "1, 2"]])
    expect(app.asked[0]!.headers.host).toBe(new URL(app.origin).host)
    tunnel.end()
    await tunnel.over
    expect(await peer.closed).toBe(1000)
  })

  it("Client tunnel keeps every byte of requests and responses", async ({ app, gateway, open }) => {
    const bytes = Buffer.from(Array.from({ length: 512 }, (_, n) => n % 256))
    app.answer = (_, response) => void response.end(bytes)
    open()
    const peer = await gateway.peers.take()
    peer.deliver("1", { body: undefined, body_base64: bytes.toString("base64") })
    const { body, body_base64 } = await peer.results.take()
    expect(body).toBeUndefined()
    expect(Buffer.from(body_base64!, "base64")).toEqual(bytes)
    expect(app.asked[0]!.body).toEqual(bytes)
  })

  it("Client tunnel reads only as much of a response as the gateway keeps", async ({ app, gateway, open }) => {
    app.answer = (_, response) => {
      for (let n = 0; n < 120; n++) response.setHeader(`x-${n}`, "v".repeat(20))
      // It never ends, and begins with a character that the cut goes through.
      response.write(`a${"ü".repeat(100_000)}`)
    }
    open()
    const peer = await gateway.peers.take()
    peer.deliver("1")
    const result = await peer.results.take()
    expect(result.body_truncated).toBe(true)
    expect(result.body).toBe(`a${"ü".repeat(32_767)}`)
    expect(Object.keys(result.headers).length).toBe(100)
  })

  it("Client tunnel waits for the app up to the gateway's or its own shorter timeout", async ({ gateway, open }) => {
    const times = vi.spyOn(AbortSignal, "timeout")
    onTestFinished(() => times.mockRestore())
    open()
    const peer = await gateway.peers.take()
    peer.deliver("long", {}, 90_000)
    await peer.results.take()
    expect(times.mock.lastCall).toEqual([90_000])
    open({ timeoutMs: 10_000 })
    const another = await gateway.peers.take()
    another.deliver("short", {}, 90_000)
    await another.results.take()
    expect(times.mock.lastCall).toEqual([10_000])
  })

  it("Client tunnel reports an app that does not answer as 502 with the cause", async ({ app, gateway, open }) => {
    app.answer = () => undefined
    open({ timeoutMs: 50 })
    const peer = await gateway.peers.take()
    peer.deliver("late")
    expect(await peer.results.take()).toMatchObject({ status: 502, error: expect.stringContaining("TIMEOUT") })
    peer.socket.close(4001)

    const port = await freePort()
    open({ localUrl: `http://127.0.0.1:${port}` })
    const [again, refused] = [await gateway.peers.take(), await gateway.peers.take()]
    const unreachable = [again, refused].find(({ url }) => url.includes(`%3A${port}%2F`))!
    unreachable.deliver("refused")
    expect(await unreachable.results.take()).toMatchObject({
      status: 502,
      error: expect.stringContaining("ECONNREFUSED")
    })
  })

  it("Client tunnel repeats a request once when the app's connection breaks before a response", async ({
    app,
    gateway,
    open
  }) => {
    let breaks = 1
    app.answer = (request, response) => void (breaks-- > 0 ? request.socket.destroy() : response.end("ok"))
    open()
    const peer = await gateway.peers.take()
    peer.deliver("1")
    expect(await peer.results.take()).toMatchObject({ status: 200, body: "ok" })
    expect(app.asked.length).toBe(2)
    breaks = 9
    peer.deliver("2")
    expect(await peer.results.take()).toMatchObject({ status: 502, error: expect.any(String) })
    expect(app.asked.length).toBe(4)
  })

  it("Client tunnel calls only paths below the local URL and follows no redirect", async ({ app, gateway, open }) => {
    open({ localUrl: `${app.origin}/base` })
    const peer = await gateway.peers.take()
    for (const path of ["/../admin", "/..%2f..", "/%2e%2e/admin", "@evil.example/", ":99999/", "//evil.example/"]) {
      peer.deliver(path, { path })
      await peer.results.take()
    }
    expect(app.asked.map(({ url }) => url).filter((url) => !url.startsWith("/base/"))).toEqual([])
    app.answer = (_, response) => void response.writeHead(302, { location: "http://evil.example/" }).end()
    peer.deliver("redirect", { path: "/a" })
    expect(await peer.results.take()).toMatchObject({ status: 302, headers: { location: "http://evil.example/" } })
  })

  it("Client tunnel limits its parallel requests and starts the others in order", async ({ app, gateway, open }) => {
    const held: Array<ServerResponse> = []
    const arrived = new Queue<number>()
    app.answer = (_, response) => arrived.put(held.push(response))
    open({ maxParallel: 2 })
    const peer = await gateway.peers.take()
    for (const path of ["/1", "/2", "/3"]) peer.deliver(path, { path })
    await arrived.take()
    await arrived.take()
    expect(app.asked.length).toBe(2)
    held[0]!.end()
    await arrived.take()
    expect(app.asked.map(({ url }) => url).toSorted()).toEqual(["/1", "/2", "/3"])
    expect(app.asked[2]!.url).toBe("/3")
  })

  it("Client tunnel reconnects and asks the app once for a delivery that is sent again", async ({
    app,
    gateway,
    open
  }) => {
    let finish: ServerResponse | undefined
    const arrived = new Queue<true>()
    app.answer = (_, response) => {
      finish = response
      arrived.put(true)
    }
    const { events } = open()
    const first = await gateway.peers.take()
    first.deliver("1")
    await arrived.take()
    first.socket.terminate()
    const second = await gateway.peers.take()
    second.deliver("1")
    finish!.end("done")
    expect(await second.results.take()).toMatchObject({ job_id: "1", body: "done" })
    second.socket.close(1012, "restarts")
    const third = await gateway.peers.take()
    third.deliver("1")
    expect(await third.results.take()).toMatchObject({ job_id: "1", body: "done" })
    expect(app.asked.length).toBe(1)
    const told = [await events.take(), await events.take(), await events.take()]
    expect(told.map(({ type }) => type)).toEqual(["connected", "ready", "disconnected"])
    expect(told[2]).toMatchObject({ code: 1006, retryInMs: expect.any(Number) })
  })

  it.for([4401, 4403, 4404, 4409])("Client tunnel ends for good on close code %i", async (code, { gateway, open }) => {
    const { over } = open()
    const peer = await gateway.peers.take()
    peer.socket.close(code, "because")
    await expect(over).rejects.toMatchObject({ name: "ConnectionEndedError", code, message: "because" })
  })

  it("Client tunnel ignores frames that are no delivery, and invalid headers", async ({ gateway, open }) => {
    open()
    const peer = await gateway.peers.take()
    for (const odd of [null, 1, [], { type: "delivery" }, { type: "delivery", job_id: 1 }, { type: "new" }]) {
      peer.socket.send(JSON.stringify(odd))
    }
    peer.deliver("1", { headers: { "bad name": "x", "x-bad": "a\nb", "x-good": "1" } })
    expect(await peer.results.take()).toMatchObject({ job_id: "1", status: 200 })
  })
})

test.each([
  "http://example.com",
  "http://localhost.example.com",
  "http://10.0.0.1",
  "ftp://localhost",
  "http://user@localhost",
  "http://localhost/?a=1",
  "localhost:3000",
  ""
])("Client tunnel refuses the local URL %o", (url) => {
  expect(() => localTarget(url)).toThrow("the local URL must")
})

test.each(["http://localhost:3000", "https://127.0.0.1/base", "http://[::1]:80/", "http://127.1"])(
  "Client tunnel accepts the local URL %s",
  (url) => {
    expect(localTarget(url).href).toContain("://")
  }
)
