import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type { Socket } from "node:net"
import type { AmqpQueue } from "@tidegate/connectors/Subscriptions"
import { maxMessageBody } from "@tidegate/model/BrokerSource"
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
import { messageIn } from "../src/AmqpProperties.ts"
import { auth, forEver, listening } from "./Brokering.ts"
import { FakeRabbit } from "./FakeRabbit.ts"
import { numbered, opened, rejecting, running, seen, stored, nextOf } from "./Subscribing.ts"

/** Subscriptions at brokers: first at one that keeps to the protocol, then at strangers. */

const placeAt = (port: number, change: Partial<AmqpQueue> = {}): AmqpQueue => ({
  host: "broker.test",
  port,
  ...auth,
  tls: false,
  // A busy machine must not be taken for a server that does not answer.
  connectTimeout: 30,
  vhost: "/",
  queue: "orders",
  prefetch: 5,
  ...change
})

const open = (place: AmqpQueue, allow?: ReadonlyArray<string>) => opened("amqp", place, allow)

const fake = running(() => FakeRabbit.start(auth.password))

describe("Subscription at a broker that speaks AMQP", () => {
  it.live("A message arrives with its id, its headers and what the broker says of it", () =>
    Effect.gen(function* () {
      const broker = yield* fake
      broker.publish("orders", { id: "m1", body: '{"a":1}', headers: { "X-Kind": "paid" } })
      const subscription = yield* open(placeAt(broker.port))
      const [received] = yield* subscription.take
      expect(received).toMatchObject({
        id: "m1",
        contentType: "application/json",
        contentEncoding: null,
        headers: [["X-Kind", "paid"]],
        facts: { "x-gateway-exchange": "orders", "x-gateway-routing-key": "order.paid" },
        size: 7
      })
      expect(Buffer.from(received!.body!).toString()).toBe('{"a":1}')
    })
  )

  it.live("No more messages are delivered than are prefetched, until one is settled", () =>
    Effect.gen(function* () {
      const broker = yield* fake
      const queue = broker.queue("orders")
      broker.publish("orders", ...numbered(12))
      const subscription = yield* open(placeAt(broker.port))
      const settled = (yield* stored(subscription, 12)).map(({ id }) => id)
      yield* seen("all are settled", () => queue.settled.length === 12)
      expect(settled).toEqual(numbered(12).map(({ id }) => id))
      expect(queue.mostUnsettled).toBe(5)
    })
  )

  it.live("A message that is not settled when the connection ends is delivered again, and a rejected one is not", () =>
    Effect.gen(function* () {
      const broker = yield* fake
      const queue = broker.queue("orders")
      broker.publish("orders", ...numbered(2))
      const first = yield* open(placeAt(broker.port))
      const arrived = yield* nextOf(first, 2)
      yield* first.settle(rejecting(arrived.slice(0, 1)))
      yield* seen("the broker knows", () => queue.dead.length === 1)
      broker.cut()
      expect(yield* Effect.flip(first.take)).toMatchObject({ _tag: "SessionFailure", code: "SOCKET_CLOSED" })
      const second = yield* open(placeAt(broker.port))
      expect((yield* second.take).map(({ id }) => id)).toEqual(["m1"])
      expect(queue.dead).toEqual(["m0"])
    })
  )

  it.live("A message that is too large arrives without its body, and those behind it arrive whole", () =>
    Effect.gen(function* () {
      const broker = yield* fake
      const [large, most] = [maxMessageBody + 1, maxMessageBody]
      broker.publish("orders", { id: "large", body: Buffer.alloc(large) }, { id: "most", body: Buffer.alloc(most, 7) })
      const subscription = yield* open(placeAt(broker.port))
      const arrived = yield* nextOf(subscription, 2)
      expect(arrived.map(({ body, id, size }) => [id, size, body?.length])).toEqual([
        ["large", large, undefined],
        ["most", most, most]
      ])
    })
  )

  it.live("While messages wait that are not taken, no more is read than a few of them", () =>
    Effect.gen(function* () {
      const broker = yield* fake
      const body = Buffer.alloc(300_000)
      broker.publish("orders", ...Array.from({ length: 40 }, (_, n) => ({ id: `m${n}`, body })))
      const subscription = yield* open(placeAt(broker.port, { prefetch: 40 }))
      const taken: Array<number> = []
      while (taken.reduce((sum, n) => sum + n, 0) < 40) {
        const received = yield* subscription.take
        taken.push(received.length)
      }
      // What waits is at most a megabyte and one message: never the twelve that were delivered.
      expect(Math.max(...taken)).toBeLessThanOrEqual(5)
    })
  )

  it.live("A private address that is not allowed is not connected to", () =>
    Effect.gen(function* () {
      const broker = yield* fake
      const failure = yield* Effect.flip(open(placeAt(broker.port), []))
      expect(failure).toMatchObject({ code: "TARGET_NOT_ALLOWED" })
      expect(broker.signIns).toBe(0)
    })
  )
})

