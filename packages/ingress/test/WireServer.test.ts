import { spawn } from "node:child_process"
import { once } from "node:events"
import type { Server, ServerResponse } from "node:http"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import { createInterface } from "node:readline"
import { afterEach, describe, expect, it } from "vitest"
import type { FramedMessage } from "../src/wire/FramedMessage.ts"
import { type Capacity, wireServer } from "@tidegate/ingress/wire/WireServer"
import { requestBytes, talk } from "../../../test/support/RawHttp.ts"

const sockets = new Set<Socket>()
let server: Server

/** A server whose requests are answered by `handle`; its port. */
const listen = async (
  handle: (request: FramedMessage, response: ServerResponse) => void,
  capacity?: Capacity,
  host: string | null = null
): Promise<number> => {
  server = wireServer({ prefix: "/e/", host, handle }, capacity === undefined ? {} : { capacity })
  await once(server.listen({ port: 0, host: "127.0.0.1" }), "listening")
  return (server.address() as AddressInfo).port
}

afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

const open = async (port: number, localAddress: string): Promise<Socket> => {
  const socket = connect({ port, host: "127.0.0.1", localAddress })
  sockets.add(socket)
  socket.on("error", () => {})
  await once(socket, "connect")
  return socket
}

const ok = (_request: FramedMessage, response: ServerResponse): void => void response.end("ok")

const post = (socket: Socket): Promise<number> =>
  new Promise((resolve) => {
    socket.once("data", (answer: Buffer) => resolve(Number(answer.toString().slice(9, 12))))
    socket.once("close", () => resolve(0))
    socket.write(requestBytes({ path: "/e/x", body: "x", keepAlive: true }))
  })

/** How many answers have come on a connection that `text` reads. */
const answered = new WeakMap<Socket, number>()

/** All that a connection says until it ends. */
const text = async (socket: Socket): Promise<string> => {
  let all = ""
  socket.on("data", (chunk: Buffer) => {
    all += chunk.toString()
    answered.set(socket, all.split("HTTP/1.1 ").length - 1)
  })
  await once(socket, "end")
  return all
}

const turn = () => new Promise(setImmediate)

