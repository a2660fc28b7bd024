import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { createHash } from "node:crypto"
import type { Socket } from "node:net"
import { TLSSocket } from "node:tls"
import type { Config } from "@tidegate/connectors/Settings"
import { mysql } from "../../connectors/src/Mysql.ts"
import { fixture, type Target } from "../../egress/test/targets.ts"
import { auth, brokers, brokerSession, forEver, listening } from "./Brokering.ts"
import { sent, told } from "./Delivering.ts"

/** Servers that are no MySQL, or worse: each costs one attempt, and little memory. */

const frame = (number: number, ...parts: ReadonlyArray<Uint8Array | string>): Buffer => {
  const content = Buffer.concat(parts.map((part) => Buffer.from(part as string)))
  const head = Buffer.alloc(4)
  head.writeUIntLE(content.length, 0, 3)
  head[3] = number
  return Buffer.concat([head, content])
}

const greeting = (able = 0x0008_a208, plugin = "mysql_native_password"): Buffer => {
  const low = Buffer.alloc(2)
  low.writeUInt16LE(able & 0xffff)
  const high = Buffer.alloc(2)
  high.writeUInt16LE(able >>> 16)
  return frame(
    0,
    Buffer.of(10),
    "8.0.0\0",
    Buffer.of(1, 0, 0, 0),
    "12345678\0",
    low,
    Buffer.of(45, 2, 0),
    high,
    Buffer.of(21),
    Buffer.alloc(10),
    "123456789012\0",
    `${plugin}\0`
  )
}

const okay = (number: number, rows = 0): Buffer => frame(number, Buffer.of(0, rows, 0, 2, 0, 0, 0))
const no = (code: number, state: string, said = "no", number = 1): Buffer =>
  frame(number, Buffer.of(0xff, code & 0xff, code >> 8), `#${state}${said}`)
const prepared = (parameters: number): Buffer => frame(1, Buffer.of(0, 7, 0, 0, 0, 0, 0, parameters, 0, 0, 0, 0))
const definition = frame(2, "def\0\0\0")
const end = frame(3, Buffer.of(0xfe, 0, 0, 0, 0))

type Act = Buffer | ((socket: Socket) => void)

/** What a server says to each command of the protocol. */
interface Script {
  readonly greeting?: Act
  readonly signIn?: Act
  readonly set?: Act
  readonly prepare?: Act
  readonly execute?: Act
}

const usual: Required<Script> = {
  greeting: greeting(),
  signIn: okay(2),
  set: okay(1),
  prepare: Buffer.concat([prepared(1), definition, end]),
  execute: okay(1, 1)
}

/** The packets that a client sends, without their headers. */
const packetsOf = (socket: Socket, take: (content: Buffer) => void): void => {
  let held = Buffer.alloc(0)
  socket.on("data", (chunk: Buffer) => {
    held = Buffer.concat([held, chunk])
    while (held.length >= 4 && held.length >= 4 + held.readUIntLE(0, 3)) {
      const content = held.subarray(4, 4 + held.readUIntLE(0, 3))
      held = held.subarray(4 + content.length)
      take(content)
    }
  })
}

const server =
  (change: Script) =>
  (socket: Socket): void => {
    const script = { ...usual, ...change }
    const act = (name: keyof Script): void => {
      const said = script[name]
      if (typeof said === "function") said(socket)
      else socket.write(said)
    }
    let count = 0
    packetsOf(socket, (content) => {
      const names = { 0x03: "set", 0x16: "prepare", 0x17: "execute" } as const
      if (count++ === 0) act("signIn")
      else if (content[0] !== 1) act(names[content[0] as keyof typeof names] ?? "signIn")
    })
    act("greeting")
  }

const hangUp = (socket: Socket): void => void socket.end()

const protocol = { code: "PROTOCOL_ERROR", final: false, broken: true }
const tooLarge = { ...protocol, code: "RESPONSE_TOO_LARGE" }
const closed = { ...protocol, code: "SOCKET_CLOSED" }
const refused = { code: "BAD_RESPONSE", final: false, broken: false }
const lasting = { ...refused, final: true }
const notIn = { ...refused, code: "AUTH_REJECTED" }
const away = { ...refused, code: "DB_UNAVAILABLE" }
const constraint = { ...lasting, code: "DB_CONSTRAINT" }
const secure = { tls_mode: "verify-full" }

