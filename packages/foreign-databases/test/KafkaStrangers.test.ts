import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { createHash, createHmac, pbkdf2Sync } from "node:crypto"
import { readFileSync } from "node:fs"
import type { Socket } from "node:net"
import { TLSSocket } from "node:tls"
import type { Config } from "@tidegate/connectors/Settings"
import { kafka } from "../../connectors/src/Kafka.ts"
import type { Target } from "../../egress/test/targets.ts"
import { auth, brokers, brokerSession, forEver, listening } from "./Brokering.ts"
import { sent, told } from "./Delivering.ts"
import {
  answerTo,
  authenticateAnswer,
  broker,
  calls,
  handshakeAnswer,
  instead,
  int64,
  metadataAnswer,
  producedAnswer,
  producerAnswer,
  type Told,
  versionsAnswer,
  writtenIn
} from "./FakeKafka.ts"
import { fixture } from "./OwnBroker.ts"

/** Clusters that are no Kafka, or worse: each costs one attempt, and little memory. */

const taking = broker(() => undefined)
const telling = (change: Partial<Told>) =>
  broker(
    instead(calls.metadata, (_, { localPort }) =>
      metadataAnswer({ brokers: [[1, "target.test", localPort!]], leaders: [1], ...change })
    )
  )
const refusing = (error: number, said = "") =>
  broker(instead(calls.produce, (call) => producedAnswer(writtenIn(call).partition, { error, said })))

const protocol = { code: "PROTOCOL_ERROR", final: false, broken: false }
const tooLarge = { ...protocol, code: "RESPONSE_TOO_LARGE" }
const refused = { ...protocol, code: "BAD_RESPONSE" }
const notIn = { ...protocol, code: "AUTH_REJECTED" }
const finally_ = { ...refused, final: true }

const strangers: ReadonlyArray<readonly [name: string, connection: (socket: Socket) => void, as: object | number]> = [
  ["that takes it", taking, 200],
  [
    "that answers byte by byte",
    broker((call, socket) => {
      if (call.key !== calls.versions) return undefined
      for (const byte of answerTo(call, versionsAnswer())) socket.write(Buffer.from([byte]))
      return null
    }),
    200
  ],
  ["that has no such topic", telling({ error: 3, leaders: [] }), refused],
  ["whose topic may not be seen", telling({ error: 29, leaders: [] }), notIn],
  ["whose topic has no partition", telling({ leaders: [] }), protocol],
  ["that tells of another topic", telling({ topic: "other" }), protocol],
  ["that numbers two partitions alike", telling({ leaders: [1, 1], numbers: [0, 0] }), protocol],
  ["whose partition has a number below zero", telling({ numbers: [-1] }), protocol],
  ["whose broker has no address", telling({ brokers: [[1, "a b", 9092]] }), protocol],
  ["whose broker has no port", telling({ brokers: [[1, "target.test", 0]] }), protocol],
  [
    "whose broker is at an address that is not allowed",
    telling({ brokers: [[1, "10.0.0.1", 9092]] }),
    {
      ...protocol,
      code: "TARGET_NOT_ALLOWED"
    }
  ],
  ["that finds the record too large", refusing(10), finally_],
  ["that finds the record wrong", refusing(87, "no key"), finally_],
  ["that lets the user not write", refusing(29), notIn],
  ["that has failed", refusing(-1), refused],
  ["whose error is new", refusing(9_999), refused],
  ["that answers for another partition", broker(instead(calls.produce, producedAnswer(5))), protocol],
  ["that answers for another topic", broker(instead(calls.produce, producedAnswer(0, { topic: "a" }))), protocol],
  ["that gives no number to the gateway", broker(instead(calls.producer, producerAnswer(-1, 31))), notIn],
  ["that is too old", broker(instead(calls.versions, versionsAnswer({ 0: 2, 3: 1, 18: 0 }))), protocol],
  ["that does not know the password", broker(instead(calls.authenticate, authenticateAnswer("", 58, "no"))), notIn],
  ["that offers no such sign-in", broker(instead(calls.handshake, handshakeAnswer(33))), notIn],
  ["that hangs up", (socket) => socket.end(), { ...protocol, code: "SOCKET_CLOSED" }],
  ["that speaks HTTP", (socket) => socket.write("HTTP/1.1 400 Bad Request\r\n\r\n"), protocol],
  ["whose frame has a negative length", (socket) => socket.write(Buffer.from([255, 255, 255, 255])), protocol],
  [
    "that answers another call",
    broker((call) => (call.key === calls.metadata ? Buffer.alloc(0) : undefined)),
    protocol
  ],
  [
    "whose answer has the number of another",
    broker((call, socket) => {
      if (call.key === calls.metadata) socket.write(answerTo({ correlation: call.correlation + 1 }, int64(0)))
      return call.key === calls.metadata ? null : undefined
    }),
    protocol
  ],
  [
    "whose answer has 2 GB",
    broker((call, socket) => {
      if (call.key === calls.metadata) socket.write(Buffer.from([0x7f, 255, 255, 255]))
      return call.key === calls.metadata ? null : undefined
    }),
    tooLarge
  ],
  [
    "whose answer says that it has two thousand million brokers",
    broker(instead(calls.metadata, Buffer.from([0, 0, 0, 0, 0x7f, 255, 255, 255]))),
    protocol
  ],
  [
    "that floods answers",
    broker((call, socket) => {
      if (call.key === calls.versions) forEver(socket, answerTo(call, versionsAnswer()))
      return call.key === calls.versions ? null : undefined
    }),
    protocol
  ],
  ["that never answers", () => undefined, { ...protocol, code: "TIMEOUT" }]
]