describe("connections", () => {
  it("that wait together are taken together, and not one a turn of the loop", async () => {
    const port = await listen(ok)
    let taken = 0
    server.on("connection", () => taken++)
    const opened = Array.from({ length: 128 }, () => open(port, "127.0.0.2"))
    let turns = 0
    while (taken < opened.length) {
      await turn()
      turns++
    }
    await Promise.all(opened)
    expect(turns).toBeLessThan(opened.length / 2)
  })

  it("that nobody has taken yet are taken and answered before the server closes", async () => {
    const port = await listen(ok)
    const opened = await Promise.all(Array.from({ length: 200 }, (_, i) => open(port, `127.0.0.${2 + (i % 100)}`)))
    const closed = new Promise<void>((resolve) => void server.close(() => resolve()))
    expect(new Set(await Promise.all(opened.map(post)))).toEqual(new Set([200]))
    for (const socket of opened) socket.destroy()
    await closed
    const refused = connect({ port, host: "127.0.0.1" })
    expect((await once(refused, "error"))[0]).toMatchObject({ code: "ECONNREFUSED" })
  })

  it("are one process's, of two that begin to listen at the same moment", async () => {
    const spawned = [1, 2].map(() =>
      spawn(process.execPath, [new URL("listener.ts", import.meta.url).pathname], {
        stdio: ["pipe", "pipe", "inherit"]
      })
    )
    try {
      const lines = spawned.map(({ stdout }) => createInterface(stdout)[Symbol.asyncIterator]())
      const both = (text: string): Promise<ReadonlyArray<string>> => {
        for (const { stdin } of spawned) stdin.write(`${text}\n`)
        return Promise.all(lines.map(async (line) => String((await line.next()).value)))
      }
      // They are there, each at a port of its own.
      expect(await both("0")).toEqual(["listening", "listening"])
      await both("close")
      for (let round = 0; round < 20; round++) {
        const free = createServer()
        await once(free.listen(0, "127.0.0.1"), "listening")
        const { port } = free.address() as AddressInfo
        await new Promise((resolve) => void free.close(resolve))
        expect((await both(String(port))).toSorted()).toEqual(["EADDRINUSE", "listening"])
        await both("close")
      }
    } finally {
      for (const process of spawned) process.kill("SIGKILL")
    }
  })

  it("are not shared with another server on the port", async () => {
    const port = await listen(ok)
    const second = wireServer(null)
    const refused = once(second, "error")
    second.listen({ port, host: "127.0.0.1" })
    expect((await refused)[0]).toMatchObject({ code: "EADDRINUSE" })
  })

  it("end with the server once they are answered, whichever socket took them", async () => {
    const later: Array<() => void> = []
    const port = await listen((_request, response) => void later.push(() => response.end("late")))
    const asked = await Promise.all(Array.from({ length: 16 }, () => open(port, "127.0.0.2")))
    const answers = asked.map(post)
    while (later.length < asked.length) await turn()
    let isClosed = false
    const closed = new Promise<void>((resolve) => {
      server.close(() => {
        isClosed = true
        resolve()
      })
    })
    for (let i = 0; i < 10; i++) await turn()
    expect(isClosed).toBe(false)
    for (const answer of later) answer()
    expect(new Set(await Promise.all(answers))).toEqual(new Set([200]))
    for (const socket of asked) socket.destroy()
    await closed
  })

  it("that are kept busy end with the next answer once the server closes", async () => {
    const later: Array<() => void> = []
    const port = await listen((_request, response) => void later.push(() => response.end("late")))
    const asked = await Promise.all(Array.from({ length: 8 }, () => open(port, "127.0.0.2")))
    const answers = asked.map((socket) => text(socket))
    for (const socket of asked) socket.write(requestBytes({ path: "/e/x", body: "x", keepAlive: true }))
    while (later.length < asked.length) await turn()
    const closed = new Promise((resolve) => server.close(resolve))
    for (const answer of later) answer()
    for (const answer of await Promise.all(answers)) expect(answer).toMatch(/^HTTP\/1.1 200 [^]*connection: close\r\n/i)
    await closed
  })

  it("on which more was asked for give all answers before they end", async () => {
    const later: Array<() => void> = []
    const port = await listen((_request, response) => void later.push(() => response.end("late")))
    const socket = await open(port, "127.0.0.2")
    const answer = text(socket)
    for (let i = 0; i < 3; i++) socket.write(requestBytes({ path: "/e/x", body: "x", keepAlive: true }))
    while (later.length < 3) await turn()
    const closed = new Promise((resolve) => server.close(resolve))
    for (const each of later) each()
    while (answered.get(socket) !== 3) await turn()
    socket.write(requestBytes({ path: "/e/x", body: "x", keepAlive: true }))
    while (later.length < 4) await turn()
    later[3]!()
    expect((await answer).match(/HTTP\/1.1 200 /g)).toHaveLength(4)
    await closed
  })

  it("of one address are half of all at most, and those of others are still taken", async () => {
    const port = await listen(ok, { connections: 8, waiting: 10 })
    const mine = await Promise.all(Array.from({ length: 4 }, () => open(port, "127.0.0.2")))
    for (const socket of mine) expect(await post(socket)).toBe(200)
    const surplus = await open(port, "127.0.0.2")
    const [answer] = (await once(surplus, "data")) as [Buffer]
    expect(answer.toString()).toMatch(/^HTTP\/1.1 503 [^]*"code":"QUEUE_UNAVAILABLE"/)
    expect(await post(await open(port, "127.0.0.3"))).toBe(200)

    mine[0]!.destroy()
    while ((await post(await open(port, "127.0.0.2"))) !== 200) await new Promise(setImmediate)
  })

  it("beyond all that are taken, none is", async () => {
    const port = await listen(ok, { connections: 4, waiting: 10 })
    const held = [
      await open(port, "127.0.0.2"),
      await open(port, "127.0.0.2"),
      await open(port, "127.0.0.3"),
      await open(port, "127.0.0.3")
    ]
    for (const socket of held) expect(await post(socket)).toBe(200)
    expect(await post(await open(port, "127.0.0.4"))).toBe(0)
  })
})

describe("requests that are sent ahead of answers", () => {
  it("are answered in order, as many as may wait", async () => {
    const later: Array<() => void> = []
    const port = await listen((request, response) => later.push(() => response.end(request.url)), {
      connections: 10,
      waiting: 50
    })
    const talking = talk(
      port,
      Array.from({ length: 51 }, (_, i) => requestBytes({ path: `/e/${i}`, body: "x", keepAlive: true })),
      { answers: 51 }
    )
    while (later.length < 51) await new Promise(setImmediate)
    for (const answer of later.toReversed()) answer()
    const { answers } = await talking
    expect(answers.map(({ body }) => body)).toEqual(Array.from({ length: 51 }, (_, i) => `/e/${i}`))
  })

  it("end the connection when they are more, and the rest is not looked at", async () => {
    let seen = 0
    const port = await listen(() => void seen++, { connections: 10, waiting: 50 })
    const { answers, closed } = await talk(port, [
      Buffer.concat(Array.from({ length: 2_000 }, () => requestBytes({ path: "/e/x", body: "x", keepAlive: true })))
    ])
    expect([answers, closed, seen]).toEqual([[], true, 51])
  })
})

