import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { readFileSync } from "node:fs"
import type { Socket } from "node:net"
import { TLSSocket } from "node:tls"
import type { Config } from "@tidegate/connectors/Settings"
import { natsJetStream } from "../../connectors/src/NatsJetStream.ts"
import type { Target } from "../../egress/test/targets.ts"
import { auth, brokers, brokerSession, forEver, listening } from "./Brokering.ts"
import { sent, told } from "./Delivering.ts"
import { type Answer, greeting, message, nats, serving } from "./FakeNats.ts"
import { fixture } from "./OwnBroker.ts"

/** Servers that are no NATS, or worse: each costs one attempt, and little memory. */

const kept = '{"stream":"ORDERS","seq":7}'
const confirming: Answer = (socket, inbox) => socket.write(message(inbox, kept))
const saying = (text: string) => nats((socket, inbox) => socket.write(message(inbox, text)))
const failing = (text: string) => nats((socket) => socket.write(`-ERR '${text}'\r\n`))
const greetingBy = (change: object) => nats(confirming, { info: greeting(change) })

const certificate = { cert: readFileSync(fixture("valid")), key: readFileSync(fixture("key")) }
const secured = (socket: Socket): TLSSocket => {
  const secure = new TLSSocket(socket, { isServer: true, ...certificate })
  // The gateway may refuse it.
  return secure.on("error", () => socket.destroy())
}

const protocol = { code: "PROTOCOL_ERROR", final: false, broken: true }
const tooLarge = { ...protocol, code: "RESPONSE_TOO_LARGE" }
const refused = { code: "BAD_RESPONSE", final: false, broken: false }
const notIn = { ...refused, code: "AUTH_REJECTED" }
const noTls = { ...protocol, code: "ERR_SSL_WRONG_VERSION_NUMBER" }

const strangers: ReadonlyArray<readonly [name: string, connection: (socket: Socket) => void, as: object | number]> = [
  ["that confirms", nats(confirming), 200],
  [
    "that confirms byte by byte, with headers",
    nats((socket, inbox) => {
      const text = `HMSG ${inbox} 1 12 ${12 + kept.length}\r\nNATS/1.0\r\n\r\n${kept}\r\n`
      for (const byte of `PING\r\n+OK\r\n${greeting()}${text}`) socket.write(byte)
    }),
    200
  ],
  [
    "that has no stream",
    nats((socket, inbox) => socket.write(`HMSG ${inbox} 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n`)),
    refused
  ],
  ["whose stream is full", saying('{"error":{"code":503,"err_code":10077}}'), refused],
  ["whose stream takes no such size", saying('{"error":{"code":400,"err_code":10054}}'), { ...refused, final: true }],
  ["whose error is named like a member of every object", saying('{"error":{"err_code":"constructor"}}'), refused],
  ["that answers with something else", saying("thank you"), refused],
  ["that names a stream of two lines", saying('{"stream":"a\\r\\nb","seq":1}'), refused],
  ["that answers with ten thousand lists", saying("[".repeat(10_000)), refused],
  ["that hangs up", (socket) => socket.end(), { ...protocol, code: "SOCKET_CLOSED" }],
  ["that speaks HTTP", (socket) => socket.write("HTTP/1.1 400 Bad Request\r\n\r\n"), protocol],
  ["that greets with a list", (socket) => socket.write("INFO [[1\r\n"), protocol],
  ["that greets with a message", (socket) => socket.write("MSG a 1 1\r\n"), protocol],
  ["that begins in the middle of the sign-in", (socket) => socket.write("PONG\r\n"), protocol],
  ["whose line never ends", (socket) => forEver(socket, Buffer.from("INFO ")), tooLarge],
  ["whose message has 4 GB", nats((socket, inbox) => socket.write(`MSG ${inbox} 1 4294967295\r\n`)), tooLarge],
  ["whose message has no length", nats((socket, inbox) => socket.write(`MSG ${inbox} 1 x\r\n`)), protocol],
  [
    "whose headers are longer than the message",
    nats((socket, inbox) => socket.write(`HMSG ${inbox} 1 9 1\r\n`)),
    protocol
  ],
  [
    "whose message is longer than it says",
    nats((socket, inbox) => socket.write(`MSG ${inbox} 1 1\r\n${kept}\r\n`)),
    protocol
  ],
  ["that sends messages of others", nats((socket) => socket.write(message("a", kept))), protocol],
  ["that takes no headers", greetingBy({ headers: false }), protocol],
  ["that wants TLS", greetingBy({ tls_required: true }), noTls],
  ["that takes small messages alone", greetingBy({ max_payload: 10 }), { ...refused, final: true }],
  ["that refuses the password", nats(confirming, { signIn: "-ERR 'Authorization Violation'\r\n" }), notIn],
  ["that has too many clients", (socket) => socket.end("-ERR 'maximum connections exceeded'\r\n"), refused],
  ["that forbids the subject", failing('Permissions Violation for Publish to "orders"'), notIn],
  [
    "that forbids something else and hangs up",
    nats((socket) => socket.end(`-ERR 'Permissions Violation for Publish to "a"'\r\n`)),
    { ...protocol, code: "SOCKET_CLOSED" }
  ],
  ["that finds the message too large", failing("Maximum Payload Violation"), { ...refused, final: true }],
  ["that stops", failing("Server Shutdown"), refused],
  ["that never answers the sign-in", (socket) => socket.write(greeting()), { ...protocol, code: "TIMEOUT" }],
  ["that never greets", () => undefined, { ...protocol, code: "TIMEOUT" }],
  ["that floods pings", nats((socket) => forEver(socket, Buffer.from("PING\r\n"))), tooLarge],
  ["that floods greetings", (socket) => forEver(socket, Buffer.from(greeting())), tooLarge]
]

