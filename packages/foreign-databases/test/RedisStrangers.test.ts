import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import type { Socket } from "node:net"
import type { Config } from "@tidegate/connectors/Settings"
import { redisStream } from "../../connectors/src/RedisStream.ts"
import type { Target } from "../../egress/test/targets.ts"
import { auth, brokers, brokerSession, forEver, listening } from "./Brokering.ts"
import { sent, told } from "./Delivering.ts"

/** Servers that are no Redis, or worse: each costs one attempt, and little memory. */

const id = "$3\r\n1-0\r\n"

/** A server that lets everybody in, and answers each entry so. */
const redis =
  (answer: (socket: Socket, count: number) => void, signIn = "+OK\r\n") =>
  (socket: Socket): void => {
    let count = 0
    socket.on("data", (chunk: Buffer) => {
      const said = chunk.toString("latin1")
      if (said.includes("AUTH")) socket.write(signIn)
      for (let i = said.split("XADD").length; i > 1; i--) answer(socket, ++count)
    })
  }
const saying = (text: string) => redis((socket) => socket.write(text))
const atOnce =
  (text: string) =>
  (socket: Socket): void =>
    void socket.once("data", () => socket.write(text))

const protocol = { code: "PROTOCOL_ERROR", final: false, broken: true }
const tooLarge = { ...protocol, code: "RESPONSE_TOO_LARGE" }
const refused = { code: "BAD_RESPONSE", final: false, broken: false }
const notIn = { ...refused, code: "AUTH_REJECTED" }

const strangers: ReadonlyArray<readonly [name: string, connection: (socket: Socket) => void, as: object | number]> = [
  ["that answers with the id", saying(id), 200],
  [
    "that answers byte by byte",
    redis((socket) => {
      for (const byte of id) socket.write(byte)
    }),
    200
  ],
  ["that hangs up", (socket) => socket.once("data", () => socket.end()), { ...protocol, code: "SOCKET_CLOSED" }],
  ["that speaks HTTP", atOnce("HTTP/1.1 400 Bad Request\r\n\r\n"), protocol],
  ["that ends its lines as it likes", atOnce("+OK\n"), protocol],
  ["whose line never ends", (socket) => forEver(socket, Buffer.from("+a")), tooLarge],
  ["whose text has 4 GB", saying("$4294967295\r\n"), tooLarge],
  ["whose text has no length", saying("$-1\r\n"), protocol],
  ["whose text is longer than it says", saying("$1\r\n1-0\r\n"), protocol],
  ["that answers with a list of lists", saying("*1000000000\r\n*1000000000\r\n"), protocol],
  ["that answers what nobody has asked", saying(id.repeat(2)), 200],
  ["that has too many clients", (socket) => socket.end("-ERR max number of clients reached\r\n"), refused],
  ["that refuses the password", redis(() => undefined, "-WRONGPASS no\r\n"), notIn],
  ["that allows nobody from outside", (socket) => socket.end("-DENIED Redis is running in protected mode\r\n"), notIn],
  ["that forbids the stream", saying("-NOPERM no\r\n"), notIn],
  ["whose key is no stream", saying("-WRONGTYPE no\r\n"), { ...refused, final: true }],
  ["whose memory is full", saying("-OOM command not allowed\r\n"), refused],
  ["that has become a replica", saying("-READONLY no\r\n"), { ...refused, broken: true }],
  ["that sends to another host", saying("-MOVED 1 127.0.0.1:1\r\n"), refused],
  ["whose error is named like a member of every object", saying("-constructor\r\n"), refused],
  ["that never answers the sign-in", () => undefined, { ...protocol, code: "TIMEOUT" }],
  ["that floods answers", redis((socket) => forEver(socket, Buffer.from("-OOM\r\n"))), refused]
]

const configOf = ({ port }: Target, change: Config = {}): Config => ({
  host: "target.test",
  port,
  stream: "orders",
  tls_mode: "disable",
  // A busy machine must not be taken for a server that does not answer.
  connect_timeout: 30,
  ...change
})

