import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import type { Socket } from "node:net"
import type { Config } from "@tidegate/connectors/Settings"
import { eventually } from "../../../test/support/Waiting.ts"
import type { Target } from "../../egress/test/targets.ts"
import { rabbitMq } from "../../connectors/src/RabbitMq.ts"
import {
  type Frame,
  frameKinds,
  FrameReader,
  headerFrame,
  long,
  longLong,
  longText,
  methodFrame,
  methods,
  octet,
  short,
  shortText,
  table,
  Values
} from "../src/AmqpFrames.ts"
import { auth, brokers, brokerSession, forEver, listening } from "./Brokering.ts"
import { sent, told } from "./Delivering.ts"

/** Brokers that are none, or worse: each costs one attempt, and little memory. */

const start = methodFrame(
  0,
  methods.start,
  short(9),
  table({ product: "x" }),
  longText("PLAIN AMQPLAIN"),
  longText("en_US")
)
const tune = (longest: number, heartbeat = 60): Buffer =>
  methodFrame(0, methods.tune, short(10), long(longest), short(heartbeat))
const closing = (code: number, said: string): Buffer =>
  methodFrame(0, methods.close, short(code), shortText(said), short(0), short(0))
const channelClosing = (code: number, said: string): Buffer =>
  methodFrame(1, methods.channelClose, short(code), shortText(said), short(0), short(0))
const ack = (tag: number, multiple = 0): Buffer => methodFrame(1, methods.ack, longLong(tag), octet(multiple))
const nack = (tag: number): Buffer => methodFrame(1, methods.nack, longLong(tag), octet(0))

/** A broker that lets everybody in, and then answers each message so: its number, and its header frame. */
const broker =
  (answer: (socket: Socket, tag: number, header: Buffer) => void, said: Record<number, Buffer> = {}) =>
  (socket: Socket): void => {
    const answers: Readonly<Record<number, Buffer>> = {
      [methods.startOk]: tune(131_072),
      [methods.open]: methodFrame(0, methods.openOk, shortText("")),
      [methods.channelOpen]: methodFrame(1, methods.channelOpenOk, longText("")),
      [methods.select]: methodFrame(1, methods.selectOk),
      ...said
    }
    let tag = 0
    const reader = new FrameReader(({ kind, payload }: Frame) => {
      if (kind === frameKinds.header) return answer(socket, ++tag, payload)
      if (kind !== frameKinds.method) return
      const next = answers[new Values(payload).long()]
      if (next !== undefined) socket.write(next)
    })
    reader.longest = 131_072
    socket.once("data", (first: Buffer) => {
      socket.write(start)
      reader.read(first.subarray(8))
      socket.on("data", (chunk: Buffer) => reader.read(chunk))
    })
  }
const atOnce =
  (bytes: Buffer) =>
  (socket: Socket): void =>
    void socket.once("data", () => socket.write(bytes))

const protocol = { code: "PROTOCOL_ERROR", final: false, broken: true }
const tooLarge = { ...protocol, code: "RESPONSE_TOO_LARGE" }
const closed = { ...protocol, code: "SOCKET_CLOSED" }
const refused = { code: "BAD_RESPONSE", final: false, broken: false }
const notIn = { ...refused, code: "AUTH_REJECTED" }

const head = (kind: number, size: number): Buffer => Buffer.concat([octet(kind), short(0), long(size)])

