import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Socket } from "node:net"
import type { Received, RedisStreamConsumer } from "@tidegate/connectors/Subscriptions"
import { maxMessageBody } from "@tidegate/model/BrokerSource"
import { EntryFields } from "../src/RedisEntry.ts"
import { auth, forEver, listening } from "./Brokering.ts"
import { entriesReply, FakeRedis } from "./FakeRedis.ts"
import { numbered, opened, rejecting, running, seen, stored, storing, nextOf } from "./Subscribing.ts"

/** Subscriptions at streams of Redis: first at a server that keeps to the protocol, then at strangers. */

const placeAt = (port: number, change: Partial<RedisStreamConsumer> = {}): RedisStreamConsumer => ({
  host: "broker.test",
  port,
  ...auth,
  tls: false,
  // A busy machine must not be taken for a server that does not answer.
  connectTimeout: 30,
  database: 0,
  stream: "orders",
  group: "tidegate",
  consumer: "tidegate",
  createAt: null,
  bodyField: "body",
  claimAfter: 60,
  prefetch: 5,
  ...change
})

const open = (place: RedisStreamConsumer, allow?: ReadonlyArray<string>) => opened("redis", place, allow)

const fake = running(() => FakeRedis.start(auth.password))

describe("Subscription at a stream of Redis", () => {
  it.live("No more entries are under way than are prefetched, and each is delivered once there is room for it", () =>
    Effect.gen(function* () {
      const server = yield* fake
      const queue = server.queue("orders")
      server.publish("orders", ...numbered(23))
      const subscription = yield* open(placeAt(server.port))
      const bodies = (yield* stored(subscription, 23)).map(({ body }) => Buffer.from(body!).toString())
      yield* seen("all are settled", () => queue.settled.length === 23)
      expect(bodies).toEqual(numbered(23).map(({ body }) => body))
      expect(queue.mostUnsettled).toBeLessThanOrEqual(5)
    })
  )

  it.live("An entry that is not settled when the subscription ends is delivered again, and a rejected one is not", () =>
    Effect.gen(function* () {
      const server = yield* fake
      const queue = server.queue("orders")
      server.publish("orders", ...numbered(3))
      const ids: Array<string | null> = []
      yield* Effect.scoped(
        Effect.gen(function* () {
          const subscription = yield* open(placeAt(server.port))
          const arrived = yield* nextOf(subscription, 3)
          ids.push(...arrived.map(({ id }) => id))
          yield* subscription.settle(rejecting(arrived.slice(0, 1)))
          yield* seen("the server knows", () => queue.settled.length === 1)
        })
      )
      const second = yield* open(placeAt(server.port))
      const again: Array<string | null> = []
      while (again.length < 2) again.push(...(yield* second.take).map(({ id }) => id))
      expect(ids).toEqual(["orders:1-0", "orders:2-0", "orders:3-0"])
      expect(again).toEqual(ids.slice(1))
    })
  )

  it.live("An entry whose body is too large arrives without it, and those behind it arrive whole", () =>
    Effect.gen(function* () {
      const server = yield* fake
      const [large, most] = [2 * maxMessageBody, maxMessageBody]
      const sizes = [10, large, most, most, 10]
      server.publish("orders", ...sizes.map((size, n) => ({ id: `m${n}`, body: Buffer.alloc(size, "x") })))
      const subscription = yield* open(placeAt(server.port))
      const arrived = yield* nextOf(subscription, sizes.length)
      expect(arrived.map(({ body }) => body?.length)).toEqual([10, undefined, most, most, 10])
      expect(arrived.map(({ size }) => size)).toEqual(sizes)
    })
  )

  it.live("No more bytes of entries wait than a few messages have, and what did not fit is read again", () =>
    Effect.gen(function* () {
      const server = yield* fake
      const body = Buffer.alloc(300_000, "x")
      const small = numbered(64)
      server.publish("orders", ...small, ...Array.from({ length: 40 }, (_, n) => ({ id: `l${n}`, body })))
      const subscription = yield* open(placeAt(server.port, { prefetch: 64 }))
      const taken: Array<ReadonlyArray<Received>> = []
      while (taken.flat().length < 104) {
        taken.push(yield* subscription.take)
        yield* subscription.settle(storing(taken.at(-1)!))
      }
      expect(taken.flat().map(({ id }) => id)).toEqual(Array.from({ length: 104 }, (_, n) => `orders:${n + 1}-0`))
      const bytes = taken.map((all) => all.reduce((sum, { size }) => sum + size, 0))
      expect(Math.max(...bytes)).toBeLessThan(2 * maxMessageBody)
    })
  )

  it.live("A private address that is not allowed is not connected to, and a refused password is named", () =>
    Effect.gen(function* () {
      const server = yield* fake
      expect(yield* Effect.flip(open(placeAt(server.port), []))).toMatchObject({ code: "TARGET_NOT_ALLOWED" })
      const refused = yield* Effect.flip(open(placeAt(server.port, { password: "wrong" })))
      expect(refused).toMatchObject({ _tag: "BrokerRefusal", code: "WRONGPASS" })
    })
  )
})

const entry = (fields: ReadonlyArray<readonly [string, string]>, bodyField = "body") => {
  const made = new EntryFields(bodyField)
  for (const [name, value] of fields) {
    made.name(Buffer.byteLength(name), Buffer.from(name))
    made.value(Buffer.byteLength(value), Buffer.from(value))
  }
  const { body, ...rest } = made.made()
  return { ...rest, body: body === null ? null : Buffer.from(body).toString() }
}

