import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import type { Socket } from "node:net"
import type { Config } from "@tidegate/connectors/Settings"
import { kafka } from "../../connectors/src/Kafka.ts"
import type { Target } from "../../egress/test/targets.ts"
import { crc32c, murmur2, partitionOfKey, sequenceAfter } from "../src/KafkaRecords.ts"
import { brokers, brokerSession, listening } from "./Brokering.ts"
import { sent, told } from "./Delivering.ts"
import {
  type Answer,
  answerTo,
  authenticateAnswer,
  broker,
  type Call,
  calls,
  instead,
  metadataAnswer,
  producedAnswer,
  producerAnswer,
  type Written,
  writtenIn
} from "./FakeKafka.ts"

/** What an idempotent producer does when brokers change, refuse and hang up. */

const configOf = ({ port }: Pick<Target, "port">, change: Config = {}): Config => ({
  bootstrap_servers: `target.test:${port}`,
  topic: "orders",
  tls_mode: "disable",
  sasl_mechanism: "PLAIN",
  connect_timeout: 30,
  ...change
})

const refused = { code: "BAD_RESPONSE", final: false, broken: false }

type ToBatch = (written: Written, call: Call, socket: Socket) => Buffer | null

/** Answers each batch as the next of these does, and the ones after them as a broker that takes everything. */
const batches = (...answers: ReadonlyArray<ToBatch>) => {
  const all: Array<Written> = []
  let producers = 0
  const answer: Answer = (call, socket) => {
    if (call.key === calls.producer) return producerAnswer(++producers)
    if (call.key !== calls.produce) return undefined
    const written = writtenIn(call)
    all.push(written)
    const next = answers[all.length - 1]
    return next === undefined ? producedAnswer(written.partition) : next(written, call, socket)
  }
  return { all, answer, numbers: () => all.map(({ count, producer, sequence }) => [producer, sequence, count]) }
}

const refusing =
  (error: number) =>
  ({ partition }: Written): Buffer =>
    producedAnswer(partition, { error })

const hangingUp = (_: Written, __: Call, socket: Socket): null => {
  socket.destroy()
  return null
}

/** A port where nobody listens any more. */
const unreachable = Effect.scoped(
  Effect.map(
    listening(() => undefined),
    ({ port }) => port
  )
)

/** Sends one after the other, and returns how each has ended. */
const sentInTurn = Effect.fnUntraced(function* (target: Target, ids: ReadonlyArray<string>) {
  const session = yield* brokerSession(kafka, configOf(target))
  return yield* Effect.forEach(ids, (id) => Effect.map(sent(session, "{}", id), told))
})

/** Sends one record, and three that wait for it, so that they are one batch. `answers`: to that batch, and to what follows. */
const sentAsBatch = Effect.fnUntraced(function* (...answers: ReadonlyArray<ToBatch>) {
  const arrived = yield* Deferred.make<void>()
  let go = (): void => undefined
  const { answer, numbers } = batches(
    ({ partition }, call, socket) => {
      go = () => void socket.write(answerTo(call, producedAnswer(partition)))
      Deferred.doneUnsafe(arrived, Effect.void)
      return null
    },
    ...answers
  )
  const session = yield* brokerSession(kafka, configOf(yield* listening(broker(answer))))
  const sending = yield* Effect.forkChild(sent(session, "{}", "evt_0"))
  yield* Deferred.await(arrived)
  const waiting = yield* Effect.forkChild(
    Effect.all(
      ["evt_1", "evt_2", "evt_3"].map((id) => sent(session, "{}", id)),
      { concurrency: "unbounded" }
    )
  )
  yield* Effect.yieldNow
  go()
  return { first: yield* Fiber.join(sending), more: yield* Fiber.join(waiting), numbers }
})