const strangers: ReadonlyArray<readonly [name: string, connection: (socket: Socket) => void, as: object | number]> = [
  ["that confirms", broker((socket, tag) => socket.write(ack(tag))), 200],
  ["that confirms all up to a message", broker((socket) => socket.write(ack(0, 1))), 200],
  ["that hangs up", (socket) => socket.once("data", () => socket.end()), closed],
  ["that speaks HTTP", atOnce(Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n")), protocol],
  ["that has another version", atOnce(Buffer.from("AMQP\0\0\u0008\0", "latin1")), protocol],
  ["whose first frame has 4 GB", atOnce(head(1, 2 ** 32 - 1)), tooLarge],
  ["whose frame has no end", atOnce(Buffer.concat([head(8, 0), octet(0)])), protocol],
  ["whose method is cut off", atOnce(methodFrame(0, methods.start, short(9), long(1_000))), protocol],
  ["that begins in the middle of the sign-in", atOnce(methodFrame(0, methods.openOk, shortText(""))), protocol],
  [
    "that takes no password",
    atOnce(methodFrame(0, methods.start, short(9), table({}), longText("EXTERNAL"), longText("en_US"))),
    { ...protocol, code: "AUTH_REJECTED" }
  ],
  ["that wants frames of one byte", broker(() => undefined, { [methods.startOk]: tune(1) }), protocol],
  ["that refuses the password", broker(() => undefined, { [methods.startOk]: closing(403, "no") }), notIn],
  ["without the virtual host", broker(() => undefined, { [methods.open]: closing(530, "no") }), notIn],
  ["that stops", broker((socket) => socket.write(closing(320, "shutdown"))), { ...refused, code: "SOCKET_CLOSED" }],
  ["without the exchange", broker((socket) => socket.write(channelClosing(404, "no exchange"))), refused],
  [
    "that finds the message too large",
    broker((socket) => socket.write(channelClosing(406, "too large"))),
    { ...refused, final: true }
  ],
  ["with a full queue", broker((socket, tag) => socket.write(nack(tag))), refused],
  ["that never answers", () => undefined, { ...protocol, code: "TIMEOUT" }],
  ["that floods heartbeats", (socket) => forEver(socket, Buffer.concat([head(8, 0), octet(0xce)])), tooLarge],
  ["that floods confirmations", broker((socket) => forEver(socket, ack(99))), tooLarge],
  [
    "that floods bodies",
    broker((socket) => forEver(socket, Buffer.concat([head(3, 1), octet(1), octet(0xce)]))),
    tooLarge
  ],
  ["that delivers messages", broker((socket) => socket.write(methodFrame(1, 60 * 65_536 + 60))), protocol],
  ["that sends a header for nothing", broker((socket) => socket.write(headerFrame(1, short(0), 0))), protocol]
]

const configOf = ({ port }: Target, change: Config = {}): Config => ({
  host: "target.test",
  port,
  exchange: "orders",
  routing_key: "order.{{payload.type}}",
  tls_mode: "disable",
  // A busy machine must not be taken for a server that does not answer.
  connect_timeout: 30,
  ...change
})

/** Only the servers that never answer are not waited for. */
const patienceFor = (as: object | number): Config =>
  Object.values(as).includes("TIMEOUT") ? { connect_timeout: 1 } : {}

describe("AMQP broker that is not trusted", () => {
  it.live.each(strangers)("Message to a broker %s has the expected result", ([, connection, as]) =>
    Effect.gen(function* () {
      const session = yield* brokerSession(rabbitMq, configOf(yield* listening(connection), patienceFor(as)))
      const ended = yield* sent(session)
      expect(told(ended)).toEqual(as)
      expect(ended.failure?.message ?? "").not.toContain(auth.password)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Broker's words are shown on one line, without the password", () =>
    Effect.gen(function* () {
      const target = yield* listening(
        broker(() => undefined, { [methods.startOk]: closing(403, `login\r\nrefused ${auth.password}`) })
      )
      const { failure } = yield* sent(yield* brokerSession(rabbitMq, configOf(target)))
      expect(failure?.message).toBe("the broker does not let the destination in (403): login refused ****")
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Broker at a private address is not connected to", () =>
    Effect.gen(function* () {
      const target = yield* listening(broker((socket, tag) => socket.write(ack(tag))))
      for (const host of ["target.test", "127.0.0.1", "::1"]) {
        const ended = yield* sent(yield* brokerSession(rabbitMq, configOf(target, { host })))
        expect(told(ended)).toEqual({ ...protocol, code: "TARGET_NOT_ALLOWED" })
      }
      expect(target.connections()).toBe(0)
    }).pipe(Effect.scoped, Effect.provide(brokers([])))
  )

  it.live("Returned message fails alone, and is told from others that are under way", () =>
    Effect.gen(function* () {
      const waiting: Array<Buffer> = []
      const target = yield* listening(
        broker((socket, tag, header) => {
          waiting.push(header)
          if (tag < 3) return
          // The second of three comes back, with its body, before all are confirmed at once.
          const returned = methodFrame(
            1,
            methods.returned,
            short(312),
            shortText("NO_ROUTE"),
            shortText(""),
            shortText("")
          )
          const back = Buffer.concat([
            octet(frameKinds.header),
            short(1),
            long(waiting[1]!.length),
            waiting[1]!,
            octet(0xce)
          ])
          const body = Buffer.concat([head(3, 2), Buffer.from("{}"), octet(0xce)])
          socket.write(Buffer.concat([returned, back, body, ack(3, 1)]))
        })
      )
      const session = yield* brokerSession(rabbitMq, configOf(target))
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
        broker((socket, tag) => {
          if (tag === 2) socket.write(channelClosing(406, "too large"))
        })
      )
      const session = yield* brokerSession(rabbitMq, configOf(target))
      const ends = yield* Effect.all([sent(session, "{}", "a"), sent(session, "{}", "b")], { concurrency: "unbounded" })
      expect(ends.map(told)).toEqual([refused, refused])
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Message after the broker has hung up is sent over a new connection", () =>
    Effect.gen(function* () {
      const gone = yield* Deferred.make<void>()
      const target = yield* listening((socket) => {
        socket.on("close", () => Deferred.doneUnsafe(gone, Effect.void))
        broker((_, tag) => socket.end(ack(tag)))(socket)
      })
      const session = yield* brokerSession(rabbitMq, configOf(target))
      expect(told(yield* sent(session))).toBe(200)
      yield* Deferred.await(gone)
      expect(told(yield* sent(session))).toBe(200)
      expect(target.connections()).toBe(2)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Blocked broker gets nothing until it takes messages again", () =>
    Effect.gen(function* () {
      let numbers = 0
      let unblock = (): void => undefined
      const target = yield* listening(
        broker((socket, tag) => {
          numbers = tag
          if (tag > 1) return socket.write(ack(tag))
          unblock = () => void socket.write(methodFrame(0, methods.unblocked))
          return socket.write(Buffer.concat([methodFrame(0, methods.blocked, shortText("low on disk")), ack(tag)]))
        })
      )
      const session = yield* brokerSession(rabbitMq, configOf(target))
      expect(told(yield* sent(session))).toBe(200)
      const blocked = yield* sent(session)
      expect(told(blocked)).toEqual(refused)
      expect(blocked.failure?.message).toContain("low on disk")
      expect(numbers).toBe(1)
      unblock()
      // The gateway hears of it when the bytes have arrived.
      yield* Effect.promise(() =>
        eventually(
          "a message is taken again",
          () => Effect.runPromise(sent(session)),
          ({ failure }) => failure === null
        )
      )
      expect(numbers).toBe(2)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Interrupted message leaves the connection usable", () =>
    Effect.gen(function* () {
      const arrived = yield* Deferred.make<void>()
      const target = yield* listening(
        broker((socket, tag) => {
          if (tag === 1) return Deferred.doneUnsafe(arrived, Effect.void)
          return socket.write(ack(2, 1))
        })
      )
      const session = yield* brokerSession(rabbitMq, configOf(target))
      const sending = yield* Effect.forkChild(sent(session))
      yield* Deferred.await(arrived)
      yield* Fiber.interrupt(sending)
      expect(told(yield* sent(session))).toBe(200)
      expect(target.connections()).toBe(1)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Message that must not start is not sent", () =>
    Effect.gen(function* () {
      let numbers = 0
      const target = yield* listening(broker((_, tag) => void (numbers = tag)))
      const session = yield* brokerSession(rabbitMq, configOf(target))
      const ended = yield* sent(session, "{}", "evt_1", () => false)
      expect(told(ended)).toEqual({ code: "NETWORK_REQUEST_CANCELED", final: false, broken: false })
      expect(numbers).toBe(0)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Routing key of more than 255 bytes is a permanent failure, and is not sent", () =>
    Effect.gen(function* () {
      const target = yield* listening(broker((socket, tag) => socket.write(ack(tag))))
      const session = yield* brokerSession(rabbitMq, configOf(target))
      const ended = yield* sent(session, JSON.stringify({ type: "ж".repeat(130) }))
      expect(told(ended)).toEqual({ code: "TEMPLATE_ERROR", final: true, broken: false })
      expect(target.connections()).toBe(0)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )
})
