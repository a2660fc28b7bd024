import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Socket } from "node:net"
import type { NatsStreamConsumer } from "@tidegate/connectors/Subscriptions"
import { maxMessageBody } from "@tidegate/model/BrokerSource"
import { deliveryIn, headersIn } from "../src/NatsFrames.ts"
import { auth, forEver, listening } from "./Brokering.ts"
import { FakeJetStream } from "./FakeJetStream.ts"
import { greeting, message } from "./FakeNats.ts"
import { numbered, opened, rejecting, running, seen, stored, nextOf } from "./Subscribing.ts"

/** Subscriptions at consumers of streams of NATS: first at a server that keeps to the protocol, then at strangers. */

const placeAt = (port: number, change: Partial<NatsStreamConsumer> = {}): NatsStreamConsumer => ({
  host: "broker.test",
  port,
  ...auth,
  token: "",
  seed: "",
  jwt: "",
  tls: false,
  tlsFirst: false,
  // A busy machine must not be taken for a server that does not answer.
  connectTimeout: 30,
  stream: "orders",
  consumer: "tidegate",
  prefetch: 5,
  ...change
})

const open = (place: NatsStreamConsumer, allow?: ReadonlyArray<string>) => opened("nats", place, allow)

const fake = running(() => FakeJetStream.start(auth.password))

describe("Subscription at a consumer of a stream of NATS", () => {
  it.live("No more messages are under way than are prefetched, and each is delivered once it is room for it", () =>
    Effect.gen(function* () {
      const server = yield* fake
      const queue = server.queue("orders")
      server.publish("orders", ...numbered(23))
      const subscription = yield* open(placeAt(server.port))
      const bodies = (yield* stored(subscription, 23)).map(({ body }) => Buffer.from(body!).toString())
      yield* seen("all are settled", () => queue.settled.length === 23)
      expect(bodies).toEqual(numbered(23).map(({ body }) => body))
      expect(queue.mostUnsettled).toBe(5)
    })
  )

  it.live(
    "A message that is not settled when the subscription ends is delivered again, and a rejected one is not",
    () =>
      Effect.gen(function* () {
        const server = yield* fake
        const queue = server.queue("orders")
        server.publish("orders", ...numbered(2))
        const ids: Array<string | null> = []
        yield* Effect.scoped(
          Effect.gen(function* () {
            const first = yield* open(placeAt(server.port))
            const arrived = yield* nextOf(first, 2)
            ids.push(...arrived.map(({ id }) => id))
            yield* first.settle(rejecting(arrived.slice(0, 1)))
            yield* seen("the server knows", () => queue.dead.length === 1)
          })
        )
        const second = yield* open(placeAt(server.port))
        expect((yield* second.take).map(({ id }) => id)).toEqual(ids.slice(1))
        expect(queue.dead).toEqual(["m0"])
      })
  )

  it.live("A message that is larger than a pull arrives without its body, and those behind it arrive whole", () =>
    Effect.gen(function* () {
      const server = yield* fake
      const [large, most] = [2 * maxMessageBody, maxMessageBody]
      const before = { id: "before", body: Buffer.alloc(10) }
      server.publish(
        "orders",
        before,
        { id: "large", body: Buffer.alloc(large) },
        { id: "most", body: Buffer.alloc(most) }
      )
      const subscription = yield* open(placeAt(server.port))
      const arrived = yield* nextOf(subscription, 3)
      expect(arrived.map(({ body }) => body?.length)).toEqual([10, undefined, most])
      expect(arrived[1]!.size).toBeGreaterThanOrEqual(large)
    })
  )

  it.live("While messages wait that are not taken, no more are pulled than one pull has", () =>
    Effect.gen(function* () {
      const server = yield* fake
      const body = Buffer.alloc(300_000)
      server.publish("orders", ...Array.from({ length: 20 }, (_, n) => ({ id: `m${n}`, body })))
      const subscription = yield* open(placeAt(server.port, { prefetch: 40 }))
      const taken: Array<number> = []
      while (taken.reduce((sum, n) => sum + n, 0) < 20) taken.push((yield* subscription.take).length)
      expect(Math.max(...taken)).toBeLessThanOrEqual(3)
    })
  )

  it.live("A private address that is not allowed is not connected to, and a refused password is named", () =>
    Effect.gen(function* () {
      const server = yield* fake
      expect(yield* Effect.flip(open(placeAt(server.port), []))).toMatchObject({ code: "TARGET_NOT_ALLOWED" })
      const refused = yield* Effect.flip(open(placeAt(server.port, { password: "wrong" })))
      expect(refused).toMatchObject({ _tag: "BrokerRefusal", code: "AUTHORIZATION" })
    })
  )
})

