import { createServer, type Server, type Socket } from "node:net"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, expect } from "vitest"
import { rowOf, rows } from "../../packages/connectors/test/rows/Rows.ts"
import type { DestinationConfig } from "../support/Contract.ts"
import { it as base } from "../support/it.ts"
import { heldMs, watchedLoop } from "../support/LoopHeld.ts"
import { configAt, standingIn } from "../support/Mocks.ts"
import { waitUntil } from "../support/Waiting.ts"

/**
 * Servers that are called are strangers like any sender. Whatever one does to a call, of whatever type of destination, it costs
 * that attempt, and the others nothing. How long the loop was held is said, and not asserted: a machine may be busy.
 */

const head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"

/** Says the same again for as long as it is listened to. */
const flood = (socket: Socket, text: string): void => {
  const again = (): void => {
    while (!socket.destroyed && socket.write(text));
    socket.once("drain", again)
  }
  again()
}

/** Says it a byte a second. */
const drip = (socket: Socket, text: string): void => {
  let at = 0
  const timer = setInterval(() => {
    if (socket.destroyed || at >= text.length) clearInterval(timer)
    else socket.write(text[at++]!)
  }, 1_000)
}

/** Codes of attempts that were not answered. */
const cut = ["SOCKET_CLOSED", "CONNECTION_RESET"]
/** Who has said 200, and more than is kept, is taken by its word or not: each type has its own. */
const taken = [null, "BAD_RESPONSE"]

interface Stranger {
  readonly does: (socket: Socket) => void
  readonly codes: ReadonlyArray<string | null>
}

/** By a name that stands in the event, and so in the call. */
const strangers: Readonly<Record<string, Stranger>> = {
  silent: { does: () => undefined, codes: ["TIMEOUT"] },
  "slow-head": { does: (socket) => drip(socket, `${head}${"x: y\r\n".repeat(100)}`), codes: ["TIMEOUT"] },
  "slow-body": {
    does: (socket) => {
      socket.write(`${head}content-length: 1000\r\n\r\n`)
      drip(socket, "x".repeat(1_000))
    },
    codes: ["TIMEOUT"]
  },
  "slow-chunks": {
    does: (socket) => {
      socket.write(`${head}transfer-encoding: chunked\r\n\r\n`)
      drip(socket, "1\r\nx\r\n".repeat(100))
    },
    codes: ["TIMEOUT"]
  },
  "endless-body": {
    does: (socket) => {
      socket.write(`${head}\r\n`)
      flood(socket, "x".repeat(65_536))
    },
    codes: taken
  },
  "endless-chunks": {
    does: (socket) => {
      socket.write(`${head}transfer-encoding: chunked\r\n\r\n`)
      flood(socket, "1\r\n[\r\n".repeat(10_000))
    },
    codes: taken
  },
  "endless-headers": {
    does: (socket) => {
      socket.write("HTTP/1.1 200 OK\r\n")
      flood(socket, "x: y\r\n".repeat(10_000))
    },
    codes: ["RESPONSE_TOO_LARGE", "PROTOCOL_ERROR"]
  },
  "one-header": {
    does: (socket) => {
      socket.write("HTTP/1.1 200 OK\r\nx: ")
      flood(socket, "y".repeat(65_536))
    },
    codes: ["RESPONSE_TOO_LARGE", "PROTOCOL_ERROR"]
  },
  "endless-progress": {
    does: (socket) => flood(socket, "HTTP/1.1 102 Processing\r\n\r\n".repeat(1_000)),
    codes: ["PROTOCOL_ERROR"]
  },
  "endless-extension": {
    does: (socket) => {
      socket.write(`${head}transfer-encoding: chunked\r\n\r\n1;`)
      flood(socket, "x".repeat(65_536))
    },
    codes: ["TIMEOUT", "PROTOCOL_ERROR", "RESPONSE_TOO_LARGE", ...cut]
  },
  deep: {
    does: (socket) => socket.end(`${head}connection: close\r\n\r\n${"[".repeat(65_536)}`),
    codes: taken
  },
  garbage: { does: (socket) => flood(socket, "\u0000\u00ff".repeat(10_000)), codes: ["PROTOCOL_ERROR"] },
  "half-an-answer": {
    does: (socket) => socket.end(`${head}content-length: 1000\r\n\r\nhalf`),
    codes: cut
  },
  "no-answer": { does: (socket) => socket.end(), codes: cut },
  reset: { does: (socket) => socket.resetAndDestroy(), codes: cut },
  "two-answers": {
    does: (socket) => flood(socket, `${head}content-length: 2\r\n\r\n{}`.repeat(100)),
    codes: [...taken, "PROTOCOL_ERROR", ...cut]
  }
}

