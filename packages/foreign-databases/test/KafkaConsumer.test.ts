import { describe, expect, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { gzipSync, zstdCompressSync } from "node:zlib"
import type { KafkaMember, Received, Subscription } from "@tidegate/connectors/Subscriptions"
import { maxMessageBody } from "@tidegate/model/BrokerSource"
import { auth } from "./Brokering.ts"
import { groupCalls } from "./FakeKafkaGroups.ts"
import { FakeKafkaTopics } from "./FakeKafkaTopics.ts"
import { batchOf, markOf } from "./KafkaBatchOf.ts"
import { numbered, opened, rejecting, seen, storing } from "./Subscribing.ts"

/** Members of consumer groups, at a broker that keeps to the protocol. */

const memberAt = (port: number, change: Partial<KafkaMember> = {}): KafkaMember => ({
  servers: [{ host: "broker.test", port }],
  topic: "orders",
  group: "tidegate",
  offsetReset: "earliest",
  mechanism: "PLAIN",
  ...auth,
  tls: false,
  // A busy machine must not be taken for a broker that does not answer.
  connectTimeout: 30,
  prefetch: 5,
  ...change
})

const open = ({ port }: FakeKafkaTopics, change?: Partial<KafkaMember>, allow?: ReadonlyArray<string>) =>
  opened("kafka", memberAt(port, change), allow)

const fake = (partitions = 1): Effect.Effect<FakeKafkaTopics, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() => FakeKafkaTopics.start(auth.password, partitions)),
    (broker) => Effect.promise(() => broker.close())
  )

const textOf = ({ body }: Received): string => Buffer.from(body!).toString()

/** Takes and stores so many records. */
const stored = Effect.fnUntraced(function* ({ settle, take }: Subscription, count: number) {
  const all: Array<Received> = []
  while (all.length < count) {
    const received = yield* take
    yield* settle(storing(received))
    all.push(...received)
  }
  return all
})

const record = (value: string | Buffer, headers: Readonly<Record<string, string>> = {}) => ({
  key: null,
  headers,
  value: Buffer.from(value)
})

