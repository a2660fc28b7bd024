import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, type Scope } from "effect"
import type { Socket } from "node:net"
import { SessionFailure } from "@tidegate/connectors/Failure"
import type { Bearer, PubSubSubscription, Received } from "@tidegate/connectors/Subscriptions"
import { maxMessageBody } from "@tidegate/model/BrokerSource"
import { forEver, listening } from "./Brokering.ts"
import { FakePubSub } from "./FakePubSub.ts"
import { numbered, opened, rejecting, seen, storing } from "./Subscribing.ts"

/** Subscriptions of Pub/Sub: first at a service that keeps to the API, then at strangers. */

/** Tokens of the fake, without asking for them. One that was refused is replaced once. */
const tokensOf =
  ({ account, tokens }: FakePubSub): Bearer =>
  (refused) => {
    const last = tokens.at(-1)
    if (last === undefined || last === refused) tokens.push(`token-${tokens.length}-of-${account}`)
    return Promise.resolve(tokens.at(-1)!)
  }

const placeAt = (origin: string, bearer: Bearer | null, prefetch = 20): PubSubSubscription => ({
  origin,
  projectId: "my-shop",
  subscriptionId: "orders",
  bearer,
  prefetch,
  // A busy machine must not be taken for a service that does not answer.
  connectTimeout: 30
})

const open = (place: PubSubSubscription, allow?: ReadonlyArray<string>) => opened("pubsub", place, allow)

const fake: Effect.Effect<FakePubSub, never, Scope.Scope> = Effect.acquireRelease(
  Effect.promise(() => FakePubSub.start()),
  (service) => Effect.promise(() => service.close())
)

const openAt = (service: FakePubSub, prefetch?: number) => open(placeAt(service.origin, tokensOf(service), prefetch))

const textOf = ({ body }: Received) => Buffer.from(body!).toString()

