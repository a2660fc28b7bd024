import { randomBytes } from "node:crypto"
import { afterAll, describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer, Redacted, Result, type Scope, Stream } from "effect"
import { noOwnRedis, noRedis, Redis } from "../../../test/support/Redis.ts"
import { waitUntil } from "../../../test/support/Waiting.ts"
import * as Coordination from "../src/Coordination.ts"
import { Feed, longestMessage, type Received } from "../src/Feed.ts"
import { RateLimiter } from "../src/limits/RateLimiter.ts"
import type { Limit } from "../src/limits/Limit.ts"
import { redisAddress } from "../src/RedisAddress.ts"

type Process = Context.Context<RateLimiter | Feed | Coordination.RedisStatus>

/** As many processes as are asked for, that share what they can: one of memory, several of Redis. */
type Start = (count: number) => Effect.Effect<ReadonlyArray<Process>, never, Scope.Scope>

const inMemory: Start = (count) =>
  Effect.map(Layer.build(Coordination.layerMemory), (one) => Array.from({ length: count }, () => one))

const redis = noRedis === null ? await Redis.start() : null
afterAll(() => redis?.stop())

const inRedis: Start = (count) => {
  const secret = Redacted.make(new Uint8Array(randomBytes(32)))
  const layer = Coordination.layerRedis(Result.getOrThrow(redisAddress(Redacted.make(redis!.url))), secret, 60_000)
  return Effect.all(
    Array.from({ length: count }, () =>
      Effect.gen(function* () {
        const built = yield* Layer.build(Layer.fresh(layer))
        const { answers } = Context.get(built, Coordination.RedisStatus)
        yield* Effect.promise(() => waitUntil("Redis answers", () => answers() === true))
        return built
      })
    )
  )
}

/** A share of its window takes longer than the test may. */
const limit = (calls: number): Limit => ({ name: "tests", calls, windowMs: calls * 3_600_000, maxKeys: 100 })

const texts = (count: number): ReadonlyArray<Received> =>
  Array.from({ length: count }, (_, index) => ({ kind: "message", text: `m${index}` }))

const next = (stream: Stream.Stream<Received, unknown>, count: number) => Stream.runCollect(Stream.take(stream, count))