describe("Subscription at a topic of Kafka", () => {
  it.live(
    "No more records are under way than are prefetched, in the order of each partition, and all are committed",
    () =>
      Effect.gen(function* () {
        const broker = yield* fake(2)
        const queue = broker.queue("orders")
        broker.publish("orders", ...numbered(23))
        const subscription = yield* open(broker)
        const all: Array<Received> = []
        while (all.length < 23) {
          const received = yield* subscription.take
          expect(received.length).toBeLessThanOrEqual(5)
          yield* subscription.settle(storing(received))
          all.push(...received)
        }
        yield* seen("all are committed", () => queue.settled.length === 23)
        expect(new Set(queue.settled)).toEqual(new Set(numbered(23).map(({ id }) => id)))
        for (const partition of ["0", "1"]) {
          const own = all.filter(({ facts }) => facts["x-gateway-partition"] === partition)
          const offsets = own.map(({ facts }) => Number(facts["x-gateway-offset"]))
          expect(offsets).toEqual(offsets.map((_, n) => n))
        }
        expect(new Set(all.map(({ id }) => id)).size).toBe(23)
      })
  )

  it.live("A record has the id, the key, the place and the type that the topic says", () =>
    Effect.gen(function* () {
      const broker = yield* fake()
      const made = { ...record("{}", { "content-type": "application/json", kind: "paid" }), key: "c_1" }
      broker.append("orders", 0, batchOf({ first: 0, records: [made] }))
      const [received] = yield* stored(yield* open(broker), 1)
      expect({ ...received, receipt: 0, body: textOf(received!) }).toEqual({
        receipt: 0,
        id: "cluster:orders:0:0:1700000000000",
        contentType: "application/json",
        contentEncoding: null,
        facts: {
          "x-gateway-topic": "orders",
          "x-gateway-partition": "0",
          "x-gateway-offset": "0",
          "x-gateway-key": "c_1"
        },
        headers: [["kind", "paid"]],
        body: "{}",
        size: 2
      })
    })
  )

  it.live("A record that is not settled when the subscription ends is delivered again, and a rejected one is not", () =>
    Effect.gen(function* () {
      const broker = yield* fake()
      broker.publish("orders", ...numbered(3))
      const first = yield* Effect.scoped(
        Effect.gen(function* () {
          const subscription = yield* open(broker)
          const arrived: Array<Received> = []
          while (arrived.length < 3) arrived.push(...(yield* subscription.take))
          // Out of their order: the second one may not be committed before the first.
          yield* subscription.settle(storing(arrived.slice(1, 2)))
          yield* subscription.settle(rejecting(arrived.slice(0, 1)))
          return arrived.map(({ id }) => id)
        })
      )
      yield* seen("the member has left", () => broker.queue("orders").consumers.size === 0)
      expect(broker.groups.commits.at(-1)).toEqual([0, 2])
      expect((yield* stored(yield* open(broker), 1)).map(({ id }) => id)).toEqual(first.slice(2))
    })
  )

  it.live("A record whose body is too large arrives without it, also in a batch that is longer than usual", () =>
    Effect.gen(function* () {
      const broker = yield* fake()
      const sizes = [10, 5 * maxMessageBody, maxMessageBody, maxMessageBody + 1, 10]
      broker.publish("orders", ...sizes.map((size, n) => ({ id: `m${n}`, body: Buffer.alloc(size, "x") })))
      const all = yield* stored(yield* open(broker, { prefetch: 50 }), sizes.length)
      expect(all.map(({ body }) => body?.length)).toEqual([10, undefined, maxMessageBody, undefined, 10])
      expect(all.map(({ size }) => size)).toEqual(sizes)
    })
  )

  it.live("Records of all compressions arrive, and those of transactions that were taken back do not", () =>
    Effect.gen(function* () {
      const broker = yield* fake()
      const [log] = broker.queue("orders").logs
      broker.append("orders", 0, batchOf({ first: 0, records: [record("zip")], codec: 1, compress: gzipSync }))
      broker.append("orders", 0, batchOf({ first: 1, records: [record("std")], codec: 4, compress: zstdCompressSync }))
      broker.append("orders", 0, batchOf({ first: 2, records: [record("no")], producer: 7 }))
      broker.append("orders", 0, markOf("abort", 7, 3))
      log!.aborted.push({ producer: 7, from: 2 })
      broker.append("orders", 0, batchOf({ first: 4, records: [record("yes")], producer: 7 }))
      broker.append("orders", 0, markOf("commit", 7, 5))
      const all = yield* stored(yield* open(broker), 3)
      expect(all.map(textOf)).toEqual(["zip", "std", "yes"])
      yield* seen("the marks are committed, too", () => broker.groups.commits.at(-1)?.[1] === 6)
    })
  )

  it.live("While nobody takes what waits, nothing is fetched, and the member stays in its group", () =>
    Effect.gen(function* () {
      const broker = yield* fake()
      broker.publish("orders", ...numbered(20))
      let beats = 0
      broker.instead = ({ key }) => {
        if (key === groupCalls.heartbeat) beats++
        return undefined
      }
      const subscription = yield* open(broker)
      yield* seen("it has fetched", () => broker.fetches === 1)
      yield* seen("it is heard", () => beats === 2)
      expect(broker.fetches).toBe(1)
      expect((yield* stored(subscription, 20)).map(textOf)).toEqual(numbered(20).map(({ body }) => body))
    })
  )

  it.live("Without an offset of the group a topic is read from its end, which is the same one the next time", () =>
    Effect.gen(function* () {
      const broker = yield* fake()
      broker.publish("orders", ...numbered(3))
      yield* Effect.scoped(open(broker, { offsetReset: "latest" }))
      yield* seen("the member has left", () => broker.queue("orders").consumers.size === 0)
      expect(broker.groups.commits).toEqual([[0, 3]])
      broker.publish("orders", { id: "new", body: "new" })
      expect((yield* stored(yield* open(broker, { offsetReset: "latest" }), 1)).map(textOf)).toEqual(["new"])
    })
  )

  it.live.each(["earliest", "latest"] as const)("An offset that is gone is replaced by the %s one", (offsetReset) =>
    Effect.gen(function* () {
      const broker = yield* fake()
      broker.publish("orders", ...numbered(6))
      const [log] = broker.queue("orders").logs
      log!.batches.splice(0, 4)
      log!.start = 4
      broker.groups.group("tidegate").committed.set("orders 0", 1)
      const subscription = yield* open(broker, { offsetReset })
      const moved = offsetReset === "earliest" ? 4 : 6
      yield* seen("the new place is committed", () => broker.groups.commits.some(([, offset]) => offset === moved))
      broker.publish("orders", { id: "new", body: "new" })
      const [first] = yield* stored(subscription, 1)
      expect(first!.facts["x-gateway-offset"]).toBe(String(moved))
    })
  )

  it.live("Two members of a group share the partitions, and when one leaves the other one reads them all", () =>
    Effect.gen(function* () {
      const broker = yield* fake(2)
      const group = broker.groups.group("tidegate")
      const first = yield* open(broker)
      const shared = yield* Effect.scoped(
        Effect.gen(function* () {
          const second = yield* open(broker)
          yield* seen("both have partitions", () => group.assignments?.size === 2)
          broker.publish("orders", ...numbered(8))
          const [some, others] = yield* Effect.all([stored(first, 4), stored(second, 4)], { concurrency: 2 })
          yield* seen("all are committed", () => broker.queue("orders").settled.length === 8)
          return [some, others].map((all) => new Set(all.map(({ facts }) => facts["x-gateway-partition"])).size)
        })
      )
      expect(shared).toEqual([1, 1])
      broker.publish("orders", ...numbered(4))
      yield* stored(first, 4)
      yield* seen("all are committed", () => broker.queue("orders").settled.length === 12)
      expect(group.members.size).toBe(1)
    })
  )

  it.live(
    "When a group forms anew, what is being stored is committed first, and what was not taken is read again",
    () =>
      Effect.gen(function* () {
        const broker = yield* fake()
        broker.publish("orders", ...numbered(9))
        const subscription = yield* open(broker)
        const taken = yield* subscription.take
        broker.groups.form("tidegate")
        let beats = 0
        const joins: Array<number> = []
        broker.instead = ({ key }) => {
          if (key === groupCalls.heartbeat) beats++
          if (key === groupCalls.join) joins.push(broker.groups.commits.at(-1)?.[1] ?? 0)
          return undefined
        }
        yield* seen("it has heard of it", () => beats > 0)
        yield* subscription.settle(storing(taken))
        const more = yield* stored(subscription, 9 - taken.length)
        expect([...taken, ...more].map(textOf)).toEqual(numbered(9).map(({ body }) => body))
        expect(joins).toEqual([taken.length])
      })
  )

  it.live("A member that its group has forgotten commits nothing more of before, and joins again", () =>
    Effect.gen(function* () {
      const broker = yield* fake()
      broker.publish("orders", ...numbered(3))
      const subscription = yield* open(broker, { prefetch: 3 })
      const taken: Array<Received> = []
      while (taken.length < 3) taken.push(...(yield* subscription.take))
      broker.groups.forget("tidegate")
      const before = broker.groups.commits.length
      yield* subscription.settle(storing(taken))
      const again = yield* stored(subscription, 3)
      expect(again.map(({ id }) => id)).toEqual(taken.map(({ id }) => id))
      yield* seen("it is committed now", () => broker.groups.commits.length > before)
    })
  )

  it.live("A connection that is cut is made again, and nothing is lost", () =>
    Effect.gen(function* () {
      const broker = yield* fake()
      broker.publish("orders", ...numbered(4))
      const subscription = yield* open(broker)
      const first = yield* stored(subscription, 4)
      broker.cut()
      broker.publish("orders", { id: "after", body: "after" })
      const found = new Set(first.map(textOf))
      while (!found.has("after")) for (const one of yield* stored(subscription, 1)) found.add(textOf(one))
      expect(found.size).toBe(5)
    })
  )

  it.live("A private address that is not allowed is not connected to, and a refused password is named", () =>
    Effect.gen(function* () {
      const broker = yield* fake()
      expect(yield* Effect.flip(open(broker, {}, []))).toMatchObject({ code: "TARGET_NOT_ALLOWED" })
      const refused = yield* Effect.flip(open(broker, { password: "wrong" }))
      expect(refused).toMatchObject({ _tag: "BrokerRefusal", code: "SASL_AUTHENTICATION_FAILED" })
    })
  )
})