describe("Subscription of Pub/Sub", () => {
  it.live(
    "Messages are pulled in their order, each is acknowledged once it is settled, and no more are under way",
    () =>
      Effect.gen(function* () {
        const service = yield* fake
        const queue = service.queue("orders")
        service.publish("orders", ...numbered(60))
        const subscription = yield* openAt(service)
        const bodies: Array<string> = []
        const held: Array<Received> = []
        while (held.length < 20) held.push(...(yield* subscription.take))
        // Nobody asks for more while so many are not settled.
        expect([held.length, queue.consumers.size]).toEqual([20, 0])
        for (let received: ReadonlyArray<Received> = held; ; received = yield* subscription.take) {
          yield* subscription.settle(storing(received))
          bodies.push(...received.map(textOf))
          if (bodies.length === 60) break
        }
        yield* seen("all are acknowledged", () => queue.settled.length === 60)
        expect(bodies).toEqual(numbered(60).map(({ body }) => body))
        expect(queue.mostUnsettled).toBeLessThanOrEqual(20)
        expect([...service.delivered.values()].every((times) => times === 1)).toBe(true)
      })
  )

  it.live(
    "A message has its id in the subscription, its key and its attributes, and one of no use is acknowledged",
    () =>
      Effect.gen(function* () {
        const service = yield* fake
        const headers = { Kind: "paid", content_encoding: "gzip" }
        service.publish("orders", { id: "m1", body: "ж", headers, routingKey: "customer 7" }, { id: "m2", body: "" })
        const subscription = yield* openAt(service)
        const [received] = yield* subscription.take
        expect(received).toMatchObject({
          id: "orders/m1",
          contentType: "application/json",
          contentEncoding: "gzip",
          headers: [["Kind", "paid"]],
          facts: { "x-gateway-ordering-key": "customer 7" },
          size: 2
        })
        expect(textOf(received!)).toBe("ж")
        yield* subscription.settle(rejecting([received!]))
        const [empty] = yield* subscription.take
        expect([empty!.size, empty!.facts]).toEqual([0, {}])
        yield* seen("the first is acknowledged", () => service.queue("orders").settled.length === 1)
      })
  )

  it.live("A message that is too large arrives without its body, however large it is, and the others with it", () =>
    Effect.gen(function* () {
      const service = yield* fake
      const sizes = [maxMessageBody, maxMessageBody + 1, 9_000_000, 5, maxMessageBody]
      service.publish("orders", ...sizes.map((size, n) => ({ id: `m${n}`, body: Buffer.alloc(size, "x") })))
      const subscription = yield* openAt(service)
      const arrived: Array<Received> = []
      while (arrived.length < sizes.length) {
        const received = yield* subscription.take
        yield* subscription.settle(storing(received))
        arrived.push(...received)
      }
      expect(arrived.map(({ body, size }) => [body?.length, size])).toEqual([
        [maxMessageBody, maxMessageBody],
        [undefined, maxMessageBody + 1],
        [undefined, 9_000_000],
        [5, 5],
        [maxMessageBody, maxMessageBody]
      ])
    })
  )

  it.live(
    "The deadline of a message that waits is extended, so that it is delivered once",
    () =>
      Effect.gen(function* () {
        const service = yield* fake
        service.publish("orders", { id: "m1", body: "{}" })
        const subscription = yield* openAt(service)
        const received = yield* subscription.take
        yield* seen("its deadline is extended", () => service.deadlines.length > 0)
        expect(service.deadlines[0]).toEqual(["m1", 60])
        yield* subscription.settle(storing(received))
        yield* seen("it is acknowledged", () => service.queue("orders").settled.length === 1)
        expect(service.delivered.get("m1")).toBe(1)
      }),
    120_000
  )

  it.live("The end of the subscription gives back at once what is not settled, and ends the call that waits", () =>
    Effect.gen(function* () {
      const service = yield* fake
      const queue = service.queue("orders")
      service.publish("orders", ...numbered(3))
      const first = Effect.gen(function* () {
        const subscription = yield* openAt(service, 3)
        const held: Array<Received> = []
        while (held.length < 3) held.push(...(yield* subscription.take))
        yield* subscription.settle(storing(held.slice(0, 1)))
        yield* seen("one is acknowledged, and more are waited for", () => queue.consumers.size === 1)
      })
      yield* Effect.scoped(first)
      yield* seen("the others are given back", () => queue.waiting.length === 2)
      yield* seen("nobody waits", () => queue.consumers.size === 0)
      expect([queue.settled, service.deadlines]).toEqual([
        ["m0"],
        [
          ["m1", 0],
          ["m2", 0]
        ]
      ])
    })
  )

  it.live("A token that the service does not take any more is replaced, and the subscription goes on", () =>
    Effect.gen(function* () {
      const service = yield* fake
      const subscription = yield* openAt(service)
      yield* seen("it waits", () => service.queue("orders").consumers.size === 1)
      service.revoked.add(service.tokens[0]!)
      service.publish("orders", { id: "m1", body: "1" })
      const received = yield* subscription.take
      yield* subscription.settle(storing(received))
      yield* seen("it is acknowledged", () => service.queue("orders").settled.length === 1)
      service.publish("orders", { id: "m2", body: "2" })
      expect((yield* subscription.take).map(textOf)).toEqual(["2"])
      expect(service.tokens).toHaveLength(2)
    })
  )

  it.live("A token that cannot be obtained, or that is refused again, ends the subscription, and is not shown", () =>
    Effect.gen(function* () {
      const service = yield* fake
      const none = new SessionFailure({
        code: "OAUTH2_HANDSHAKE_FAILED",
        message: "no token",
        final: false,
        broken: true
      })
      expect(yield* Effect.flip(open(placeAt(service.origin, () => Promise.resolve(none))))).toBe(none)
      const wrong = yield* Effect.flip(open(placeAt(service.origin, () => Promise.resolve("a-secret-token"))))
      expect(wrong).toMatchObject({ _tag: "BrokerRefusal", code: "UNAUTHENTICATED" })
      expect(JSON.stringify(wrong)).not.toContain("a-secret-token")
    })
  )

  it.live("A private address that is not allowed is not connected to", () =>
    Effect.gen(function* () {
      const service = yield* fake
      expect(yield* Effect.flip(open(placeAt(service.origin, null), []))).toMatchObject({ code: "TARGET_NOT_ALLOWED" })
    })
  )
})

const httpOf = (body: string, status: string): string =>
  `HTTP/1.1 ${status}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

const answering =
  (body: string, status = "200 OK") =>
  (socket: Socket): void => {
    socket.on("error", () => undefined)
    socket.on("data", () => socket.write(httpOf(body, status)))
  }

const message = { ackId: "a1", message: { messageId: "m1", data: "e30=" } }
const messages = (...receivedMessages: ReadonlyArray<object>) => answering(JSON.stringify({ receivedMessages }))
const error = (status: string, line: string, message = "no") =>
  answering(JSON.stringify({ error: { code: 1, status, message } }), line)

const protocol = { code: "PROTOCOL_ERROR" }
const refused = (code: string) => ({ _tag: "BrokerRefusal", code })
const endless = (begin: string) => (socket: Socket) => {
  socket.on("error", () => undefined)
  socket.once("data", () => {
    socket.write(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${begin.length.toString(16)}\r\n${begin}\r\n`)
    forEver(socket, Buffer.from(`10000\r\n${"x".repeat(65_536)}\r\n`))
  })
}

