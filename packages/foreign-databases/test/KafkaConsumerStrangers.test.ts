import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { gzipSync } from "node:zlib"
import type { KafkaMember } from "@tidegate/connectors/Subscriptions"
import { leastMs, timesSlower, watchLoop } from "../../../test/support/LoopHeld.ts"
import { int16, int32, listOf, listOfOne, nullText, text } from "../src/KafkaFrames.ts"
import { auth, forEver } from "./Brokering.ts"
import { answerTo, calls, instead, int64, metadataAnswer } from "./FakeKafka.ts"
import { groupCalls } from "./FakeKafkaGroups.ts"
import { consumingCalls, FakeKafkaTopics, type Instead } from "./FakeKafkaTopics.ts"
import { batchOf } from "./KafkaBatchOf.ts"
import { nextOf, opened, seen } from "./Subscribing.ts"

/** Clusters that are no Kafka, or worse: each ends the subscription with a reason, and takes little memory. */

const memberAt = (port: number): KafkaMember => ({
  servers: [{ host: "broker.test", port }],
  topic: "orders",
  group: "tidegate",
  offsetReset: "earliest",
  mechanism: "PLAIN",
  ...auth,
  tls: false,
  connectTimeout: 30,
  prefetch: 5
})

const record = { key: null, headers: {}, value: Buffer.from("{}") }
const usual = batchOf({ first: 0, records: [record] })
const noThrottle = int32(0)

/** The answer to a fetch of version 10. */
const fetched = (
  partitions: ReadonlyArray<Buffer>,
  { count = partitions.length, error = 0, topic = "orders" } = {}
): Buffer =>
  Buffer.concat([
    noThrottle,
    int16(error),
    int32(0),
    listOfOne(Buffer.concat([text(topic), int32(count), ...partitions]))
  ])
const partition = (number: number, records: Buffer, { error = 0, size = records.length, aborted = 0 } = {}): Buffer =>
  Buffer.concat([int32(number), int16(error), int64(9), int64(9), int64(0), int32(aborted), int32(size), records])

const fetching = (body: Buffer): Instead => instead(consumingCalls.fetch, body)

const coordinator = (error: number, host: string, port: number): Instead =>
  instead(
    groupCalls.coordinator,
    Buffer.concat([noThrottle, int16(error), nullText, int32(1), text(host), int32(port)])
  )

/** The answer to a join by the leader of the group. */
const joined = (assignor: string, members: Buffer, error = 0): Instead =>
  instead(
    groupCalls.join,
    Buffer.concat([noThrottle, int16(error), int32(1), text(assignor), text("m"), text("m"), members])
  )
/** What the leader has assigned to the member. */
const synced = (assignment: Buffer): Instead => {
  const join = joined("range", int32(0))
  const sync = Buffer.concat([noThrottle, int16(0), int32(assignment.length), assignment])
  return (call, socket) => join(call, socket) ?? instead(groupCalls.sync, sync)(call, socket)
}
const assigning = (...numbers: ReadonlyArray<number>): Buffer =>
  Buffer.concat([int16(0), listOfOne(Buffer.concat([text("orders"), listOf(numbers.map(int32))])), int32(-1)])

const committed = (error: number): Instead =>
  instead(
    groupCalls.commit,
    Buffer.concat([
      noThrottle,
      listOfOne(Buffer.concat([text("orders"), listOfOne(Buffer.concat([int32(0), int16(error)]))]))
    ])
  )

/** So many batches without a record, and one with a record behind them. */
const manyBatches = (count: number): Buffer => {
  const empty = batchOf({ first: 0, records: [], behind: 0 })
  const all = Buffer.concat(Array.from<Buffer>({ length: count }).fill(empty))
  // The checksum of a batch is not of its offset.
  for (let n = 0; n < count; n++) all.writeBigInt64BE(BigInt(n + 1), n * empty.length)
  return Buffer.concat([all, batchOf({ first: count + 1, records: [record] })])
}

const protocol = { code: "PROTOCOL_ERROR" }
const tooLarge = { code: "RESPONSE_TOO_LARGE" }
const refused = (code: string) => ({ _tag: "BrokerRefusal", code })

const hugeHead = Buffer.from([0x7f, 255, 255, 255])