describe("bodies that nobody reads", () => {
  const chunked = "POST /e/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"

  it("are not kept piece by piece", async () => {
    let message: FramedMessage | undefined
    const port = await listen((request) => void (message = request))
    const { final } = await talk(port, [chunked, "1\r\nx\r\n".repeat(4_200)])
    expect([final.status, JSON.parse(final.body).code]).toEqual([413, "PAYLOAD_TOO_LARGE"])
    expect(message!.readableLength).toBeLessThan(4_200)
    expect(message!.destroyed).toBe(true)
  })

  it("may end after the answer, and the connection goes on", async () => {
    const port = await listen((request, response) => {
      request.discard(response)
      response.end("ok")
    })
    const { answers } = await talk(port, [chunked, "1\r\nx\r\n", "0\r\n\r\n", requestBytes({ path: "/e/x" })], {
      pause: 20
    })
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
  })

  it("that do not end, end the connection", async () => {
    const port = await listen((request, response) => {
      request.discard(response)
      response.end("ok")
    })
    const { answers, closed } = await talk(port, [chunked, "1\r\nx\r\n"])
    expect([answers.map(({ status }) => status), closed]).toEqual([[200], true])
  })

  it("may come for a moment after an answer that ends the connection, so that the answer is not lost", async () => {
    const isOpen = Promise.withResolvers<boolean>()
    const port = await listen((request, response) => {
      request.discard(response)
      response.once("finish", () => setImmediate(() => isOpen.resolve(request.socket.writable)))
      response.writeHead(200, { connection: "close" }).end("ok")
    })
    const { answers, closed } = await talk(port, [chunked, "1\r\nx\r\n"])
    expect(await isOpen.promise).toBe(true)
    expect([answers.map(({ status }) => status), closed]).toEqual([[200], true])
  })
})

it("what comes behind a request is not answered in its place", async () => {
  const answers: Array<() => void> = []
  const port = await listen((_request, response) => void answers.push(() => response.end("mine")))
  const talking = talk(port, [requestBytes({ path: "/e/x", body: "x", keepAlive: true }), "no HTTP at all\r\n\r\n"])
  while (answers.length < 1) await new Promise(setImmediate)
  await new Promise((resolve) => setTimeout(resolve, 20))
  answers[0]!()
  const conversation = await talking
  expect(conversation.answers.map(({ body }) => body)).toEqual(["mine"])
  expect(conversation.closed).toBe(true)
})

describe("a door with a host of its own", () => {
  const cases: ReadonlyArray<readonly [string, string, number]> = [
    ["/e/x", "hooks.example", 200],
    ["/e/x", "Hooks.Example:443", 200],
    ["http://other.example/e/x", "hooks.example", 200],
    ["/e/x", "api.example", 404],
    ["/e/x", "hooks.example:8443", 404],
    ["/e/x", "hooks.example.", 404],
    ["/v1/sources", "hooks.example", 404],
    ["/v1/sources", "api.example", 204],
    ["/healthz", "127.0.0.1:8080", 204]
  ]
  for (const [path, host, status] of cases) {
    it(`answers ${path} at ${host} with ${status}`, async () => {
      const port = await listen(ok, undefined, "hooks.example")
      server.on("request", (_request, response: ServerResponse) => void response.writeHead(204).end())
      const { final } = await talk(port, [`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`])
      expect(final.status).toBe(status)
    })
  }

  it("has no streams of anybody else's at its host", async () => {
    const port = await listen(ok, undefined, "hooks.example")
    server.on("upgrade", (_request, socket: Socket) => void socket.end("HTTP/1.1 426 Upgrade Required\r\n\r\n"))
    const upgrade = (host: string): string =>
      `GET /v1/bins/x/stream HTTP/1.1\r\nHost: ${host}\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n`
    expect((await talk(port, [upgrade("hooks.example")])).final.status).toBe(404)
    expect((await talk(port, [upgrade("api.example")])).final.status).toBe(426)
  })
})

describe("what the door answers", () => {
  it("loses the headers that change an origin, however they are written", async () => {
    const given: ReadonlyArray<Parameters<ServerResponse["writeHead"]>[1]> = [
      { "Set-Cookie": ["a=1"], "X-Own": "1", "Content-Security-Policy": "script-src *" },
      ["SET-COOKIE", "a=1", "X-Own", "1", "content-security-policy", "script-src *", "Clear-Site-Data", '"*"']
    ]
    for (const headers of given) {
      const port = await listen((_request, response) => void response.writeHead(200, headers).end())
      const { final } = await talk(port, [requestBytes({ path: "/e/x" })])
      expect(final.headers).toMatchObject({
        "x-own": "1",
        "content-security-policy": "sandbox",
        "x-content-type-options": "nosniff"
      })
      expect(final.headers).not.toHaveProperty("set-cookie")
      expect(final.headers).not.toHaveProperty("clear-site-data")
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
    await listen(ok)
  })
})