const strangers: ReadonlyArray<readonly [name: string, connection: (socket: Socket) => void, as: object]> = [
  ["that sends more than was asked for", messages(message, message), protocol],
  ["that sends thousands of messages", messages(...Array.from({ length: 20_000 }, () => message)), protocol],
  ["that sends a message without an id", messages({ ...message, message: { data: "e30=" } }), protocol],
  ["that sends data that is no base64", messages({ ...message, message: { messageId: "m1", data: "{}" } }), protocol],
  ["that sends base64 with a hole", messages({ ...message, message: { messageId: "m1", data: "e3 =" } }), protocol],
  ["that sends data that is a number", messages({ ...message, message: { messageId: "m1", data: 7 } }), protocol],
  ["that sends a handle without end", messages({ ...message, ackId: "a".repeat(10_000) }), protocol],
  ["that sends no list", answering('{"receivedMessages":{}}'), protocol],
  ["that sends a list alone", answering("[]"), protocol],
  ["that sends a page", answering("<html>please sign in</html>"), protocol],
  ["that nests without end", answering(`{"receivedMessages":${"[".repeat(100_000)}`), protocol],
  ["that moves", answering("", "302 Found"), refused("HTTP 302")],
  ["behind a broken load balancer", answering("<html>", "502 Bad Gateway"), refused("HTTP 502")],
  ["that is broken", error("INTERNAL", "500 Internal Server Error"), refused("INTERNAL")],
  ["that is called too often", error("RESOURCE_EXHAUSTED", "429 Too Many Requests"), refused("RESOURCE_EXHAUSTED")],
  ["that gives no rights", error("PERMISSION_DENIED", "403 Forbidden"), refused("PERMISSION_DENIED")],
  ["that has no such subscription", error("NOT_FOUND", "404 Not Found"), refused("NOT_FOUND")],
  ["that answers without end", endless("["), { code: "RESPONSE_TOO_LARGE" }],
  ["that sends a text without end", endless('{"receivedMessages":[{"ackId":"'), { code: "RESPONSE_TOO_LARGE" }],
  ["that hangs up", (socket) => void socket.on("data", () => socket.destroy()), { _tag: "SessionFailure" }]
]

describe("Subscription of a service that is not trusted", () => {
  it.live.each(strangers)("Subscription at a service %s ends for that reason", ([, connection, as]) =>
    Effect.gen(function* () {
      const { port } = yield* listening(connection)
      const ended = Effect.gen(function* () {
        const subscription = yield* open(placeAt(`http://service.test:${port}`, null))
        return yield* Effect.forever(subscription.take)
      })
      expect(yield* Effect.flip(Effect.scoped(ended))).toMatchObject(as)
    })
  )

  it.live("Messages whose deadline was over before they were acknowledged do not end the subscription", () =>
    Effect.gen(function* () {
      const calls: Array<string> = []
      const answers: Record<string, readonly [body: object, status: string]> = {
        acknowledge: [
          {
            error: {
              code: 400,
              status: "INVALID_ARGUMENT",
              message: "Some acknowledgement ids in the request were invalid",
              details: [
                {
                  "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                  metadata: { a1: "PERMANENT_FAILURE_INVALID_ACK_ID" }
                }
              ]
            }
          },
          "400 Bad Request"
        ],
        pull: [{ receivedMessages: [message] }, "200 OK"]
      }
      const { port } = yield* listening((socket) => {
        socket.on("error", () => undefined)
        socket.on("data", (data) => {
          const [, verb = ""] = /subscriptions\/orders:(\w+)/.exec(data.toString("latin1")) ?? []
          const answer = answers[verb]
          if (answer === undefined) return
          calls.push(verb)
          socket.write(httpOf(JSON.stringify(answer[0]), answer[1]))
        })
      })
      const subscription = yield* open(placeAt(`http://service.test:${port}`, null))
      const going = yield* Effect.forkScoped(
        Effect.forever(Effect.flatMap(subscription.take, (received) => subscription.settle(storing(received))))
      )
      yield* seen("several are acknowledged", () => calls.filter((verb) => verb === "acknowledge").length > 3)
      expect(going.pollUnsafe()).toBe(undefined)
      yield* Fiber.interrupt(going)
    })
  )
})