const configOf = ({ port }: Target, change: Config = {}): Config => ({
  host: "target.test",
  port,
  subject: "orders",
  tls_mode: "disable",
  // A busy machine must not be taken for a server that does not answer.
  connect_timeout: 30,
  ...change
})

/** Only the servers that never answer are not waited for. */
const patienceFor = (as: object | number): Config =>
  Object.values(as).includes("TIMEOUT") ? { connect_timeout: 1 } : {}

describe("NATS server that is not trusted", () => {
  it.live.each(strangers)("Message to a server %s has the expected result", ([, connection, as]) =>
    Effect.gen(function* () {
      const target = yield* listening(connection)
      const session = yield* brokerSession(natsJetStream, configOf(target, patienceFor(as)))
      const ended = yield* sent(session)
      expect(told(ended)).toEqual(as)
      expect(ended.failure?.message ?? "").not.toContain(auth.password)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Server that pings thousands of times at once gets one answer at a time", () =>
    Effect.gen(function* () {
      let answers = 0
      const target = yield* listening(
        nats((socket, inbox, count) => {
          if (count === 1) {
            socket.on("data", (chunk: Buffer) => {
              answers += chunk.toString("latin1").split("PONG").length - 1
            })
            socket.write("PING\r\n".repeat(5_000))
          }
          socket.write(message(inbox, kept))
        })
      )
      const session = yield* brokerSession(natsJetStream, configOf(target))
      expect(told(yield* sent(session))).toBe(200)
      // The answers come before the second message.
      expect(told(yield* sent(session))).toBe(200)
      expect(answers).toBeGreaterThan(0)
      expect(answers).toBeLessThan(100)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Server's words are shown on one line, without the token", () =>
    Effect.gen(function* () {
      const token = "t0ken-of-all"
      const target = yield* listening(nats(confirming, { signIn: `-ERR 'Authorization\u0007 ${token}'\r\n` }))
      const { failure } = yield* sent(yield* brokerSession(natsJetStream, configOf(target), { token }))
      expect(failure?.message).toBe("the server does not let the destination in (AUTHORIZATION): Authorization  ****")
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Server at a private address is not connected to, nor is one that a greeting names", () =>
    Effect.gen(function* () {
      const other = yield* listening(() => undefined)
      const named = { connect_urls: [`127.0.0.1:${other.port}`] }
      const target = yield* listening((socket) => socket.end(greeting(named)))
      for (const host of ["target.test", "127.0.0.1", "::1"]) {
        const session = yield* brokerSession(natsJetStream, configOf(target, { host })).pipe(
          Effect.provide(brokers([]))
        )
        expect(told(yield* sent(session))).toEqual({ ...protocol, code: "TARGET_NOT_ALLOWED" })
      }
      expect(target.connections()).toBe(0)
      expect(told(yield* sent(yield* brokerSession(natsJetStream, configOf(target))))).toMatchObject({ broken: true })
      expect([target.connections(), other.connections()]).toEqual([1, 0])
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live.each([
    [
      "that begins after the greeting",
      (socket: Socket) => {
        socket.write(greeting({ tls_required: true }))
        serving(secured(socket), confirming)
      },
      {},
      200
    ],
    [
      "that begins before the greeting",
      (socket: Socket) => nats(confirming)(secured(socket)),
      { tls_first: true },
      200
    ],
    ["that there is not", nats(confirming), {}, noTls],
    [
      "after words in plain text",
      (socket: Socket) => {
        socket.write(`${greeting({ tls_required: true })}PO`)
        serving(secured(socket), confirming)
      },
      {},
      protocol
    ],
    [
      "after a whole line in plain text",
      (socket: Socket) => {
        socket.write(`${greeting({ tls_required: true })}PONG\r\n`)
        serving(secured(socket), confirming)
      },
      {},
      protocol
    ]
  ] as const)("Message over TLS %s has the expected result", ([, connection, change, as]) =>
    Effect.gen(function* () {
      const target = yield* listening(connection)
      const secure = { tls_mode: "verify-full", ...change }
      expect(told(yield* sent(yield* brokerSession(natsJetStream, configOf(target, secure))))).toEqual(as)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Confirmations come in any order, and a refused message fails alone among those under way", () =>
    Effect.gen(function* () {
      const inboxes: Array<string> = []
      const target = yield* listening(
        nats((socket, inbox) => {
          inboxes.push(inbox)
          if (inboxes.length < 3) return
          const full = message(inboxes[1]!, '{"error":{"code":503,"err_code":10077}}')
          socket.write(`${message(inboxes[2]!, kept)}${full}${message(inboxes[0]!, kept)}`)
        })
      )
      const session = yield* brokerSession(natsJetStream, configOf(target))
      const ends = yield* Effect.all(
        ["evt_1", "evt_2", "evt_3"].map((id) => sent(session, "{}", id)),
        { concurrency: "unbounded" }
      )
      expect(ends.map(told)).toEqual([200, refused, 200])
      expect(target.connections()).toBe(1)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Refusal that may be about another message is not final", () =>
    Effect.gen(function* () {
      const target = yield* listening(
        nats((socket, _, count) => {
          if (count === 2) socket.write("-ERR 'Maximum Payload Violation'\r\n")
        })
      )
      const session = yield* brokerSession(natsJetStream, configOf(target))
      const ends = yield* Effect.all([sent(session, "{}", "a"), sent(session, "{}", "b")], { concurrency: "unbounded" })
      expect(ends.map(told)).toEqual([refused, refused])
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Message after the server has hung up is sent over a new connection", () =>
    Effect.gen(function* () {
      const gone = yield* Deferred.make<void>()
      const target = yield* listening((socket) => {
        socket.on("close", () => Deferred.doneUnsafe(gone, Effect.void))
        nats((_, inbox) => socket.end(message(inbox, kept)))(socket)
      })
      const session = yield* brokerSession(natsJetStream, configOf(target))
      expect(told(yield* sent(session))).toBe(200)
      yield* Deferred.await(gone)
      expect(told(yield* sent(session))).toBe(200)
      expect(target.connections()).toBe(2)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Confirmation of an interrupted message is dropped, and the connection stays usable", () =>
    Effect.gen(function* () {
      const arrived = yield* Deferred.make<void>()
      let first = ""
      const target = yield* listening(
        nats((socket, inbox, count) => {
          if (count === 2) return socket.write(`${message(first, kept)}${message(inbox, '{"stream":"B","seq":8}')}`)
          first = inbox
          return Deferred.doneUnsafe(arrived, Effect.void)
        })
      )
      const session = yield* brokerSession(natsJetStream, configOf(target))
      const sending = yield* Effect.forkChild(sent(session))
      yield* Deferred.await(arrived)
      yield* Fiber.interrupt(sending)
      const { answer } = yield* sent(session)
      expect(answer?.body.toString()).toBe('{"stream":"B","sequence":8,"duplicate":false}')
      expect(target.connections()).toBe(1)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live(
    "Subject that is none, is too long, or belongs to the server, is a permanent failure, and nothing is sent",
    () =>
      Effect.gen(function* () {
        const target = yield* listening(nats(confirming))
        const session = yield* brokerSession(natsJetStream, configOf(target, { subject: "{{payload.to}}" }))
        const wrong = [
          "",
          "a b",
          "a..b",
          ".a",
          "a.",
          "a.*",
          ">",
          "a\tb\r\nPUB x 0",
          "$JS.API.STREAM.DELETE.ORDERS",
          "_INBOX.a",
          "ж".repeat(200)
        ]
        for (const to of wrong) {
          const ended = yield* sent(session, JSON.stringify({ to }))
          expect([to, told(ended)]).toEqual([to, { code: "TEMPLATE_ERROR", final: true, broken: false }])
        }
        expect(target.connections()).toBe(0)
      }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Seed with a wrong letter is reported as rejected credentials, and is not shown", () =>
    Effect.gen(function* () {
      const seed = "SUAASCIJBEEQSCIJBEEQSCIJBEEQSCIJBEEQSCIJBEEQSCIJBEEQSCKHGA"
      const target = yield* listening(nats(confirming))
      const { failure } = yield* sent(yield* brokerSession(natsJetStream, configOf(target), { seed }))
      expect(failure).toMatchObject({ code: "AUTH_REJECTED", final: false })
      expect(failure?.message).not.toContain(seed)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )
})