describe("Records of a Kafka destination", () => {
  it("Checksums, partitions and numbers are those of Kafka's own producers", () => {
    for (const at of [0, 1, 4, 6]) {
      const digits = Buffer.from("123456789")
      expect(crc32c([digits.subarray(0, at), digits.subarray(at)])).toBe(0xe3069283)
    }
    const hashes = {
      "21": -973_932_308,
      foobar: -790_332_482,
      "a-little-bit-long-string": -985_981_536,
      "a-little-bit-longer-string": -1_486_304_829,
      lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8: -58_897_971,
      abc: 479_470_107
    }
    for (const [key, hash] of Object.entries(hashes)) expect([key, murmur2(Buffer.from(key))]).toEqual([key, hash])
    expect(partitionOfKey("foobar", 7)).toBe((-790_332_482 & 0x7fffffff) % 7)
    expect(sequenceAfter(0x7ffffffe, 3)).toBe(1)
  })

  it.live("Records that come while a batch is under way are the next batch, and each has its offset", () =>
    Effect.gen(function* () {
      const { first, more, numbers } = yield* sentAsBatch(({ partition }: Written) =>
        producedAnswer(partition, { offset: 41 })
      )
      expect(told(first)).toBe(200)
      expect(more.map(({ answer }) => JSON.parse(answer!.body.toString()))).toEqual([
        { topic: "orders", partition: 0, offset: 41 },
        { topic: "orders", partition: 0, offset: 42 },
        { topic: "orders", partition: 0, offset: 43 }
      ])
      expect(numbers()).toEqual([
        [1, 0, 1],
        [1, 1, 3]
      ])
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live.each([
    ["has another leader by now", refusing(6)],
    ["has not enough replicas", refusing(19)],
    ["has kept it with too few replicas", refusing(20)],
    ["hangs up", hangingUp]
  ] as const)("Record for a partition that %s is sent again with the same number", ([, first]) =>
    Effect.gen(function* () {
      const { answer, numbers } = batches(first)
      const target = yield* listening(broker(answer))
      expect(yield* sentInTurn(target, ["evt_1", "evt_2"])).toEqual([200, 200])
      expect(numbers()).toEqual([
        [1, 0, 1],
        [1, 0, 1],
        [1, 1, 1]
      ])
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Record that the cluster has already, because its answer was lost, is confirmed without an offset", () =>
    Effect.gen(function* () {
      const { answer, numbers } = batches(hangingUp, refusing(46))
      const target = yield* listening(broker(answer))
      const session = yield* brokerSession(kafka, configOf(target))
      const { answer: confirmed } = yield* sent(session)
      expect(JSON.parse(confirmed!.body.toString())).toEqual({ topic: "orders", partition: 0, offset: null })
      expect(told(yield* sent(session))).toBe(200)
      expect(numbers()).toEqual([
        [1, 0, 1],
        [1, 0, 1],
        [1, 1, 1]
      ])
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live.each([45, 47, 49, 59])("Cluster that has forgotten the gateway (%s) gives it another number", (error) =>
    Effect.gen(function* () {
      const { answer, numbers } = batches(({ partition }) => producedAnswer(partition), refusing(error))
      const target = yield* listening(broker(answer))
      expect(yield* sentInTurn(target, ["evt_1", "evt_2", "evt_3"])).toEqual([200, 200, 200])
      expect(numbers()).toEqual([
        [1, 0, 1],
        [1, 1, 1],
        [2, 0, 1],
        [2, 1, 1]
      ])
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Number of a record that was refused is the number of the next one", () =>
    Effect.gen(function* () {
      const { answer, numbers } = batches(refusing(10))
      const target = yield* listening(broker(answer))
      expect(yield* sentInTurn(target, ["evt_1", "evt_2"])).toEqual([{ ...refused, final: true }, 200])
      expect(numbers()).toEqual([
        [1, 0, 1],
        [1, 0, 1]
      ])
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Record whose fate is not known at the end makes the next one begin with another number of the gateway", () =>
    Effect.gen(function* () {
      const { answer, numbers } = batches(hangingUp, refusing(29))
      const target = yield* listening(broker(answer))
      expect(yield* sentInTurn(target, ["evt_1", "evt_2"])).toEqual([{ ...refused, code: "AUTH_REJECTED" }, 200])
      expect(numbers()).toEqual([
        [1, 0, 1],
        [1, 0, 1],
        [2, 0, 1]
      ])
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Batch that is refused is sent again record by record, and one of them fails alone", () =>
    Effect.gen(function* () {
      const taking = ({ partition }: Written): Buffer => producedAnswer(partition)
      const { more, numbers } = yield* sentAsBatch(refusing(10), taking, refusing(10))
      expect(more.map(told)).toEqual([200, { ...refused, final: true }, 200])
      expect(numbers()).toEqual([
        [1, 0, 1],
        [1, 1, 3],
        [1, 1, 1],
        [1, 2, 1],
        [1, 2, 1]
      ])
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Record goes to the new leader at once, over a connection of its own", () =>
    Effect.gen(function* () {
      const next = batches()
      const second = yield* listening(broker(next.answer))
      let leader = 1
      const { answer, numbers } = batches((written) => {
        leader = 2
        return refusing(6)(written)
      })
      const first = yield* listening(
        broker((call, socket) =>
          call.key === calls.metadata
            ? metadataAnswer({
                brokers: [
                  [1, "target.test", socket.localPort!],
                  [2, "target.test", second.port]
                ],
                leaders: [leader]
              })
            : answer(call, socket)
        )
      )
      expect(yield* sentInTurn(first, ["evt_1", "evt_2"])).toEqual([200, 200])
      expect(numbers()).toEqual([[1, 0, 1]])
      expect(next.numbers()).toEqual([
        [1, 0, 1],
        [1, 1, 1]
      ])
      expect([first.connections(), second.connections()]).toEqual([1, 1])
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Record for a broker that is away goes to the one that leads its partition then", () =>
    Effect.gen(function* () {
      const away = yield* unreachable
      let asked = 0
      const target = yield* listening(
        broker(
          instead(calls.metadata, (_, { localPort }) =>
            metadataAnswer({
              brokers: [
                [1, "target.test", localPort!],
                [2, "target.test", away]
              ],
              leaders: [++asked === 1 ? 2 : 1]
            })
          )
        )
      )
      expect(yield* sentInTurn(target, ["evt_1"])).toEqual([200])
      expect(asked).toBe(2)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Record that was not sent fails at once when no broker can be reached", () =>
    Effect.gen(function* () {
      const away = yield* unreachable
      const telling = broker(
        instead(calls.metadata, metadataAnswer({ brokers: [[2, "target.test", away]], leaders: [2] }))
      )
      let connected = 0
      const target = yield* listening((socket) => {
        if (++connected === 1) telling(socket)
        else socket.end()
      })
      expect(yield* sentInTurn(target, ["evt_1"])).toEqual([{ ...refused, code: "SOCKET_CLOSED" }])
      // Once to be told of the leader, and once to be told of another.
      expect(connected).toBe(2)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Next server of the settings is asked when the first one is away", () =>
    Effect.gen(function* () {
      const away = yield* unreachable
      const target = yield* listening(broker(() => undefined))
      const bootstrap_servers = `target.test:${away}, target.test:${target.port}`
      expect(told(yield* sent(yield* brokerSession(kafka, configOf(target, { bootstrap_servers }))))).toBe(200)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Confirmation of an interrupted record is dropped, and the connection stays usable", () =>
    Effect.gen(function* () {
      const arrived = yield* Deferred.make<void>()
      let first = (): void => undefined
      const { answer, numbers } = batches(({ partition }, call, socket) => {
        first = () => void socket.write(answerTo(call, producedAnswer(partition)))
        Deferred.doneUnsafe(arrived, Effect.void)
        return null
      })
      const target = yield* listening(broker(answer))
      const session = yield* brokerSession(kafka, configOf(target))
      const sending = yield* Effect.forkChild(sent(session))
      yield* Deferred.await(arrived)
      // Nothing is sent of one that is interrupted while it waits.
      const waiting = yield* Effect.forkChild(sent(session))
      yield* Effect.yieldNow
      yield* Fiber.interrupt(waiting)
      yield* Fiber.interrupt(sending)
      first()
      expect(told(yield* sent(session))).toBe(200)
      expect(numbers()).toEqual([
        [1, 0, 1],
        [1, 1, 1]
      ])
      expect(target.connections()).toBe(1)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("Session that the broker will end soon is followed by another one, without a failure", () =>
    Effect.gen(function* () {
      const target = yield* listening(broker(instead(calls.authenticate, authenticateAnswer("", 0, "", 1))))
      const session = yield* brokerSession(kafka, configOf(target))
      expect(told(yield* sent(session))).toBe(200)
      const before = target.connections()
      // The millisecond for which the broker has let the gateway in is over.
      yield* Effect.sleep("2 millis")
      expect(told(yield* sent(session))).toBe(200)
      expect(target.connections()).toBe(before + 1)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  it.live("At most 32 brokers are connected at once, and the others get their records afterwards", () =>
    Effect.gen(function* () {
      const partitions = 40
      const held: Array<() => void> = []
      let most = 0
      const go = (): void => {
        most = Math.max(most, held.length)
        for (const answer of held.splice(0)) answer()
      }
      const target = yield* listening(
        broker((call, socket) => {
          if (call.key === calls.metadata) {
            return metadataAnswer({
              brokers: Array.from({ length: partitions }, (_, i) => [i, `b${i}.test`, socket.localPort!] as const),
              leaders: Array.from({ length: partitions }, (_, i) => i)
            })
          }
          if (call.key !== calls.produce) return undefined
          const { partition } = writtenIn(call)
          held.push(() => void socket.write(answerTo(call, producedAnswer(partition))))
          // Others would come now, if they came.
          if (held.length === 32 || most > 0) setImmediate(() => setImmediate(go))
          return null
        })
      )
      const keys = new Map<number, string>()
      for (let i = 0; keys.size < partitions; i++) keys.set(partitionOfKey(`k${i}`, partitions), `k${i}`)
      const session = yield* brokerSession(kafka, configOf(target, { key: "{{payload.key}}" }))
      const ends = yield* Effect.all(
        Array.from(keys.values(), (key) => sent(session, JSON.stringify({ key }), key)),
        { concurrency: "unbounded" }
      )
      expect([...new Set(ends.map(told))]).toEqual([200])
      expect(most).toBe(32)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )
})