describe("Headers of a message of AMQP", () => {
  it("Values of all kinds are read, and tables, lists and long texts are passed over", () => {
    const field = (name: string, kind: string, ...bytes: ReadonlyArray<Uint8Array>) =>
      Buffer.concat([shortText(name), Buffer.from(kind), ...bytes])
    const double = Buffer.alloc(8)
    double.writeDoubleBE(1.5)
    const headers = Buffer.concat([
      field("text", "S", longText("a")),
      field("yes", "t", octet(1)),
      field("byte", "b", Buffer.from([0xff])),
      field("number", "I", long(7)),
      field("count", "l", longLong(9)),
      field("double", "d", double),
      field("deep", "F", table({ a: { b: "c" } })),
      field("list", "A", long(1), Buffer.from("V")),
      field("none", "V"),
      field("long", "S", longText("x".repeat(2_000))),
      field("last", "S", longText("z"))
    ])
    const header = Buffer.concat([short(60), short(0), longLong(3), short(0x2000), long(headers.length), headers])
    expect(messageIn(header)).toEqual({
      id: null,
      size: 3,
      contentType: null,
      contentEncoding: null,
      headers: [
        ["text", "a"],
        ["yes", "true"],
        ["byte", "-1"],
        ["number", "7"],
        ["count", "9"],
        ["double", "1.5"],
        ["last", "z"]
      ]
    })
  })

  it("No more than fifty headers of a message are taken", () => {
    const one = Buffer.concat([shortText("a"), Buffer.from("t"), octet(1)])
    const headers = Buffer.concat(Array.from({ length: 10_000 }, () => one))
    const header = Buffer.concat([short(60), short(0), longLong(0), short(0x2000), long(headers.length), headers])
    expect(messageIn(header).headers).toHaveLength(50)
  })
})

const greeting = methodFrame(0, methods.start, short(9), table({}), longText("PLAIN"), longText("en_US"))
const delivery = (tag: number) =>
  methodFrame(1, methods.deliver, shortText("tidegate"), longLong(tag), octet(0), shortText("e"), shortText("k"))
const body = (size: number) => Buffer.concat([octet(3), short(1), long(size), Buffer.alloc(size), octet(0xce)])
const head = (size: number) => headerFrame(1, short(0), size)

/** A broker that lets everybody subscribe, and then does this. */
const stranger =
  (then: (socket: Socket) => void) =>
  (socket: Socket): void => {
    const answers: Readonly<Record<number, Buffer>> = {
      [methods.startOk]: methodFrame(0, methods.tune, short(10), long(131_072), short(60)),
      [methods.open]: methodFrame(0, methods.openOk, shortText("")),
      [methods.channelOpen]: methodFrame(1, methods.channelOpenOk, longText("")),
      [methods.qos]: methodFrame(1, methods.qosOk),
      [methods.consume]: methodFrame(1, methods.consumeOk, shortText("tidegate"))
    }
    const reader = new FrameReader(({ kind, payload }: Frame) => {
      if (kind !== frameKinds.method) return
      const method = new Values(payload).long()
      const next = answers[method]
      if (next !== undefined) socket.write(next)
      if (method === methods.consume) then(socket)
    })
    socket.on("error", () => undefined)
    socket.once("data", (first: Buffer) => {
      socket.write(greeting)
      reader.read(first.subarray(8))
      socket.on("data", (chunk: Buffer) => reader.read(chunk))
    })
  }

const sends =
  (...parts: ReadonlyArray<Buffer>) =>
  (socket: Socket): void =>
    void socket.write(Buffer.concat(parts))

const protocol = { code: "PROTOCOL_ERROR" }
const tooLarge = { code: "RESPONSE_TOO_LARGE" }

const strangers: ReadonlyArray<readonly [name: string, then: (socket: Socket) => void, as: object]> = [
  [
    "that delivers more than is prefetched",
    sends(...[1, 2, 3, 4, 5, 6].flatMap((tag) => [delivery(tag), head(0)])),
    protocol
  ],
  ["that delivers the same message twice", sends(delivery(1), head(0), delivery(1), head(0)), protocol],
  ["that begins a message inside another one", sends(delivery(1), head(9), delivery(2)), protocol],
  ["that sends a header for nothing", sends(head(0)), protocol],
  ["that sends a body for nothing", sends(body(1)), protocol],
  ["that sends more body than it has said", sends(delivery(1), head(1), body(2)), protocol],
  ["that announces a message without end", sends(delivery(1), head(2 ** 40)), tooLarge],
  [
    "that floods empty bodies",
    (socket) => {
      sends(delivery(1), head(1_000))(socket)
      forEver(socket, body(0))
    },
    tooLarge
  ],
  [
    "that floods heartbeats",
    (socket) => forEver(socket, Buffer.concat([octet(8), short(0), long(0), octet(0xce)])),
    tooLarge
  ],
  ["that answers what it was not asked", sends(methodFrame(1, methods.selectOk)), protocol],
  [
    "that ends the subscription",
    sends(methodFrame(1, methods.cancel, shortText("tidegate"), octet(1))),
    { code: "CANCELLED" }
  ],
  [
    "that closes the channel",
    sends(methodFrame(1, methods.channelClose, short(404), shortText("no queue"), short(0), short(0))),
    { code: "404", said: "no queue" }
  ],
  ["that hangs up", (socket) => socket.end(), { code: "SOCKET_CLOSED" }]
]

describe("Subscription at a broker that is not trusted", () => {
  it.live.each(strangers)("Subscription at a broker %s ends for that reason", ([, then, as]) =>
    Effect.gen(function* () {
      const { port } = yield* listening(stranger(then))
      const ended = Effect.gen(function* () {
        const subscription = yield* open(placeAt(port))
        return yield* Effect.forever(subscription.take)
      })
      expect(yield* Effect.flip(Effect.scoped(ended))).toMatchObject(as)
    })
  )

  it.live("A refused password, and a broker that never answers, are failures that name them", () =>
    Effect.gen(function* () {
      const broker = yield* fake
      const refused = yield* Effect.flip(open(placeAt(broker.port, { password: "wrong" })))
      expect(refused).toMatchObject({ _tag: "BrokerRefusal", code: "403" })
      const silent = yield* listening(() => undefined)
      const waiting = yield* Effect.forkChild(Effect.flip(open(placeAt(silent.port, { connectTimeout: 1 }))))
      expect(yield* Fiber.join(waiting)).toMatchObject({ code: "TIMEOUT" })
    })
  )
})
