import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type { Config } from "@tidegate/connectors/Settings"
import { kafka } from "../../connectors/src/Kafka.ts"
import { factsOf } from "../../connectors/test/Facts.ts"
import { faultsOf } from "../../connectors/test/Opened.ts"
import { partitionOfKey } from "../src/KafkaRecords.ts"
import { brokers, brokerSession, listening } from "./Brokering.ts"
import { message, sent, told } from "./Delivering.ts"
import { type Answer, broker, calls, producedAnswer, type Written, writtenIn } from "./FakeKafka.ts"

/** Several records in one request: `config.batch` of a Kafka destination. */

/** The longest wait (ms): a request that is full does not take it. */
const longest = 5_000

const taking = ({ partition }: Written): Buffer => producedAnswer(partition, { offset: 41 })
const refusing =
  (error: number) =>
  ({ partition }: Written): Buffer =>
    producedAnswer(partition, { error })

/** A session of a destination whose cluster answers each request as the next of these does, and then takes everything. */
const session = Effect.fnUntraced(function* (
  config: Config,
  answers: ReadonlyArray<(written: Written) => Buffer> = [],
  leaders: ReadonlyArray<number> = [1]
) {
  const all: Array<Written> = []
  const answer: Answer = (call) => {
    if (call.key !== calls.produce) return undefined
    const written = writtenIn(call)
    all.push(written)
    return (answers[all.length - 1] ?? taking)(written)
  }
  const { port } = yield* listening(broker(answer, leaders))
  const settings = {
    bootstrap_servers: `target.test:${port}`,
    topic: "orders",
    tls_mode: "disable",
    sasl_mechanism: "PLAIN",
    connect_timeout: 30,
    ...config
  }
  const opened = yield* brokerSession(kafka, settings)
  return { opened, all, numbers: () => all.map(({ count, sequence }) => [sequence, count]) }
})

/** Turns of the event loop, in which what can go would go. */
const turns = Effect.promise(async () => {
  for (let i = 0; i < 20; i++) await new Promise((go) => setImmediate(go))
})

/** The places of these texts in a request. */
const placesIn = ({ batch }: Written, texts: ReadonlyArray<string>) => texts.map((text) => batch.indexOf(text))