const configOf = ({ port }: Pick<Target, "port">, change: Config = {}): Config => ({
  bootstrap_servers: `target.test:${port}`,
  topic: "orders",
  tls_mode: "disable",
  sasl_mechanism: "PLAIN",
  // A busy machine must not be taken for a broker that does not answer.
  connect_timeout: 30,
  ...change
})

/** Only the brokers that never answer are not waited for. */
const patienceFor = (as: object | number): Config =>
  Object.values(as).includes("TIMEOUT") ? { connect_timeout: 1 } : {}

describe("Kafka cluster that is not trusted", () => {
  it.live.each(strangers)("Record for a cluster %s has the expected result", ([, connection, as]) =>
    Effect.gen(function* () {
      const target = yield* listening(connection)
      const ended = yield* sent(yield* brokerSession(kafka, configOf(target, patienceFor(as))))
      expect(told(ended)).toEqual(as)
      expect(ended.failure?.message ?? "").not.toContain(auth.password)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Broker's words are shown on one line, without the password", () =>
    Effect.gen(function* () {
      const words = authenticateAnswer("", 58, `no\u0007 ${auth.password}`)
      const target = yield* listening(broker(instead(calls.authenticate, words)))
      const { failure } = yield* sent(yield* brokerSession(kafka, configOf(target)))
      expect(failure?.message).toBe(
        "the cluster does not know the user or the password (SASL_AUTHENTICATION_FAILED): no  ****"
      )
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Server at a private address is not connected to, and neither is a broker that the cluster names", () =>
    Effect.gen(function* () {
      const inward = yield* listening(() => undefined)
      const target = yield* listening(taking)
      for (const host of ["target.test", "127.0.0.1", "[::1]"]) {
        const config = configOf(target, { bootstrap_servers: `${host}:${target.port}` })
        const session = yield* brokerSession(kafka, config).pipe(Effect.provide(brokers([])))
        expect(told(yield* sent(session))).toEqual({ ...protocol, code: "TARGET_NOT_ALLOWED" })
      }
      expect(target.connections()).toBe(0)
      // Only the address of the cluster's own server is allowed here.
      const naming = yield* listening(telling({ brokers: [[1, "::1", inward.port]] }))
      const session = yield* brokerSession(kafka, configOf(naming)).pipe(Effect.provide(brokers(["127.0.0.0/8"])))
      expect(told(yield* sent(session))).toEqual({ ...protocol, code: "TARGET_NOT_ALLOWED" })
      expect([naming.connections(), inward.connections()]).toEqual([1, 0])
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Broker that the cluster names gets no credentials without a certificate of its name", () =>
    Effect.gen(function* () {
      const certificate = { cert: readFileSync(fixture("valid")), key: readFileSync(fixture("key")) }
      const signedIn: Array<string> = []
      const target = yield* listening((socket) => {
        const secure = new TLSSocket(socket, { isServer: true, ...certificate })
        secure.on("error", () => socket.destroy())
        broker((call) => {
          if (call.key === calls.authenticate) signedIn.push(call.values.bytes().toString())
          return call.key === calls.metadata
            ? metadataAnswer({ brokers: [[1, "other.example", socket.localPort!]], leaders: [1] })
            : undefined
        })(secure)
      })
      const ended = yield* sent(yield* brokerSession(kafka, configOf(target, { tls_mode: "verify-full" })))
      expect(told(ended)).toEqual({ ...protocol, code: "ERR_TLS_CERT_ALTNAME_INVALID" })
      expect(signedIn).toEqual([`\0${auth.username}\0${auth.password}`])
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Key that is empty or too long is a permanent failure, and nothing is sent", () =>
    Effect.gen(function* () {
      const target = yield* listening(taking)
      const session = yield* brokerSession(kafka, configOf(target, { key: "{{payload.key}}" }))
      for (const key of ["", " ", "ж".repeat(600)]) {
        const ended = yield* sent(session, JSON.stringify({ key }))
        expect(told(ended)).toEqual({ ...protocol, code: "TEMPLATE_ERROR", final: true })
      }
      expect(target.connections()).toBe(0)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )
})

/** The server's side of SCRAM, which proves by `known` that it knows the password. */
const scrammed = (known: string, { count = 4_096, hash = "sha256" } = {}) => {
  let said = ""
  return instead(calls.authenticate, ({ values }) => {
    const words = values.bytes().toString()
    const salt = Buffer.from("salted")
    if (words.startsWith("n,,")) {
      const bare = words.slice(3)
      const challenge = `r=${/r=(.*)/.exec(bare)![1]}server,s=${salt.toString("base64")},i=${count}`
      said = `${bare},${challenge}`
      return authenticateAnswer(challenge)
    }
    const [, unproved, proof] = /^(.*),p=(.*)$/.exec(words)!
    const salted = pbkdf2Sync(known, salt, count, hash === "sha256" ? 32 : 64, hash)
    const mac = (key: Buffer, text: string) => createHmac(hash, key).update(text).digest()
    const key = mac(salted, "Client Key")
    const signature = mac(createHash(hash).update(key).digest(), `${said},${unproved}`)
    const expected = Buffer.from(key.map((byte, i) => byte ^ signature[i]!)).toString("base64")
    const own = mac(mac(salted, "Server Key"), `${said},${unproved}`).toString("base64")
    // A server that knows another password lets the client in nevertheless.
    return known === auth.password && proof !== expected ? authenticateAnswer("", 58) : authenticateAnswer(`v=${own}`)
  })
}

describe("SCRAM at a Kafka cluster", () => {
  it.live.each([
    ["proves it", scrammed(auth.password), 200],
    ["proves another one", scrammed("other"), notIn],
    ["wants few hashes", scrammed(auth.password, { count: 4_095 }), protocol],
    ["wants many hashes", scrammed(auth.password, { count: 100_001 }), protocol],
    ["asks for nothing", instead(calls.authenticate, authenticateAnswer("")), protocol]
  ] as const)("Record for a cluster that has to prove the password and %s has the expected result", ([, answer, as]) =>
    Effect.gen(function* () {
      const target = yield* listening(broker(answer))
      const session = yield* brokerSession(kafka, configOf(target, { sasl_mechanism: "SCRAM-SHA-256" }))
      expect(told(yield* sent(session))).toEqual(as)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("SHA-512 is spoken, too", () =>
    Effect.gen(function* () {
      const target = yield* listening(broker(scrammed(auth.password, { hash: "sha512" })))
      const session = yield* brokerSession(kafka, configOf(target, { sasl_mechanism: "SCRAM-SHA-512" }))
      expect(told(yield* sent(session))).toBe(200)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )
})
