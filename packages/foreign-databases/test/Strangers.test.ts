import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { createHmac, pbkdf2Sync } from "node:crypto"
import { readFileSync } from "node:fs"
import type { Socket } from "node:net"
import { createSecureContext, TLSSocket } from "node:tls"
import { type Target, tcpTarget } from "../../egress/test/targets.ts"
import { leastMs, timesSlower, watchLoop } from "../../../test/support/LoopHeld.ts"
import { sent, servers, sessionOf, told } from "./Delivering.ts"

/** Servers that are none, or worse: each costs one attempt, little memory, and no time of the loop that others would miss. */

/** One message of a server. */
const said = (type: string, body: Buffer | string = ""): Buffer => {
  const bytes = Buffer.from(body)
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeUInt32BE(bytes.length + 4, 1)
  return Buffer.concat([head, bytes])
}
/** Only its beginning: it says how long it is, and goes on for as long as it likes. */
const begun = (type: string, length: number): Buffer => {
  const head = said(type)
  head.writeUInt32BE(length, 1)
  return head
}
const asks = (method: number, rest: Buffer | string = ""): Buffer => {
  const number = Buffer.alloc(4)
  number.writeInt32BE(method)
  return said("R", Buffer.concat([number, Buffer.from(rest)]))
}
const error = (fields: Readonly<Record<string, string>>): Buffer =>
  said(
    "E",
    `${Object.entries(fields)
      .map(([field, text]) => `${field}${text}\0`)
      .join("")}\0`
  )

const parameter = said("S", "server_version\x0018\0")
const welcome = Buffer.concat([asks(0), parameter, said("K", Buffer.from([0, 0, 0, 1, 0, 0, 0, 2])), said("Z", "I")])
const inserted = Buffer.concat([said("1"), said("2"), said("n"), said("C", "INSERT 0 1\0"), said("Z", "I")])

/** Says the same for ever, as fast as it is read. */
const forEver = (socket: Socket, bytes: Buffer): void => {
  const block = Buffer.concat(Array.from({ length: Math.max(1, Math.floor(65_536 / bytes.length)) }, () => bytes))
  const go = (): void => {
    while (socket.writable && socket.write(block));
  }
  socket.on("drain", go)
  go()
}

const auth = { username: "writer", password: "wr1ter-p4ssword" }