const strangers: ReadonlyArray<readonly [name: string, answer: Instead, as: object]> = [
  [
    "whose answer to a fetch has 2 GB",
    ({ key }, socket) => {
      if (key !== consumingCalls.fetch) return undefined
      socket.write(hugeHead)
      return null
    },
    tooLarge
  ],
  [
    "that floods instead of answering a fetch",
    ({ key }, socket) => {
      if (key !== consumingCalls.fetch) return undefined
      forEver(socket, Buffer.from([0, 0, 0, 4, 255, 255, 255, 255]))
      return null
    },
    protocol
  ],
  [
    "whose answer to a fetch has the number of another",
    ({ correlation, key }, socket) => {
      if (key !== consumingCalls.fetch) return undefined
      socket.write(answerTo({ correlation: correlation + 1 }, fetched([])))
      return null
    },
    protocol
  ],
  ["that gives records of two thousand million partitions", fetching(fetched([], { count: 0x7fffffff })), protocol],
  ["that gives records of another topic", fetching(fetched([partition(0, usual)], { topic: "other" })), protocol],
  ["that gives records of another partition", fetching(fetched([partition(5, usual)])), protocol],
  ["that gives a partition twice", fetching(fetched([partition(0, usual), partition(0, usual)])), protocol],
  ["that gives more records than there are", fetching(fetched([partition(0, usual, { size: 1_000 })])), protocol],
  [
    "with aborted transactions without number",
    fetching(fetched([partition(0, usual, { aborted: 0x7fffffff })])),
    protocol
  ],
  ["that gives no whole batch", fetching(fetched([partition(0, usual.subarray(0, 50))])), protocol],
  ["that gives what is no batch", fetching(fetched([partition(0, Buffer.alloc(100, 1))])), protocol],
  ["whose batch has another checksum", fetching(fetched([partition(0, Buffer.from(usual).fill(1, 61))])), protocol],
  [
    "whose batch is a bomb",
    fetching(
      fetched([
        partition(
          0,
          batchOf({ first: 0, records: [record], codec: 1, compress: () => gzipSync(Buffer.alloc(17 * 1024 * 1024)) })
        )
      ])
    ),
    tooLarge
  ],
  [
    "that may not give the topic",
    fetching(fetched([partition(0, usual, { error: 29 })])),
    refused("TOPIC_AUTHORIZATION_FAILED")
  ],
  ["that has failed", fetching(fetched([], { error: -1 })), refused("UNKNOWN_SERVER_ERROR")],
  [
    "that does not say where a partition begins",
    instead(
      consumingCalls.list,
      Buffer.concat([
        noThrottle,
        listOfOne(Buffer.concat([text("orders"), listOfOne(Buffer.concat([int32(0), int16(0), int64(-1), int64(-1)]))]))
      ])
    ),
    protocol
  ],
  ["that may not use the group", coordinator(30, "", 0), refused("GROUP_AUTHORIZATION_FAILED")],
  ["whose group is known by a broker without an address", coordinator(0, "a b", 9_092), protocol],
  [
    "whose group is known by a broker that may not be reached",
    coordinator(0, "10.0.0.1", 9_092),
    { code: "TARGET_NOT_ALLOWED" }
  ],
  ["whose group has members without number", joined("range", int32(0x7fffffff)), protocol],
  ["whose group assigns in its own way", joined("sticky", int32(0)), protocol],
  ["whose group is full", joined("range", int32(0), 81), refused("GROUP_MAX_SIZE_REACHED")],
  ["whose group gives ids without end", joined("range", int32(0), 79), refused("MEMBER_ID_REQUIRED")],
  ["whose group assigns what the topic does not have", synced(assigning(0, 7)), protocol],
  ["whose group assigns a partition below zero", synced(assigning(-1)), protocol],
  ["whose group assigns what cannot be read", synced(Buffer.from([0, 0, 127, 255, 255, 255])), protocol],
  ["that does not commit", committed(30), refused("GROUP_AUTHORIZATION_FAILED")],
  [
    "that has no such topic",
    instead(calls.metadata, metadataAnswer({ brokers: [], error: 3, leaders: [] })),
    refused("UNKNOWN_TOPIC_OR_PARTITION")
  ]
]

const fake = Effect.acquireRelease(
  Effect.promise(() => FakeKafkaTopics.start(auth.password)),
  (own) => Effect.promise(() => own.close())
)

const boundMs = (): number => 50 * timesSlower()

describe("Subscription at a Kafka that is not trusted", () => {
  it.live.each(strangers)("Subscription at a cluster %s ends for that reason", ([, answer, as]) =>
    Effect.gen(function* () {
      const broker = yield* fake
      broker.publish("orders", { id: "m", body: "{}" })
      broker.instead = answer
      const before = process.memoryUsage().rss
      const ended = Effect.gen(function* () {
        const subscription = yield* opened("kafka", memberAt(broker.port))
        return yield* Effect.forever(subscription.take)
      })
      const failure = yield* Effect.flip(Effect.scoped(ended))
      expect(failure).toMatchObject(as)
      expect(JSON.stringify(failure)).not.toContain(auth.password)
      expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024)
    })
  )

  it.live("A fetch that gives fifty thousand batches without records does not hold the event loop", () => {
    const answer = fetching(fetched([partition(0, manyBatches(50_000))]))
    const measured = Effect.gen(function* () {
      const broker = yield* fake
      const subscription = yield* opened("kafka", memberAt(broker.port))
      yield* seen("a fetch waits", () => broker.fetches > 0)
      broker.instead = answer
      const held = watchLoop()
      // Ends the fetch that waits at the broker.
      broker.publish("orders", { id: "m", body: "{}" })
      const received = yield* nextOf(subscription, 2)
      expect(received.at(-1)!.facts).toMatchObject({ "x-gateway-offset": "50001" })
      return held()
    }).pipe(Effect.scoped)
    return Effect.map(leastMs(boundMs, measured), (heldMs) => expect(heldMs).toBeLessThan(boundMs()))
  })

  it.live("A group that forms anew at each commit is joined again after longer and longer pauses", () =>
    Effect.gen(function* () {
      const broker = yield* fake
      const joins: Array<number> = []
      const [anew, empty] = [committed(27), fetching(fetched([partition(0, Buffer.alloc(0))]))]
      broker.instead = (call, socket) => {
        if (call.key === groupCalls.join) joins.push(performance.now())
        // A fetch that waits at the broker would hold up the next join.
        return anew(call, socket) ?? empty(call, socket)
      }
      yield* opened("kafka", memberAt(broker.port))
      // The first two are one: a member is given its id by the first.
      yield* seen("the group is joined four times again", () => joins.length >= 6)
      expect(joins[5]! - joins[1]!).toBeGreaterThan(700)
    }).pipe(Effect.scoped)
  )
})