const suite = (start: Start) => {
  it.live("Rate limit is exact across processes and separate for each key", () =>
    Effect.gen(function* () {
      const limiters = (yield* start(3)).map(Context.get(RateLimiter))
      for (const calls of [1, 7, 10, 300]) {
        const asked = Array.from({ length: calls + 50 }, (_, index) =>
          limiters[index % 3]!.take({ ...limit(calls), name: `of_${calls}` }, "a client")
        )
        const verdicts = yield* Effect.all(asked, { concurrency: 20 })
        expect(verdicts.filter(({ allowed }) => allowed).length).toBe(calls)
        const told = verdicts.flatMap(({ allowed, remaining }) => (allowed ? [remaining] : []))
        expect(told.toSorted((a, b) => a - b)).toEqual(Array.from({ length: calls }, (_, index) => index))
        const refused = verdicts.find(({ allowed }) => !allowed)!
        expect(refused).toMatchObject({ limit: calls, windowMs: calls * 3_600_000, remaining: 0 })
        expect(refused.retryMs).toBeGreaterThan(3_000_000)
        expect(refused.resetMs).toBeGreaterThan((calls - 1) * 3_600_000)
        expect((yield* limiters[0]!.take({ ...limit(calls), name: `of_${calls}` }, "another")).allowed).toBe(true)
      }
    }).pipe(Effect.scoped)
  )

  it.live("Rate limit gives one call back after each share of its window", () =>
    Effect.gen(function* () {
      const [a, b] = (yield* start(2)).map(Context.get(RateLimiter))
      const brief: Limit = { name: "brief", calls: 2, windowMs: 1_000, maxKeys: 100 }
      yield* a!.take(brief, "key")
      let waited = 0
      for (let taken = 1; taken < 5;) {
        const { allowed, retryMs } = yield* b!.take(brief, "key")
        if (allowed) taken++
        else {
          expect(retryMs).toBeLessThanOrEqual(500)
          waited++
          yield* Effect.sleep(retryMs + 1)
        }
      }
      expect(waited).toBeGreaterThan(0)
    }).pipe(Effect.scoped)
  )

  it.live("Feed delivers later messages in order to every subscriber of the channel in every process", () =>
    Effect.gen(function* () {
      const [a, b] = (yield* start(2)).map(Context.get(Feed))
      yield* a!.publish("a", "too early")
      const streams = [yield* a!.subscribe("a"), yield* b!.subscribe("a"), yield* b!.subscribe("a")]
      const other = yield* b!.subscribe("b")
      for (let n = 0; n < 3; n++) yield* a!.publish("a", `m${n}`)
      yield* a!.publish("b", "m0")
      for (const stream of streams) expect(yield* next(stream, 3)).toEqual(texts(3))
      expect(yield* next(other, 1)).toEqual(texts(1))
    }).pipe(Effect.scoped)
  )

  it.live("Feed channel without subscribers can be subscribed to again", () =>
    Effect.gen(function* () {
      const [a, b] = (yield* start(2)).map(Context.get(Feed))
      for (let n = 0; n < 3; n++) {
        yield* Effect.scoped(
          Effect.gen(function* () {
            const stream = yield* b!.subscribe("a")
            yield* a!.publish("a", "m0")
            expect(yield* next(stream, 1)).toEqual(texts(1))
          })
        )
      }
    }).pipe(Effect.scoped)
  )

  it.live("Feed drops a subscriber that reads too slowly, by number or bytes, and no other", () =>
    Effect.gen(function* () {
      const [a, b] = (yield* start(2)).map(Context.get(Feed))
      for (const [message, most] of [
        ["m", 256],
        ["x".repeat(longestMessage), 16]
      ] as const) {
        const slow = yield* b!.subscribe("a")
        const quick = yield* b!.subscribe("a")
        for (let sent = 0; sent < 3 * most; sent++) {
          yield* a!.publish("a", message)
          expect(yield* next(quick, 1)).toEqual([{ kind: "message", text: message }])
        }
        expect(String(yield* Effect.exit(Stream.runDrain(slow)))).toContain("TooSlow")
      }
    }).pipe(Effect.scoped)
  )

  it.live("Feed reports a gap in place of a message that is too long", () =>
    Effect.gen(function* () {
      const [a, b] = (yield* start(2)).map(Context.get(Feed))
      const streams = [yield* a!.subscribe("a"), yield* b!.subscribe("a")]
      yield* a!.publish("a", "ü".repeat(longestMessage / 2 + 1))
      for (const stream of streams) expect(yield* next(stream, 1)).toEqual([{ kind: "gap" }])
    }).pipe(Effect.scoped)
  )
}

describe("Coordination in memory", () => suite(inMemory))

describe.skipIf(redis === null)("Coordination in Redis", () => {
  suite(inRedis)

  it.live.skipIf(noOwnRedis)(
    "Redis holds no key without an expiry and no counted or subscribed name in clear text",
    () =>
      Effect.gen(function* () {
        const [one] = yield* inRedis(1)
        yield* Context.get(one!, RateLimiter).take(limit(3), "203.0.113.77")
        yield* Context.get(one!, Feed).subscribe("203.0.113.77")
        const ask = (command: string) => Effect.promise(() => redis!.ask(command))
        const keys = (yield* ask("KEYS *")).match(/tidegate:limit:\S+/g) ?? []
        expect(keys.length).toBeGreaterThan(0)
        for (const key of keys) expect(yield* ask(`PTTL ${key}`)).toMatch(/:[1-9]\d*\r\n/)
        const seen = `${keys.join()} ${yield* ask("PUBSUB CHANNELS *")}`
        expect(seen).toContain("tidegate:feed:")
        expect(seen).not.toContain("203.0.113.77")
      }).pipe(Effect.scoped)
  )
})