/** What one does with who comes with a TLS hello. */
const inHandshake: Readonly<Record<string, Stranger>> = {
  "closes in the middle": {
    // The first bytes of a server's hello.
    does: (socket) => socket.end(Buffer.from([22, 3, 3, 0, 122, 2, 0, 0, 118, 3, 3])),
    codes: cut
  },
  "a byte a second": {
    does: (socket) =>
      drip(socket, "\u0016\u0003\u0003\u0000\u007a\u0002\u0000\u0000\u0076\u0003\u0003".padEnd(100, "\u0000")),
    codes: ["TIMEOUT"]
  },
  "speaks no TLS": { does: (socket) => flood(socket, head), codes: ["ERR_SSL_WRONG_VERSION_NUMBER", "PROTOCOL_ERROR"] },
  "floods records": {
    does: (socket) => flood(socket, String.fromCharCode(22, 3, 3, 64, 0).padEnd(16_389, "\u0001")),
    codes: ["PROTOCOL_ERROR", "ERR_SSL_WRONG_VERSION_NUMBER", ...cut]
  }
}

const sockets = new Set<Socket>()
const listening: Array<Server> = []

const listen = async (does: (socket: Socket, said: string) => boolean): Promise<number> => {
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.once("close", () => sockets.delete(socket))
    socket.on("error", () => undefined)
    let said = ""
    let isDone = false
    socket.on("data", (chunk: Buffer) => {
      if (isDone) return
      said += chunk.toString("latin1")
      isDone = does(socket, said)
    })
  })
  listening.push(server)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return (server.address() as AddressInfo).port
}

/** What a call says, also where a letter stands encoded in it, and its text encoded in that. */
const spoken = (said: string): string => {
  const letter = /"raw":"([\w+/-]+)/.exec(said)?.[1]
  if (letter === undefined) return said
  const [, text = ""] = Buffer.from(letter, "base64url").toString("latin1").split("\r\n\r\n")
  return Buffer.from(text, "base64").toString("latin1")
}

/** The one that a call asks for by the name in its event, in which no type changes anything. */
const named = (socket: Socket, said: string): boolean => {
  if (said.startsWith("POST /token ")) {
    if (!/\r\n\r\n.+/s.test(said)) return false
    const token = '{"access_token":"t","token_type":"Bearer","expires_in":3600}'
    socket.end(`${head}content-length: ${token.length}\r\nconnection: close\r\n\r\n${token}`)
    return true
  }
  const name = /stranger-([a-z-]+)-end/.exec(spoken(said))?.[1]
  if (name === undefined) return false
  strangers[name]?.does(socket)
  return true
}

let origin: string
const secure = new Map<string, string>()
beforeAll(async () => {
  origin = `http://127.0.0.1:${await listen(named)}`
  for (const [what, { does }] of Object.entries(inHandshake)) {
    const port = await listen((socket) => {
      does(socket)
      return true
    })
    secure.set(what, `https://127.0.0.1:${port}`)
  }
})
afterAll(async () => {
  for (const socket of sockets) socket.destroy()
  await Promise.all(listening.map((server) => new Promise((resolve) => server.close(resolve))))
})