describe("What a server says of a message of a stream", () => {
  it("The id has the stream, the number and the time, from the words of old and of new servers", () => {
    expect(deliveryIn("$JS.ACK.ORDERS.tidegate.2.17.40.1700000000000000000.3")).toBe("ORDERS.17.1700000000000000000")
    expect(deliveryIn("$JS.ACK.hub.ab12.ORDERS.tidegate.1.18.41.1700000000000000001.0.x")).toBe(
      "ORDERS.18.1700000000000000001"
    )
    for (const other of [
      "",
      "$JS.ACK.a.b.1",
      "$JS.ACK.a.b.1.x.1.2.3",
      "other.ACK.a.b.1.2.3.4.5",
      "$JS.ACK.a.b.c.1.2.3.4.5"
    ]) {
      expect([other, deliveryIn(other)]).toEqual([other, null])
    }
  })

  it("No more than fifty headers are taken, and long ones and lines that are none are left out", () => {
    const head = (...lines: ReadonlyArray<string>) => Buffer.from(`NATS/1.0\r\n${lines.join("\r\n")}\r\n\r\n`)
    expect(headersIn(head("A: 1", "none", `Long: ${"x".repeat(2_000)}`, "B:2: 3"))).toEqual([
      ["A", "1"],
      ["B", "2: 3"]
    ])
    expect(headersIn(head(...Array.from({ length: 10_000 }, () => "a: b")))).toHaveLength(50)
    expect(headersIn(Buffer.alloc(0))).toEqual([])
  })
})

const info = '{"config":{"ack_policy":"explicit"}}'
const said = (subject: string, words: string) => {
  const head = `NATS/1.0 ${words}\r\n\r\n`
  return `HMSG ${subject} 1 ${head.length} ${head.length}\r\n${head}\r\n`
}
const delivery = (number: number, size = 2) =>
  `MSG order.paid 1 $JS.ACK.orders.tidegate.1.${number}.${number}.1700.0 ${size}\r\n${"x".repeat(size)}\r\n`

/** A server that lets everybody in, and answers to a pull so. */
const stranger =
  (then: (socket: Socket, inbox: string) => void, consumer = info) =>
  (socket: Socket): void => {
    let text = ""
    socket.on("error", () => undefined)
    socket.write(greeting())
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1")
      for (;;) {
        const [all, word, inbox] =
          /(PING\r\n|INFO\S+ (\S+) \d+\r\n|NEXT\S+ (\S+) \d+\r\n)/
            .exec(text)
            ?.slice(1)
            .flatMap((one, i) => (i === 0 ? [one, one.slice(0, 4)] : (one ?? []))) ?? []
        if (all === undefined) return
        text = text.slice(text.indexOf(all) + all.length)
        if (word === "PING") socket.write("PONG\r\n")
        else if (word === "INFO") socket.write(message(inbox!, consumer))
        else then(socket, inbox!)
      }
    })
  }

const sends =
  (make: (inbox: string) => string) =>
  (socket: Socket, inbox: string): void =>
    void socket.write(make(inbox))

const protocol = { code: "PROTOCOL_ERROR" }
const refused = (code: string) => ({ _tag: "BrokerRefusal", code })
const silent = () => undefined

const strangers: ReadonlyArray<readonly [name: string, connection: (socket: Socket) => void, as: object]> = [
  [
    "that delivers more than was pulled",
    stranger(sends(() => [1, 2, 3, 4, 5, 6].map((n) => delivery(n)).join(""))),
    protocol
  ],
  ["that delivers what is of no stream", stranger(sends(() => message("order.paid", "{}"))), protocol],
  ["that ends a pull twice", stranger(sends((inbox) => said(inbox, "408 Request Timeout").repeat(2))), protocol],
  [
    "that announces a message without end",
    stranger(sends(() => "MSG a 1 $JS.ACK.orders.tidegate.1.1.1.1700.0 9999999999\r\n")),
    { code: "RESPONSE_TOO_LARGE" }
  ],
  [
    "that floods what nobody asked for",
    stranger((socket) => forEver(socket, Buffer.from("+OK\r\n"))),
    { code: "RESPONSE_TOO_LARGE" }
  ],
  [
    "whose consumer was deleted",
    stranger(sends((inbox) => said(inbox, "409 Consumer Deleted"))),
    refused("CONSUMER_GONE")
  ],
  [
    "whose consumer takes no such pull",
    stranger(sends((inbox) => said(inbox, "409 Exceeded MaxRequestBatch of 1"))),
    refused("409")
  ],
  ["that hangs up", stranger((socket) => socket.end()), { code: "SOCKET_CLOSED" }],
  ["that has no such consumer", stranger(silent, '{"error":{"code":404,"err_code":10014}}'), refused("10014")],
  [
    "whose consumer is pushed",
    stranger(silent, '{"config":{"ack_policy":"explicit","deliver_subject":"a"}}'),
    refused("PUSH_CONSUMER")
  ],
  [
    "whose consumer needs no acknowledgement",
    stranger(silent, '{"config":{"ack_policy":"none"}}'),
    refused("ACK_POLICY")
  ],
  ["that describes no consumer", stranger(silent, "[]"), refused("NO_STREAM")]
]

describe("Subscription at a NATS server that is not trusted", () => {
  it.live.each(strangers)("Subscription at a server %s ends for that reason", ([, connection, as]) =>
    Effect.gen(function* () {
      const { port } = yield* listening(connection)
      const ended = Effect.gen(function* () {
        const subscription = yield* open(placeAt(port))
        return yield* Effect.forever(subscription.take)
      })
      expect(yield* Effect.flip(Effect.scoped(ended))).toMatchObject(as)
    })
  )
})