describe("Batches of a Kafka destination", () => {
  it.live("A request waits for others until it has as many records as it may, and each has its own answer", () =>
    Effect.gen(function* () {
      const { all, numbers, opened } = yield* session({ batch: { max_count: 3, max_wait_ms: longest } })
      const bodies = ["first", "second", "third"]
      const going: Array<Fiber.Fiber<Effect.Success<ReturnType<typeof sent>>>> = []
      for (const body of bodies) {
        expect(all).toEqual([])
        going.push(yield* Effect.forkChild(sent(opened, body)))
        yield* turns
      }
      const ends = yield* Fiber.joinAll(going)
      expect(ends.map(({ answer }) => JSON.parse(answer!.body.toString()))).toEqual(
        [41, 42, 43].map((offset) => ({ topic: "orders", partition: 0, offset }))
      )
      expect(numbers()).toEqual([[0, 3]])
      const places = placesIn(all[0]!, bodies)
      expect(places).toEqual(places.toSorted((a, b) => a - b))
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("A record for which no others come is sent when it has waited", () =>
    Effect.gen(function* () {
      const { numbers, opened } = yield* session({ batch: { max_wait_ms: 20 } })
      expect(told(yield* sent(opened))).toBe(200)
      expect(numbers()).toEqual([[0, 1]])
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("A request has no more bytes than it may, and a larger record has its own", () =>
    Effect.gen(function* () {
      const { numbers, opened } = yield* session({ batch: { max_bytes: 4_000, max_wait_ms: 20 } })
      const sizes = [1_000, 1_000, 2_500, 9_000, 10]
      const ends = yield* Effect.all(
        sizes.map((size) => sent(opened, "x".repeat(size))),
        { concurrency: "unbounded" }
      )
      expect(ends.map(told)).toEqual(sizes.map(() => 200))
      expect(numbers()).toEqual([
        [0, 2],
        [2, 1],
        [3, 1],
        [4, 1]
      ])
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Records of a key are in the requests of its partition, in the order in which they came", () =>
    Effect.gen(function* () {
      const partitions = 2
      const keys = [0, 1].map((wanted) =>
        Array.from({ length: 50 }, (_, i) => `key-${i}`).find((key) => partitionOfKey(key, partitions) === wanted)!
      )
      const config = { key: "{{payload.key}}", batch: { max_count: 3, max_wait_ms: longest } }
      const { all, opened } = yield* session(config, [], [1, 1])
      const records = ["n0", "n1", "n2"].flatMap((n) => keys.map((key) => ({ key, n: `${n} of ${key}` })))
      const ends = yield* Effect.all(
        records.map((record) => sent(opened, JSON.stringify(record))),
        { concurrency: "unbounded" }
      )
      expect(ends.map(told)).toEqual(records.map(() => 200))
      expect(new Map(all.map(({ count, partition }) => [partition, count]))).toEqual(
        new Map([
          [0, 3],
          [1, 3]
        ])
      )
      for (const written of all) {
        const own = records.filter(({ key }) => key === keys[written.partition]).map(({ n }) => n)
        const places = placesIn(written, own)
        expect([places.includes(-1), places]).toEqual([false, places.toSorted((a, b) => a - b)])
      }
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("A request that is refused is sent again record by record at once, and one of them fails alone", () =>
    Effect.gen(function* () {
      const { numbers, opened } = yield* session({ batch: { max_count: 3, max_wait_ms: longest } }, [
        refusing(10),
        taking,
        refusing(10)
      ])
      const ends = yield* Effect.all(
        ["evt_1", "evt_2", "evt_3"].map((id) => sent(opened, "{}", id)),
        { concurrency: "unbounded" }
      )
      expect(ends.map(told)).toEqual([200, { code: "BAD_RESPONSE", final: true, broken: false }, 200])
      expect(numbers()).toEqual([
        [0, 3],
        [0, 1],
        [1, 1],
        [1, 1]
      ])
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("A record that may not be sent any more when its request goes is left out of it", () =>
    Effect.gen(function* () {
      const { all, opened } = yield* session({ batch: { max_count: 2, max_wait_ms: longest } })
      let isHeld = true
      const lost = message("lost")
      const first = yield* Effect.forkChild(Effect.flip(opened.send(lost, factsOf(lost), () => isHeld)))
      yield* turns
      isHeld = false
      const second = message("held")
      const third = yield* Effect.forkChild(opened.send(second, factsOf(second), () => true))
      expect(yield* Fiber.join(first)).toMatchObject({ code: "NETWORK_REQUEST_CANCELED", final: false })
      expect((yield* Fiber.join(third)).status).toBe(200)
      expect(all.map((written) => placesIn(written, ["lost", "held"]).map((place) => place >= 0))).toEqual([
        [false, true]
      ])
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it("Limits that Kafka or max_concurrency does not allow are refused, and as many are under way as a request may have", () => {
    const base = { bootstrap_servers: "kafka.example.com:9092", topic: "orders" }
    const faults = (config: Config) => faultsOf("KAFKA", { ...base, ...config })
    expect(faults({ batch: {} })).toEqual([])
    expect(faults({ batch: { max_count: 201 } })).toEqual([
      "config.batch.max_count must be at most 200: the service takes no more in one call"
    ])
    expect(faults({ batch: { max_bytes: 1_000_001 } })).toHaveLength(1)
    expect(faults({ batch: { max_count: 3 }, max_concurrency: 2 })).toEqual([
      "config.max_concurrency must be null or at least 3, the events of a batch: they are under way together"
    ])
  })
})