const it = base.extend("settings", { scope: "file" }, () => ({ ...watchedLoop, ...standingIn(origin) }))

const calling = rows.filter(({ mock }) => mock !== null).map(({ type }) => type)
/** Those whose address is a setting. Where their tokens come from there as well, the first call is not the one that is tried here. */
const addressed = calling.filter((type) => {
  const { auth = {}, config } = rowOf(type).mock!("http://here")
  return JSON.stringify(config).includes("here") && !JSON.stringify(auth).includes("here")
})

it("A strange server that is called costs only its own attempt", async ({ gateway, target }) => {
  const source = await gateway.source()
  const fast: Partial<DestinationConfig> = { rate_limit: 1_000, rate_limit_period: "second" }
  const connect = async (config: DestinationConfig, type: string): Promise<string> => {
    const destination = await gateway.destination({ ...config, ...fast } as DestinationConfig, type)
    await gateway.connection(source, destination)
    return destination.id
  }
  const send = async (name: string): Promise<string> => {
    const marker = `stranger-${name}-end`
    const body = JSON.stringify({ id: marker, message: marker, media_url: "https://93.184.216.34/a.png" })
    const answer = await fetch(`${gateway.origin}/e/${source.id}`, { method: "POST", body })
    return ((await answer.json()) as { readonly request_id: string }).request_id
  }
  /** The type, or what is done in a handshake, by destination. */
  const known = new Map<string, string>()
  for (const type of calling) known.set(await connect(configAt(type, origin), type), type)
  const innocent = await connect({ url: target.origin }, "HTTP")
  const names = Object.keys(strangers)
  await heldMs()
  const requests = new Map<string, string>()
  for (const name of names) requests.set(await send(name), name)
  for (const [what, at] of secure) {
    for (const type of addressed) known.set(await connect(configAt(type, at), type), what)
  }
  requests.set(await send("of-handshakes"), "in its handshake")

  // Those who are innocent are served while the strangers keep the others waiting.
  const ofInnocent = async () =>
    gateway.sql("select count(*)::int as n from attempts where destination_id = $1 and response_status = 200", [
      innocent
    ])
  await waitUntil("the innocent one is served", async () => (await ofInnocent())[0].n === names.length + 1)
  const waiting = await gateway.sql("select count(*)::int as n from events where state = 'PENDING'")
  expect(waiting[0].n).toBeGreaterThan(0)

  await waitUntil(
    "every attempt has ended",
    async () =>
      (await gateway.sql("select count(*)::int as n from events where state = 'PENDING'"))[0].n <= calling.length,
    { patienceMs: 180_000, everyMs: 500 }
  )
  const ended = await gateway.sql(
    "select e.request_id, e.destination_id, count(a.*)::int as attempts, min(a.error_code) as code " +
      "from events e join attempts a on a.event_id = e.id group by e.id, e.request_id, e.destination_id"
  )
  const wrong = ended.flatMap(({ attempts, code, destination_id, request_id }) => {
    const [name, who] = [requests.get(request_id) ?? "", known.get(destination_id) ?? ""]
    const codes = inHandshake[who]?.codes ?? strangers[name]?.codes
    // A machine that is busy enough does not come to what is wrong within an attempt's time.
    const expected = codes === undefined ? undefined : [...codes, "TIMEOUT"]
    return destination_id === innocent || expected === undefined || (attempts === 1 && expected.includes(code))
      ? []
      : [{ name, who, attempts, code }]
  })
  expect(wrong).toEqual([])
  expect(ended.length).toBeGreaterThanOrEqual(names.length * calling.length)
  const held = await heldMs()
  console.info(
    `${ended.length} attempts at strangers; the loop was held for at most ${held.processorMs.toFixed(0)} ms of its own (${held.clockMs.toFixed(0)} by the clock)`
  )
})