/** Only the servers that never answer are not waited for. */
const patienceFor = (as: object | number): Config =>
  Object.values(as).includes("TIMEOUT") ? { connect_timeout: 1 } : {}

describe("Redis server that is not trusted", () => {
  it.live.each(strangers)("Entry for a server %s has the expected result", ([, connection, as]) =>
    Effect.gen(function* () {
      const session = yield* brokerSession(redisStream, configOf(yield* listening(connection), patienceFor(as)))
      const ended = yield* sent(session)
      expect(told(ended)).toEqual(as)
      expect(ended.failure?.message ?? "").not.toContain(auth.password)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Server's words are shown on one line, without the password", () =>
    Effect.gen(function* () {
      const target = yield* listening(redis(() => undefined, `-WRONGPASS not\u0007 ${auth.password}\r\n`))
      const { failure } = yield* sent(yield* brokerSession(redisStream, configOf(target)))
      expect(failure?.message).toBe("the server does not know the user or the password (WRONGPASS): not  ****")
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Server at a private address is not connected to", () =>
    Effect.gen(function* () {
      const target = yield* listening(saying(id))
      for (const host of ["target.test", "127.0.0.1", "::1"]) {
        const ended = yield* sent(yield* brokerSession(redisStream, configOf(target, { host })))
        expect(told(ended)).toEqual({ ...protocol, code: "TARGET_NOT_ALLOWED" })
      }
      expect(target.connections()).toBe(0)
    }).pipe(Effect.scoped, Effect.provide(brokers([])))
  )

  it.live("Refused entry fails alone among those under way", () =>
    Effect.gen(function* () {
      const target = yield* listening(
        redis((socket, count) => {
          if (count === 3) socket.write(`${id}-WRONGTYPE no\r\n${id}`)
        })
      )
      const session = yield* brokerSession(redisStream, configOf(target))
      const ends = yield* Effect.all(
        ["evt_1", "evt_2", "evt_3"].map((id) => sent(session, "{}", id)),
        { concurrency: "unbounded" }
      )
      expect(ends.map(told)).toEqual([200, { ...refused, final: true }, 200])
      expect(target.connections()).toBe(1)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Entry after the server has hung up is sent over a new connection", () =>
    Effect.gen(function* () {
      const gone = yield* Deferred.make<void>()
      const target = yield* listening((socket) => {
        socket.on("close", () => Deferred.doneUnsafe(gone, Effect.void))
        redis(() => socket.end(id))(socket)
      })
      const session = yield* brokerSession(redisStream, configOf(target))
      expect(told(yield* sent(session))).toBe(200)
      yield* Deferred.await(gone)
      expect(told(yield* sent(session))).toBe(200)
      expect(target.connections()).toBe(2)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Answer to an interrupted entry is not taken for the answer to the next one", () =>
    Effect.gen(function* () {
      const arrived = yield* Deferred.make<void>()
      const target = yield* listening(
        redis((socket, count) => {
          if (count === 1) return Deferred.doneUnsafe(arrived, Effect.void)
          return socket.write("-WRONGTYPE no\r\n$3\r\n2-0\r\n")
        })
      )
      const session = yield* brokerSession(redisStream, configOf(target))
      const sending = yield* Effect.forkChild(sent(session))
      yield* Deferred.await(arrived)
      yield* Fiber.interrupt(sending)
      const { answer } = yield* sent(session)
      expect(answer?.body.toString()).toBe('{"id":"2-0"}')
      expect(target.connections()).toBe(1)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live(
    "Stream without a name, or with one of more than 1024 bytes, is a permanent failure, and nothing is sent",
    () =>
      Effect.gen(function* () {
        const target = yield* listening(saying(id))
        const session = yield* brokerSession(redisStream, configOf(target, { stream: "{{payload.type}}" }))
        for (const type of ["", "ж".repeat(600)]) {
          const ended = yield* sent(session, JSON.stringify({ type }))
          expect(told(ended)).toEqual({ code: "TEMPLATE_ERROR", final: true, broken: false })
        }
        expect(target.connections()).toBe(0)
      }).pipe(Effect.scoped, Effect.provide(brokers()))
  )
})
