import { describe, expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import type { KafkaMember, Received, Subscription } from "@tidegate/connectors/Subscriptions"
import { eventually } from "../../../test/support/Waiting.ts"
import { auth } from "./Brokering.ts"
import { isInstalled, ownKafka, type OwnKafka } from "./OwnKafka.ts"
import { opened, storing } from "./Subscribing.ts"

/** Members of consumer groups against a real Kafka, where there is one (`OwnKafka.ts`): written and read by Kafka's own clients, too. */

class Foreign extends Context.Service<Foreign, OwnKafka>()("ForeignKafkaOfMembers") {}

const codecs = ["none", "gzip", "snappy", "lz4", "zstd"] as const

const making = Effect.tap(ownKafka, ({ topic }) =>
  Effect.promise(async () => {
    for (const codec of codecs) await topic(codec, 1)
    for (const name of ["shared", "mixed", "killed"]) await topic(name, 4)
    await topic("latest", 1)
  })
)
const world = Layer.effect(Foreign, making)

const open = (port: number, topic: string, change: Partial<KafkaMember> = {}) =>
  opened("kafka", {
    servers: [{ host: "127.0.0.1", port }],
    topic,
    group: topic,
    offsetReset: "earliest",
    mechanism: "SCRAM-SHA-256",
    ...auth,
    tls: false,
    connectTimeout: 30,
    prefetch: 50,
    ...change
  })

/** Takes and stores until there are so many different records; the bodies, in their order. */
const stored = Effect.fnUntraced(function* ({ settle, take }: Subscription, count: number, all: Map<string, Received>) {
  while (all.size < count) {
    const received = yield* take
    yield* settle(storing(received))
    for (const one of received) all.set(one.id!, one)
  }
})

const bodies = (all: Map<string, Received>) => [...all.values()].map(({ body }) => Buffer.from(body!).toString())
const lines = (count: number, from = 0) =>
  Array.from({ length: count }, (_, n) => `order ${from + n} is paid, and so on`)

describe.skipIf(!isInstalled)("Member of a group of Kafka (skipped where KAFKA_HOME or Java is missing)", () => {
  layer(world, { excludeTestServices: true })((it) => {
    it.effect.each(codecs)("Records that Kafka's own producer compresses by %s arrive in their order, once", (codec) =>
      Effect.gen(function* () {
        const { committed, port, produce } = yield* Foreign
        yield* Effect.promise(() => produce(codec, lines(500), codec))
        const all = new Map<string, Received>()
        yield* Effect.scoped(Effect.flatMap(open(port, codec), (subscription) => stored(subscription, 500, all)))
        expect(bodies(all)).toEqual(lines(500))
        expect(yield* Effect.promise(() => committed(codec))).toEqual([500])
      })
    )

    it.effect("A group without an offset begins at the end, and stays there when it comes again", () =>
      Effect.gen(function* () {
        const { committed, port, produce } = yield* Foreign
        yield* Effect.promise(() => produce("latest", lines(3)))
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* open(port, "latest", { offsetReset: "latest" })
            yield* Effect.promise(() =>
              eventually("the end is committed", async () => ((await committed("latest"))[0] === 3 ? true : null))
            )
          })
        )
        yield* Effect.promise(() => produce("latest", ["new"]))
        const all = new Map<string, Received>()
        yield* Effect.flatMap(open(port, "latest", { offsetReset: "latest" }), (it) => stored(it, 1, all))
        expect(bodies(all)).toEqual(["new"])
      })
    )

    it.effect("Two members share the partitions, and after one has left, the other one reads them all", () =>
      Effect.gen(function* () {
        const { port, produce } = yield* Foreign
        const all = new Map<string, Received>()
        const first = yield* open(port, "shared")
        yield* Effect.scoped(
          Effect.gen(function* () {
            const second = yield* open(port, "shared")
            yield* Effect.promise(() => produce("shared", lines(400)))
            yield* Effect.raceFirst(stored(first, 400, all), stored(second, 400, all))
          })
        )
        yield* Effect.promise(() => produce("shared", lines(200, 400)))
        yield* stored(first, 600, all)
        expect(new Set(bodies(all))).toEqual(new Set(lines(600)))
      })
    )

    it.effect("The source and Kafka's own consumer are members of one group, and read all between them", () =>
      Effect.gen(function* () {
        const { member, members, port, produce } = yield* Foreign
        const all = new Map<string, Received>()
        const subscription = yield* open(port, "mixed")
        const others = yield* member("mixed", "mixed")
        const read = () => new Set([...others().map(({ value }) => value), ...bodies(all)])
        const written = Effect.promise(async () => {
          await eventually("both are members", async () => ((await members("mixed")) === 2 ? true : null))
          // What one producer writes may be one batch, which goes to one partition: it goes on until each has got some.
          let batches = 0
          while (batches < 6 || others().length === 0 || all.size === 0) {
            await produce("mixed", lines(20, batches++ * 20))
          }
          await eventually("all are read", () => (read().size >= batches * 20 ? true : null))
          return lines(batches * 20)
        })
        // A subscription that ends fails the test at once, with its reason.
        const expected = yield* Effect.raceFirst(written, Effect.as(stored(subscription, Infinity, all), []))
        expect(read()).toEqual(new Set(expected))
      })
    )

    it.effect("A broker that is killed and started again loses no record, and is read on", () =>
      Effect.gen(function* () {
        const { kill, port, produce, start } = yield* Foreign
        yield* Effect.promise(() => produce("killed", lines(300)))
        const all = new Map<string, Received>()
        yield* Effect.scoped(Effect.flatMap(open(port, "killed"), (subscription) => stored(subscription, 150, all)))
        yield* kill
        yield* start
        yield* Effect.promise(() => produce("killed", lines(100, 300)))
        yield* Effect.flatMap(open(port, "killed"), (subscription) => stored(subscription, 400, all))
        expect(new Set(bodies(all))).toEqual(new Set(lines(400)))
      })
    )
  })
})