describe("What an entry of a stream becomes", () => {
  it("The field for the body is the body, and the others are headers", () => {
    expect(
      entry([
        ["content_type", "text/plain"],
        ["kind", "paid"],
        ["body", "hello"]
      ])
    ).toEqual({
      contentType: "text/plain",
      contentEncoding: null,
      headers: [["kind", "paid"]],
      body: "hello",
      size: 5
    })
  })

  it("Without that field, all fields are one JSON object; only the loop mark is a header as well", () => {
    const fields = [
      ["order", "12345678901234567890"],
      ["__proto__", 'a"b'],
      ["gateway-loop", "mark"],
      ["order", "2"]
    ] as const
    const { body, contentType, headers } = entry(fields)
    expect(body).toBe('{"order":"2","__proto__":"a\\"b","gateway-loop":"mark"}')
    expect([contentType, headers]).toEqual(["application/json", [["gateway-loop", "mark"]]])
    expect(entry(fields, "order").body).toBe("2")
  })

  it("An object with more bytes than a message is too large, however many fields it has, and few headers are taken", () => {
    const many = Array.from({ length: 100_000 }, (_, n) => [String(n), ""] as const)
    const { body, size } = entry(many)
    expect([body, size > maxMessageBody]).toEqual([null, true])
    const escaped = entry([["a", "\u0001".repeat(maxMessageBody / 2)]])
    expect([escaped.body, escaped.size > maxMessageBody]).toEqual([null, true])
    const headed = entry([...many.map(([name]) => [name, "x"] as const), ["body", "b"]])
    expect([headed.headers.length, headed.body]).toEqual([50, "b"])
    expect(
      entry([
        ["long", "x".repeat(2_000)],
        ["body", "b"]
      ]).headers
    ).toEqual([])
  })
})

/** A server that lets everybody in, and answers to a read so. */
const stranger =
  (answer: (socket: Socket, count: number) => void, claimed = "*2\r\n$3\r\n0-0\r\n*0\r\n") =>
  (socket: Socket): void => {
    let count = 0
    socket.on("error", () => undefined)
    socket.on("data", (chunk: Buffer) => {
      for (const [word] of chunk.toString("latin1").matchAll(/AUTH|XREADGROUP|XAUTOCLAIM|XACK/g)) {
        if (word === "AUTH") socket.write("+OK\r\n")
        else if (word === "XAUTOCLAIM") socket.write(claimed)
        else if (word === "XACK") socket.write(":1\r\n")
        else answer(socket, ++count)
      }
    })
  }
const none = "*1\r\n*2\r\n$6\r\norders\r\n*0\r\n"
const saying = (text: string | Buffer, claimed?: string) => stranger((socket) => socket.write(text), claimed)
const two = entriesReply(
  "orders",
  [1, 2].map((n) => ({ id: `${n}-0`, message: { id: "m", body: "{}" } }))
)
const head = "*1\r\n*2\r\n$6\r\norders\r\n*1\r\n*2\r\n$3\r\n1-0\r\n"

const protocol = { code: "PROTOCOL_ERROR" }
const tooLarge = { code: "RESPONSE_TOO_LARGE" }
const refused = (code: string) => ({ _tag: "BrokerRefusal", code })

const strangers: ReadonlyArray<readonly [name: string, connection: (socket: Socket) => void, as: object]> = [
  ["that gives more entries than were asked for", saying(two), protocol],
  ["that answers with lists without end", saying("*1000000000\r\n".repeat(9)), protocol],
  ["whose text has more bytes than Redis keeps", saying(`${head}*2\r\n$1\r\na\r\n$4294967295\r\n`), tooLarge],
  ["whose entry has no id", saying("*1\r\n*2\r\n$6\r\norders\r\n*1\r\n*2\r\n$1\r\nx\r\n"), protocol],
  ["whose entry has a name without a value", saying(`${head}*3\r\n`), protocol],
  ["whose line never ends", stranger((socket) => forEver(socket, Buffer.from("*"))), tooLarge],
  ["that floods what nobody asked for", stranger((socket) => forEver(socket, Buffer.from(":1\r\n"))), protocol],
  ["that speaks HTTP", (socket) => void socket.write("HTTP/1.1 400 Bad Request\r\n\r\n"), protocol],
  ["that claims more than was asked for", saying(none, "*2\r\n$3\r\n0-0\r\n*1000\r\n"), protocol],
  ["that claims what is no id", saying(none, "*2\r\n$3\r\n0-0\r\n*1\r\n$1\r\nx\r\n"), protocol],
  ["that has no such group", saying("-NOGROUP No such key 'orders'\r\n"), refused("NOGROUP")],
  ["whose key is no stream", saying("-WRONGTYPE no\r\n"), refused("WRONGTYPE")],
  ["that hangs up", stranger((socket) => socket.end()), { code: "SOCKET_CLOSED" }],
  ["that has too many clients", (socket) => socket.end("-ERR max number of clients reached\r\n"), refused("ERR")]
]

describe("Subscription at a Redis that is not trusted", () => {
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

  it.live(
    "An endless entry with fields without number takes little memory, and ends",
    () =>
      Effect.gen(function* () {
        const field = Buffer.from("$1\r\na\r\n$0\r\n\r\n")
        const { port } = yield* listening(
          stranger((socket) => {
            socket.write(`${head}*2000000000\r\n`)
            forEver(socket, field)
          })
        )
        const before = process.memoryUsage().rss
        expect(yield* Effect.flip(Effect.scoped(open(placeAt(port, { connectTimeout: 3 }))))).toMatchObject(
          expect.objectContaining({ code: expect.stringMatching(/TIMEOUT|RESPONSE_TOO_LARGE/) })
        )
        expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024)
      }),
    120_000
  )
})
