import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Socket } from "node:net"
import type { Received, SqsQueue } from "@tidegate/connectors/Subscriptions"
import { maxMessageBody } from "@tidegate/model/BrokerSource"
import { forEver, listening } from "./Brokering.ts"
import { FakeSqs } from "./FakeSqs.ts"
import { numbered, opened, rejecting, running, seen, storing, nextOf } from "./Subscribing.ts"

/** Subscriptions at queues of SQS: first at a service that keeps to the protocol, then at strangers. */

const placeAt = (queueUrl: string, accessKeyId = "AKIA0000000000000000"): SqsQueue => ({
  queueUrl,
  region: "eu-central-1",
  key: { accessKeyId, secretAccessKey: "a-secret-of-a-key" },
  visibilityTimeout: 60,
  // A busy machine must not be taken for a service that does not answer.
  connectTimeout: 30
})

const open = (place: SqsQueue, allow?: ReadonlyArray<string>) => opened("sqs", place, allow)

const fake = running(() => FakeSqs.start())

describe("Subscription at a queue of SQS", () => {
  it.live(
    "Messages are received in their order, each is deleted once it is settled, and no more are under way than twenty",
    () =>
      Effect.gen(function* () {
        const service = yield* fake
        const queue = service.queue("orders")
        const { consumers } = queue
        service.publish("orders", ...numbered(60))
        const subscription = yield* open(placeAt(service.url("orders")))
        const bodies: Array<string> = []
        const held = yield* nextOf(subscription, 20)
        // Nobody asks for more while so many are not settled.
        expect([held.length, consumers.size]).toEqual([20, 0])
        for (let received: ReadonlyArray<Received> = held; ; received = yield* subscription.take) {
          yield* subscription.settle(storing(received))
          bodies.push(...received.map(({ body }) => Buffer.from(body!).toString()))
          if (bodies.length === 60) break
        }
        yield* seen("all are deleted", () => queue.settled.length === 60)
        expect(bodies).toEqual(numbered(60).map(({ body }) => body))
        expect(queue.mostUnsettled).toBeLessThanOrEqual(20)
        expect([...service.delivered.values()].every((times) => times === 1)).toBe(true)
      })
  )

  it.live("A message has its id, its group and its attributes, and one of no use is deleted, too", () =>
    Effect.gen(function* () {
      const service = yield* fake
      service.publish("orders", { id: "m1", body: "ж", headers: { Kind: "paid" }, routingKey: "customer 7" })
      const subscription = yield* open(placeAt(service.url("orders")))
      const [received] = yield* subscription.take
      expect(received).toMatchObject({
        id: "m1",
        headers: [
          ["Content-Type", "application/json"],
          ["Kind", "paid"]
        ],
        facts: { "x-gateway-message-group-id": "customer 7" },
        size: 2
      })
      expect(Buffer.from(received!.body!).toString()).toBe("ж")
      yield* subscription.settle(rejecting([received!]))
      yield* seen("it is deleted", () => service.queue("orders").settled.length === 1)
    })
  )

  it.live("Large messages are received one by one, and one that is too large arrives without its body", () =>
    Effect.gen(function* () {
      const service = yield* fake
      const body = "x".repeat(maxMessageBody)
      service.publish(
        "orders",
        ...["a", "b", "c"].map((id) => ({ id, body })),
        { id: "large", body: `${body}x` },
        ...["d", "e"].map((id) => ({ id, body }))
      )
      const subscription = yield* open(placeAt(service.url("orders")))
      const arrived: Array<Received> = []
      while (arrived.length < 6) {
        const received = yield* subscription.take
        expect(received).toHaveLength(1)
        yield* subscription.settle(storing(received))
        arrived.push(...received)
      }
      expect(arrived.map(({ body }) => body?.length)).toEqual([
        ...Array.from({ length: 3 }, () => maxMessageBody),
        undefined,
        ...Array.from({ length: 2 }, () => maxMessageBody)
      ])
    })
  )

  it.live("A private address that is not allowed is not connected to, and a key that is not known is named", () =>
    Effect.gen(function* () {
      const service = yield* fake
      const url = service.url("orders")
      expect(yield* Effect.flip(open(placeAt(url), []))).toMatchObject({ code: "TARGET_NOT_ALLOWED" })
      expect(yield* Effect.flip(open(placeAt(url, "AKIA9999999999999999")))).toMatchObject({
        _tag: "BrokerRefusal",
        code: "UnrecognizedClientException"
      })
    })
  )

  it.live("The end of the subscription ends the call that waits", () =>
    Effect.gen(function* () {
      const service = yield* fake
      const { consumers } = service.queue("orders")
      yield* Effect.scoped(
        Effect.andThen(
          open(placeAt(service.url("orders"))),
          seen("somebody waits", () => consumers.size === 1)
        )
      )
      yield* seen("nobody waits", () => consumers.size === 0)
    })
  )
})

const answering =
  (body: string, status = "200 OK") =>
  (socket: Socket): void => {
    socket.on("error", () => undefined)
    socket.on("data", () =>
      socket.write(`HTTP/1.1 ${status}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
    )
  }

const message = { MessageId: "m1", ReceiptHandle: "h1", Body: "{}" }
const messages = (...Messages: ReadonlyArray<object>) => answering(JSON.stringify({ Messages }))

const protocol = { code: "PROTOCOL_ERROR" }

const strangers: ReadonlyArray<readonly [name: string, connection: (socket: Socket) => void, as: object]> = [
  ["that sends more than was asked for", messages(message, { ...message, MessageId: "m2" }), protocol],
  ["that sends a message without an id", messages({ ...message, MessageId: "" }), protocol],
  ["that sends a message without a body", messages({ ...message, Body: null }), protocol],
  ["that sends a handle without end", messages({ ...message, ReceiptHandle: "h".repeat(10_000) }), protocol],
  ["that sends no list", answering('{"Messages":{}}'), protocol],
  ["that sends no JSON", answering("<html>"), protocol],
  ["that nests without end", answering(`{"Messages":${"[".repeat(100_000)}`), protocol],
  ["that moves", answering("", "302 Found"), { _tag: "BrokerRefusal", code: "HTTP 302" }],
  ["that is broken", answering("", "500 Internal Server Error"), { _tag: "BrokerRefusal", code: "HTTP 500" }],
  [
    "that has no such queue",
    answering('{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"no"}', "400 Bad Request"),
    { _tag: "BrokerRefusal", code: "QueueDoesNotExist", said: "no" }
  ],
  [
    "that answers without end",
    (socket) => {
      socket.on("error", () => undefined)
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        forEver(socket, Buffer.from(`10000\r\n${"x".repeat(65_536)}\r\n`))
      })
    },
    { code: "RESPONSE_TOO_LARGE" }
  ],
  ["that hangs up", (socket) => void socket.on("data", () => socket.destroy()), { _tag: "SessionFailure" }]
]

describe("Subscription at a service that is not trusted", () => {
  it.live.each(strangers)("Subscription at a service %s ends for that reason", ([, connection, as]) =>
    Effect.gen(function* () {
      const { port } = yield* listening(connection)
      const ended = Effect.gen(function* () {
        const subscription = yield* open(placeAt(`http://service.test:${port}/123456789012/orders`))
        return yield* Effect.forever(subscription.take)
      })
      expect(yield* Effect.flip(Effect.scoped(ended))).toMatchObject(as)
    })
  )
})
