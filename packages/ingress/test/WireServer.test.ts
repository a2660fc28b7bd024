import { spawn } from "node:child_process"
import { once } from "node:events"
import type { Server, ServerResponse } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { createInterface } from "node:readline"
import { afterEach, describe, expect, it } from "vitest"
import type { FramedMessage } from "../src/wire/FramedMessage.ts"
import { type Capacity, wireServer } from "@tidegate/ingress/wire/WireServer"
import { freePort } from "../../../test/support/Ports.ts"
import { requestBytes, talk } from "../../../test/support/RawHttp.ts"

const sockets = new Set<Socket>()
let server: Server

/** A server whose requests are answered by `handle`; its port. */
const listen = async (
  handle: (request: FramedMessage, response: ServerResponse) => void,
  capacity?: Capacity,
  host: string | null = null
): Promise<number> => {
  server = wireServer({ prefixes: ["/e/", "/channels/"], host, handle }, capacity === undefined ? {} : { capacity })
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

describe("Ingress connections", () => {
  it("Waiting connections are accepted together and not one per turn of the event loop", async () => {
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

  it("Connections in the backlog are accepted and answered before the server closes", async () => {
    const port = await listen(ok)
    const opened = await Promise.all(Array.from({ length: 200 }, (_, i) => open(port, `127.0.0.${2 + (i % 100)}`)))
    const closed = new Promise<void>((resolve) => void server.close(() => resolve()))
    expect(new Set(await Promise.all(opened.map(post)))).toEqual(new Set([200]))
    for (const socket of opened) socket.destroy()
    await closed
    const refused = connect({ port, host: "127.0.0.1" })
    expect((await once(refused, "error"))[0]).toMatchObject({ code: "ECONNREFUSED" })
  })

  it("Two processes that listen at the same moment do not share one port", async () => {
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
        expect((await both(String(await freePort()))).toSorted()).toEqual(["EADDRINUSE", "listening"])
        await both("close")
      }
    } finally {
      for (const process of spawned) process.kill("SIGKILL")
    }
  })

  it("Second server cannot listen on the same port", async () => {
    const port = await listen(ok)
    const second = wireServer(null)
    const refused = once(second, "error")
    second.listen({ port, host: "127.0.0.1" })
    expect((await refused)[0]).toMatchObject({ code: "EADDRINUSE" })
  })

  it("Connections end with the server after their answers, whichever socket accepted them", async () => {
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

  it("Busy connections end with their next answer once the server closes", async () => {
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

  it("Pipelined connections give all answers before they end with the server", async () => {
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

  it("Connections of one address are limited to half, and other addresses are still accepted", async () => {
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

  it("Connections above the total limit are closed without an answer", async () => {
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

describe("Pipelined requests", () => {
  it("Pipelined requests are answered in order up to their limit", async () => {
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

  it("Pipelined requests above the limit end the connection, and the rest is not read", async () => {
    let seen = 0
    const port = await listen(() => void seen++, { connections: 10, waiting: 50 })
    const { answers, closed } = await talk(port, [
      Buffer.concat(Array.from({ length: 2_000 }, () => requestBytes({ path: "/e/x", body: "x", keepAlive: true })))
    ])
    expect([answers, closed, seen]).toEqual([[], true, 51])
  })
})

describe("Unread request bodies", () => {
  const chunked = "POST /e/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"

  it("Unread request body in thousands of chunks is refused and not kept", async () => {
    let message: FramedMessage | undefined
    const port = await listen((request) => void (message = request))
    const { final } = await talk(port, [chunked, "1\r\nx\r\n".repeat(4_200)])
    expect([final.status, JSON.parse(final.body).code]).toEqual([413, "PAYLOAD_TOO_LARGE"])
    expect(message!.readableLength).toBeLessThan(4_200)
    expect(message!.destroyed).toBe(true)
  })

  const answered = (request: FramedMessage, response: ServerResponse): void => {
    request.discard(response)
    response.end("ok")
  }
  const announcing = (length: number): string => `POST /e/x HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`

  it("Short unread request body may end after the answer, and the connection continues", async () => {
    const port = await listen(answered)
    const { answers } = await talk(port, [announcing(2), "x", "x", requestBytes({ path: "/e/x" })], { pause: 20 })
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect(answers[0]!.headers["connection"]).not.toBe("close")
  })

  it("Unread request body of which a part came before it was known to be unwanted ends, and the connection continues", async () => {
    const part = 48 * 1024
    const port = await listen((request, response) => {
      // As while the source is looked up.
      const decide = (): void => {
        if (request.complete || request.readableLength >= part) answered(request, response)
        else setImmediate(decide)
      }
      decide()
    })
    const body = Buffer.alloc(256 * 1024 + part, "x")
    // The last bytes come by themselves, after more than is read of an unwanted body.
    const most = body.subarray(part / 3)
    const parts = [announcing(body.length), most, body.subarray(0, part / 3), requestBytes({ path: "/e/x" })]
    const { answers } = await talk(port, parts, { pause: 20 })
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect(answers[0]!.headers["connection"]).not.toBe("close")
  })

  it.for([
    ["is longer than what is read", announcing(10 * 1024 * 1024)],
    ["has no known end", chunked],
    ["waits for a 100 Continue", announcing(2).replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n")]
  ] as const)("The answer to an unread request body that %s announces the end of the connection", async ([, head]) => {
    const port = await listen(answered)
    server.on("checkContinue", answered)
    const { answers, closed } = await talk(port, [head])
    expect([answers.map(({ status, headers }) => [status, headers["connection"]]), closed]).toEqual([
      [[200, "close"]],
      true
    ])
  })

  it("Unread request body may arrive for a moment after a final answer, so that the answer is not lost", async () => {
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

it("Malformed data after a request is not answered in place of that request", async () => {
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

describe("Ingress with its own host", () => {
  const cases: ReadonlyArray<readonly [string, string, number]> = [
    ["/e/x", "hooks.example", 200],
    ["/e/x", "Hooks.Example:443", 200],
    ["/channels/x", "hooks.example", 200],
    ["/channels/x", "api.example", 404],
    ["http://other.example/e/x", "hooks.example", 200],
    ["/e/x", "api.example", 404],
    ["/e/x", "hooks.example:8443", 404],
    ["/e/x", "hooks.example.", 404],
    ["/v1/sources", "hooks.example", 404],
    ["/v1/sources", "api.example", 204],
    ["/healthz", "127.0.0.1:8080", 204]
  ]
  for (const [path, host, status] of cases) {
    it(`Ingress with its own host answers ${path} at ${host} with ${status}`, async () => {
      const port = await listen(ok, undefined, "hooks.example")
      server.on("request", (_request, response: ServerResponse) => void response.writeHead(204).end())
      const { final } = await talk(port, [`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`])
      expect(final.status).toBe(status)
    })
  }

  it("Host of ingress accepts no WebSocket streams", async () => {
    const port = await listen(ok, undefined, "hooks.example")
    server.on("upgrade", (_request, socket: Socket) => void socket.end("HTTP/1.1 426 Upgrade Required\r\n\r\n"))
    const upgrade = (host: string): string =>
      `GET /v1/bins/x/stream HTTP/1.1\r\nHost: ${host}\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n`
    expect((await talk(port, [upgrade("hooks.example")])).final.status).toBe(404)
    expect((await talk(port, [upgrade("api.example")])).final.status).toBe(426)
  })
})

describe("Ingress answer", () => {
  it("Ingress answer loses headers that change an origin, however they are written", async () => {
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