const hmac = (key: Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest()

/** Proves by SCRAM (RFC 5802) to know the password, and then answers so to each statement; requests to stop one are for nobody. */
const lettingIn =
  (answer: (socket: Socket) => void) =>
  (socket: Socket): void => {
    socket.once("data", () => {
      socket.write(asks(10, "SCRAM-SHA-256\0\0"))
      socket.once("data", (initial: Buffer) => {
        const first = initial.toString("latin1").split("n,,")[1]!
        const challenge = `r=${/r=([^,]+)/.exec(first)![1]}x,s=c2FsdA==,i=4096`
        socket.write(asks(11, challenge))
        socket.once("data", (last: Buffer) => {
          const unproved = /c=[^,]+,r=[^,]+/.exec(last.toString("latin1"))![0]
          const key = hmac(pbkdf2Sync(auth.password, "salt", 4096, 32, "sha256"), "Server Key")
          const proof = hmac(key, [first, challenge, unproved].join(",")).toString("base64")
          socket.write(Buffer.concat([asks(12, `v=${proof}`), welcome]))
          socket.on("data", () => answer(socket))
        })
      })
    })
  }
const atFirst =
  (answer: (socket: Socket, first: Buffer) => void) =>
  (socket: Socket): void =>
    void socket.once("data", (first: Buffer) => answer(socket, first))

/** Asks for SCRAM, and then for the password hashed so many times. */
const scram = (iterations: string, again = 1) =>
  atFirst((socket) => {
    socket.write(asks(10, "SCRAM-SHA-256\0\0"))
    socket.on("data", (initial: Buffer) => {
      const nonce = /r=([^,]+)/.exec(initial.toString("latin1"))?.[1] ?? ""
      const challenge = asks(11, `r=${nonce}x,s=c2FsdA==,i=${iterations}`)
      socket.write(
        Buffer.concat(Array.from({ length: again }, () => [asks(10, "SCRAM-SHA-256\0\0"), challenge]).flat())
      )
    })
  })

const protocol = { code: "PROTOCOL_ERROR", final: false, broken: true }
const tooLarge = { ...protocol, code: "RESPONSE_TOO_LARGE" }
const timeout = { ...protocol, code: "TIMEOUT" }
const rejected = { ...protocol, code: "AUTH_REJECTED" }
const closed = { ...protocol, code: "SOCKET_CLOSED" }

const strangers: ReadonlyArray<readonly [name: string, connection: (socket: Socket) => void, as: object]> = [
  ["one that never answers", () => undefined, timeout],
  [
    "one that sends a byte now and then",
    atFirst((socket) => {
      let at = 0
      const timer = setInterval(() => socket.write(parameter.subarray(at, ++at)), 100)
      socket.on("close", () => clearInterval(timer))
    }),
    timeout
  ],
  ["one that hangs up", atFirst((socket) => socket.end()), closed],
  ["one that hangs up in a message", atFirst((socket) => socket.end(parameter.subarray(0, 12))), closed],
  ["one that speaks HTTP", atFirst((socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n")), protocol],
  ["one whose message has no length", atFirst((socket) => socket.write(begun("S", 0))), protocol],
  ["one whose first message has 2 GB", atFirst((socket) => socket.write(begun("R", 2 ** 31 - 1))), tooLarge],
  [
    "one that has a version of its own",
    atFirst((socket) => socket.write(said("v", Buffer.from("\0\0\0\0\x02\0\0\0")))),
    protocol
  ],
  ["one with parameters without end", atFirst((socket) => forEver(socket, said("S", "a\0b\0"))), tooLarge],
  ["one with notices without end", lettingIn((socket) => forEver(socket, said("N", "SNOTICE\0Mhello\0\0"))), tooLarge],
  [
    "one with notifications without end",
    lettingIn((socket) => forEver(socket, said("A", "\0\0\0\x01a\0b\0"))),
    tooLarge
  ],
  [
    "one that floods rows",
    lettingIn((socket) => forEver(socket, Buffer.concat([said("T", "\0\0"), said("D", "\0\0")]))),
    protocol
  ],
  ["one that copies", lettingIn((socket) => forEver(socket, said("G", "\0\0\0"))), protocol],
  ["one that is ready again and again", lettingIn((socket) => forEver(socket, said("Z", "I"))), protocol],
  [
    "one whose error has 100 MB",
    lettingIn((socket) => {
      socket.write(begun("E", 100 * 1024 * 1024))
      forEver(socket, Buffer.from("x"))
    }),
    tooLarge
  ],
  ["one that asks for the password in clear text", atFirst((socket) => socket.write(asks(3))), rejected],
  ["one that asks for the password's MD5", atFirst((socket) => socket.write(asks(5, "salt"))), rejected],
  ["one that asks for another sign-in", atFirst((socket) => socket.write(asks(7))), rejected],
  ["one that wants 2^31 iterations", scram("2147483648"), protocol],
  ["one that wants one iteration, to guess the password cheaply", scram("1"), protocol],
  ["one that wants a million iterations", scram("1000000"), protocol],
  ["one that asks again and again", scram("90000", 50), protocol],
  [
    "one that lets everybody in, and asks for nothing",
    atFirst((socket) => {
      socket.write(welcome)
      socket.once("data", () => socket.write(inserted))
    }),
    rejected
  ],
  [
    "one that lets everybody in without a proof",
    atFirst((socket) => {
      socket.write(asks(10, "SCRAM-SHA-256\0\0"))
      socket.once("data", () => socket.write(welcome))
    }),
    rejected
  ]
]

const config = ({ port }: Target, as: unknown = null) => ({
  host: "127.0.0.1",
  port,
  database: "shop",
  table: "orders",
  tls_mode: "disable",
  // A busy machine must not be taken for a server that does not answer: only those that never answer are not waited for.
  connect_timeout: as === timeout ? 1 : 30
})
/** The listener of a test, closed with its scope. */
const listening = (connection: (socket: Socket) => void) =>
  Effect.acquireRelease(
    Effect.promise(() => tcpTarget(connection)),
    (target) => Effect.promise(() => target[Symbol.asyncDispose]())
  )

const boundMs = (): number => 50 * timesSlower()

describe("Hostile database server", () => {
  for (const [name, connection, as] of strangers) {
    it.live(`Hostile database server costs one attempt: ${name}`, () =>
      Effect.gen(function* () {
        const target = yield* listening(connection)
        const scope = yield* Scope.make()
        const session = yield* sessionOf(config(target, as), auth).pipe(Scope.provide(scope))
        const before = process.memoryUsage().rss
        const held = watchLoop()
        const ended = yield* sent(session)
        const heldMs = held()
        expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024)
        expect(told(ended)).toEqual(as)
        expect(ended.failure!.message.length).toBeLessThan(500)
        expect(ended.failure!.message).not.toContain(auth.password)
        yield* Scope.close(scope, Exit.void)
        yield* Effect.promise(() => target.allClosed())
        return heldMs
      }).pipe(
        Effect.scoped,
        Effect.provide(servers()),
        (attempt) => leastMs(boundMs, attempt),
        Effect.map((heldMs) => expect(heldMs).toBeLessThan(boundMs()))
      )
    )
  }

  it.live("Hostile database server that floods an idle connection loses that connection", () =>
    Effect.gen(function* () {
      let first: Socket | null = null
      const target = yield* listening(
        lettingIn((socket) => {
          first ??= socket
          socket.write(inserted)
        })
      )
      const session = yield* sessionOf(config(target), auth)
      expect(told(yield* sent(session))).toBe(200)
      forEver(first!, said("N", "Mhello\0\0"))
      yield* Effect.promise(() => target.allClosed())
      expect(told(yield* sent(session))).toBe(200)
      expect(target.connections()).toBe(2)
    }).pipe(Effect.scoped, Effect.provide(servers()))
  )

  it.live("Hostile database server that repeats the password has it masked in the error", () =>
    Effect.gen(function* () {
      const words = {
        S: "ERROR",
        V: "ERROR",
        C: "42P01",
        M: `no\n\u0007table for ${auth.password}${"!".repeat(5_000)}`
      }
      const target = yield* listening(
        lettingIn((socket) => socket.write(Buffer.concat([error(words), said("Z", "I")])))
      )
      const { failure } = yield* sent(yield* sessionOf(config(target), auth))
      expect(failure!.message).toMatch(/^there is no such table \(42P01\): no table for \*{4}!+$/)
      expect(failure!.message.length).toBeLessThan(400)
    }).pipe(Effect.scoped, Effect.provide(servers()))
  )
})

const pem = (name: string): string =>
  readFileSync(new URL(`../../egress/test/fixtures/${name}.pem`, import.meta.url), "utf8")

/** Agrees to speak TLS, and is greeted. */
const agreeing = (answer: (socket: Socket) => void) =>
  atFirst((socket) => {
    socket.write("S")
    socket.once("data", () => answer(socket))
  })

/** Agrees to speak TLS, shows a good certificate, and goes on inside. */
const insideTls = (answer: (socket: TLSSocket, first: Buffer) => void) =>
  atFirst((socket) => {
    socket.write("S")
    const secureContext = createSecureContext({ key: pem("key"), cert: pem("valid") })
    const inside = new TLSSocket(socket, { isServer: true, secureContext })
    inside.on("error", () => undefined)
    inside.once("data", (first: Buffer) => answer(inside, first))
  })

const overTls: ReadonlyArray<readonly [name: string, connection: (socket: Socket) => void, as: unknown]> = [
  ["that speaks no TLS", atFirst((socket) => socket.write("N")), { ...protocol, code: "ERR_SSL_WRONG_VERSION_NUMBER" }],
  [
    "that sends too much before TLS",
    atFirst((socket) => socket.write(Buffer.concat([Buffer.from("S"), welcome]))),
    protocol
  ],
  ["that sends an error before TLS", atFirst((socket) => socket.write(error({ S: "FATAL", M: "secret" }))), protocol],
  [
    "that hangs up during the handshake",
    agreeing((socket) => socket.end("\x16\x03\x03\x00")),
    { ...protocol, code: "CONNECTION_RESET" }
  ],
  ["that stops after one byte", atFirst((socket) => socket.write("S")), timeout],
  [
    "that answers the handshake with HTTP",
    agreeing((socket) => socket.write("HTTP/1.1 400\r\n\r\n")),
    { ...protocol, code: "ERR_SSL_WRONG_VERSION_NUMBER" }
  ],
  ["that sends rows without end", insideTls((socket) => forEver(socket, said("D", "\0\0"))), protocol],
  [
    "that asks for the password in clear text after the handshake",
    insideTls((socket) => {
      socket.write(asks(3))
      socket.once("data", (given: Buffer) => {
        if (given.toString("latin1") !== said("p", `${auth.password}\0`).toString("latin1")) return socket.destroy()
        socket.write(welcome)
        return socket.on("data", () => socket.write(inserted))
      })
    }),
    200
  ]
]

describe("TLS connection to a database server", () => {
  for (const [name, connection, as] of overTls) {
    it.live(`TLS connection gives the expected result for a database server ${name}`, () =>
      Effect.gen(function* () {
        const target = yield* listening(connection)
        const session = yield* sessionOf({ ...config(target, as), host: "target.test", tls_mode: "verify-full" }, auth)
        const ended = yield* sent(session)
        expect(told(ended)).toEqual(as)
        expect(ended.failure?.message ?? "").not.toContain("secret")
      }).pipe(Effect.scoped, Effect.provide(servers()))
    )
  }
})