const strangers: ReadonlyArray<readonly [name: string, script: Script, as: object | number, config?: Config]> = [
  ["that is one", {}, 200],
  [
    "that says everything byte by byte",
    { execute: (socket) => okay(1, 1).forEach((byte) => socket.write(Buffer.of(byte))) },
    200
  ],
  ["that says nothing", { greeting: () => undefined }, { ...protocol, code: "TIMEOUT" }, { connect_timeout: 1 }],
  ["that hangs up at once", { greeting: hangUp }, closed],
  ["that hangs up at the row", { execute: hangUp }, closed],
  ["that speaks HTTP", { greeting: Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n") }, tooLarge],
  ["whose packet has 16 MB", { greeting: Buffer.of(0xff, 0xff, 0xff, 0) }, tooLarge],
  ["whose packet is empty", { set: Buffer.of(0, 0, 0, 1) }, protocol],
  ["whose greeting is short", { greeting: frame(0, Buffer.of(10), "8\0", Buffer.of(1, 0)) }, protocol],
  ["whose greeting has no end", { greeting: frame(0, Buffer.of(10), "8".repeat(100)) }, protocol],
  ["of another protocol", { greeting: frame(0, Buffer.of(9), "3.2\0") }, protocol],
  ["that is too old", { greeting: greeting(0x0000_0008) }, protocol],
  ["that floods packets", { execute: (socket) => forEver(socket, okay(1, 1)) }, 200],
  [
    "that never ends the definitions",
    {
      prepare: (socket) => {
        socket.write(prepared(1))
        forEver(socket, definition)
      }
    },
    protocol
  ],
  ["that prepares another statement", { prepare: prepared(9) }, protocol],
  ["that answers a row with rows", { execute: frame(1, Buffer.of(3)) }, protocol],
  ["that says it has inserted many", { execute: okay(1, 9) }, protocol],
  ["that answers a setting with a file request", { set: frame(1, Buffer.of(0xfb), "/etc/passwd") }, protocol],
  ["that has too many connections", { greeting: no(1040, "08004", "no", 0) }, away],
  ["that refuses the password", { signIn: no(1045, "28000", "no", 2) }, notIn],
  ["that wants a way that is not known", { signIn: frame(2, Buffer.of(0xfe), "mysql_clear_password\0") }, notIn],
  [
    "that changes the way for ever",
    { signIn: frame(2, Buffer.of(0xfe), "mysql_native_password\0", "1".repeat(20), "\0") },
    protocol
  ],
  ["that wants the whole password in the clear", { signIn: frame(2, Buffer.of(1, 4)) }, { ...notIn, broken: true }],
  ["that lets in by a hash it knows", { signIn: Buffer.concat([frame(2, Buffer.of(1, 3)), okay(3)]) }, 200],
  ["that has no such table", { prepare: no(1146, "42S02") }, refused],
  ["that has no such column", { prepare: no(1054, "42S22") }, refused],
  ["that forbids the table", { prepare: no(1142, "42000") }, notIn],
  ["that has such a row", { execute: no(1062, "23000") }, constraint],
  ["that misses another row", { execute: no(1452, "23000") }, { ...constraint, final: false }],
  ["that takes no such value", { execute: no(1406, "22001") }, lasting],
  ["that has locked the table", { execute: no(1205, "HY000") }, { ...refused, code: "TIMEOUT" }],
  ["that has found a deadlock", { execute: no(1213, "40001") }, refused],
  ["that is read-only", { execute: no(1290, "HY000") }, refused],
  ["whose error is unknown", { execute: no(9999, "HY000") }, refused],
  ["that shuts down", { execute: no(1053, "08S01") }, away],
  ["that speaks no TLS", {}, { ...protocol, code: "ERR_SSL_WRONG_VERSION_NUMBER" }, secure],
  ["that speaks before TLS", { greeting: Buffer.concat([greeting(0x0008_aa08), okay(2)]) }, protocol, secure]
]

const configOf = ({ port }: Target, change: Config = {}): Config => ({
  host: "target.test",
  port,
  database: "shop",
  table: "orders",
  tls_mode: "disable",
  // A busy machine must not be taken for a server that does not answer.
  connect_timeout: 30,
  ...change
})

describe("MySQL server that is not trusted", () => {
  it.live.each(strangers)("Row for a server %s has the expected result", ([, script, as, change]) =>
    Effect.gen(function* () {
      const session = yield* brokerSession(mysql, configOf(yield* listening(server(script)), change))
      const ended = yield* sent(session)
      expect(told(ended)).toEqual(as)
      expect(ended.failure?.message ?? "").not.toContain(auth.password)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Server's words are shown on one line without the password, and a lost answer is said to be ambiguous", () =>
    Effect.gen(function* () {
      const target = yield* listening(server({ signIn: no(1045, "28000", `not\n${auth.password}`, 2) }))
      const { failure } = yield* sent(yield* brokerSession(mysql, configOf(target)))
      expect(failure?.message).toBe("the server does not let the destination in (1045 28000): not ****")
      const lost = yield* sent(yield* brokerSession(mysql, configOf(yield* listening(server({ execute: hangUp })))))
      expect(lost.failure?.message).toContain("it may have inserted it")
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("MySQL server at a private address is not connected to", () =>
    Effect.gen(function* () {
      const target = yield* listening(server({}))
      for (const host of ["target.test", "127.0.0.1", "::1"]) {
        const ended = yield* sent(yield* brokerSession(mysql, configOf(target, { host })))
        expect(told(ended)).toEqual({ ...protocol, code: "TARGET_NOT_ALLOWED" })
      }
      expect(target.connections()).toBe(0)
    }).pipe(Effect.scoped, Effect.provide(brokers([])))
  )

  it.live("MySQL 8 gets a proof of the password, and the password itself over TLS", () =>
    Effect.gen(function* () {
      const got: Array<Buffer> = []
      const target = yield* listening((socket) => {
        socket.write(greeting(0x0008_aa08, "caching_sha2_password"))
        socket.once("data", (request: Buffer) => {
          // TLS may begin in the same piece.
          socket.pause()
          socket.unshift(request.subarray(36))
          const secure = new TLSSocket(socket, { isServer: true, key: fixture("key.pem"), cert: fixture("valid.pem") })
          const answers = [frame(3, Buffer.of(1, 4)), okay(5), okay(1), usual.prepare as Buffer, okay(1, 1)]
          packetsOf(secure, (content) => {
            got.push(Buffer.from(content))
            const answer = answers.shift()
            if (answer !== undefined) secure.write(answer)
          })
        })
      })
      expect(told(yield* sent(yield* brokerSession(mysql, configOf(target, secure))))).toBe(200)
      const [signIn, password] = got
      const sha = (...parts: ReadonlyArray<Uint8Array>): Buffer =>
        createHash("sha256").update(Buffer.concat(parts)).digest()
      // As the server does it, which knows the hash of the hash alone.
      const known = sha(sha(Buffer.from(auth.password)))
      const at = 32 + auth.username.length + 2
      const mask = sha(known, Buffer.from("12345678123456789012"))
      const once = signIn!.subarray(at, at + 32).map((byte, i) => byte ^ mask[i]!)
      expect(sha(once)).toEqual(known)
      expect(signIn!.toString("latin1")).not.toContain(auth.password)
      expect(password!.toString()).toBe(`${auth.password}\0`)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Row of 16 MiB or more is refused before it is sent, and the connection is still good", () =>
    Effect.gen(function* () {
      const target = yield* listening(server({}))
      const session = yield* brokerSession(mysql, configOf(target))
      expect(told(yield* sent(session, `"${"a".repeat(16 * 1024 * 1024)}"`))).toEqual(lasting)
      expect(told(yield* sent(session))).toBe(200)
      expect(target.connections()).toBe(1)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Interrupted row takes its connection with it, and the next one is sent over a new one", () =>
    Effect.gen(function* () {
      const arrived = yield* Deferred.make<void>()
      let count = 0
      const target = yield* listening(
        server({
          execute: (socket) => {
            if (++count === 1) Deferred.doneUnsafe(arrived, Effect.void)
            else socket.write(okay(1, 1))
          }
        })
      )
      const session = yield* brokerSession(mysql, configOf(target))
      const sending = yield* Effect.forkChild(sent(session))
      yield* Deferred.await(arrived)
      yield* Fiber.interrupt(sending)
      expect(told(yield* sent(session))).toBe(200)
      expect(target.connections()).toBe(2)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )
})
