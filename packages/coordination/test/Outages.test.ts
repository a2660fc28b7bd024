import { randomBytes } from "node:crypto"
import { afterAll, beforeEach, describe, expect, it } from "@effect/vitest"
import { Context, Effect, Layer, Logger, Redacted, Result, Stream } from "effect"
import { metrics } from "@tidegate/telemetry/Metrics"
import { noOwnRedis, Redis } from "../../../test/support/Redis.ts"
import { waitUntil } from "../../../test/support/Waiting.ts"
import * as Coordination from "../src/Coordination.ts"
import { Feed, type Received } from "../src/Feed.ts"
import { RateLimiter } from "../src/limits/RateLimiter.ts"
import type { Limit } from "../src/limits/Limit.ts"
import { redisAddress } from "../src/RedisAddress.ts"

/** One that tests stop and freeze; each finds it at work. */
const redis = noOwnRedis ? null : await Redis.start()
beforeEach(() => redis?.start())
afterAll(() => redis?.stop())

const secret = Redacted.make(new Uint8Array(randomBytes(32)))
/** Longer than the usual one: a busy machine must not look like an outage. */
const deadlineMs = 2_000
const reasons = ["away", "deadline", "lost", "refused", "busy"] as const
const unansweredSoFar = () => reasons.reduce((sum, reason) => sum + metrics.redisUnanswered.at(reason).value, 0)
const limit = (calls: number): Limit => ({ name: "tests", calls, windowMs: calls * 3_600_000, maxKeys: 100 })

const start = (lines: Array<string> = []) =>
  Effect.gen(function* () {
    const layer = Coordination.layerRedis(
      Result.getOrThrow(redisAddress(Redacted.make(redis!.url))),
      secret,
      deadlineMs
    )
    const log = Logger.layer([Logger.make(({ message }) => void lines.push(JSON.stringify(message)))])
    const built = yield* Effect.provide(Layer.build(Layer.fresh(layer)), log)
    const status = Context.get(built, Coordination.RedisStatus)
    return {
      take: Context.get(built, RateLimiter).take,
      feed: Context.get(built, Feed),
      answers: status.answers,
      until: (answers: boolean) =>
        Effect.promise(() => waitUntil(`Redis answers: ${answers}`, () => status.answers() === answers))
    }
  })

/** How Redis goes away and comes back. */
const outages = [
  ["stopped", () => redis!.stop(), () => redis!.start()],
  ["frozen", async () => redis!.freeze(), async () => redis!.thaw()]
] as const

describe.skipIf(redis === null)("Redis outage", () => {
  it.live.each(outages)("Rate limits stay fast while Redis is %s and are shared again afterwards", ([, away, back]) =>
    Effect.gen(function* () {
      const lines: Array<string> = []
      const [one, two] = [yield* start(lines), yield* start()]
      yield* one.until(true)
      yield* two.until(true)
      const key = randomBytes(8).toString("hex")
      const taken = (count: number, by: typeof one) =>
        Effect.map(
          Effect.forEach(Array.from({ length: count }), () => by.take(limit(10), key)),
          (verdicts) => verdicts.filter(({ allowed }) => allowed).length
        )
      expect(yield* taken(4, one)).toBe(4)
      expect(yield* taken(2, two)).toBe(2)
      expect(yield* taken(1, one)).toBe(1)

      yield* Effect.promise(away)
      const unanswered = unansweredSoFar()
      // The first may wait; nobody does after it. What each knew last goes on: 7 calls of the one, 6 of the other.
      expect(yield* taken(1, one)).toBe(1)
      yield* one.until(false)
      const before = performance.now()
      expect(yield* taken(1_000, one)).toBe(2)
      // Each of them would wait for the deadline.
      expect(performance.now() - before).toBeLessThan(100 * deadlineMs)
      expect(yield* taken(1_000, two)).toBe(4)
      expect(unansweredSoFar()).toBeGreaterThan(unanswered + 1)

      yield* Effect.promise(back)
      yield* one.until(true)
      yield* two.until(true)
      expect(yield* taken(5, one)).toBe(0)
      const fresh = randomBytes(8).toString("hex")
      const both = yield* Effect.forEach(Array.from({ length: 20 }), (_, index) =>
        (index % 2 === 0 ? one : two).take(limit(10), fresh)
      )
      expect(both.filter(({ allowed }) => allowed).length).toBe(10)
      expect(lines.filter((line) => line.includes("does not answer")).length).toBe(1)
    }).pipe(Effect.scoped)
  )

  it.live.each(outages)("Feed reports a gap while Redis is %s and resumes by itself", ([, away, back]) =>
    Effect.gen(function* () {
      const [one, two] = [yield* start(), yield* start()]
      yield* one.until(true)
      yield* two.until(true)
      const told: Array<Received> = []
      const stream = yield* one.feed.subscribe("a")
      yield* Effect.forkScoped(Stream.runForEach(stream, (item) => Effect.sync(() => void told.push(item))))
      const has = (text: string) =>
        Effect.promise(() =>
          waitUntil(`"${text}" was told`, () => told.some((item) => item.kind === "message" && item.text === text))
        )
      yield* two.feed.publish("a", "before")
      yield* has("before")

      yield* Effect.promise(away)
      yield* one.take(limit(10), "anybody")
      yield* one.until(false)
      yield* one.feed.publish("a", "from the same process")
      yield* has("from the same process")
      const began = performance.now()
      const late = yield* one.feed.subscribe("late")
      expect(performance.now() - began).toBeLessThan(30_000)

      yield* Effect.promise(back)
      yield* Effect.promise(() => waitUntil("a gap was told", () => told.some(({ kind }) => kind === "gap")))
      yield* two.until(true)
      yield* Effect.promise(() =>
        waitUntil("all is told again", async () => {
          await Effect.runPromise(two.feed.publish("a", "after"))
          return told.some((item) => item.kind === "message" && item.text === "after")
        })
      )
      // It was subscribed to when nobody answered.
      expect((yield* Stream.runCollect(Stream.take(late, 1)))[0]).toEqual({ kind: "gap" })
    }).pipe(Effect.scoped)
  )

  it.live("Process starts and limits by itself when Redis is not there at the start", () =>
    Effect.gen(function* () {
      yield* Effect.promise(() => redis!.stop())
      const lines: Array<string> = []
      const one = yield* start(lines)
      expect(one.answers()).toBe(false)
      expect((yield* one.take(limit(1), "somebody")).allowed).toBe(true)
      expect((yield* one.take(limit(1), "somebody")).allowed).toBe(false)
      yield* Effect.promise(() => redis!.start())
      yield* one.until(true)
      expect(lines.length).toBe(2)
      expect(lines.join()).not.toContain("password")
    }).pipe(Effect.scoped)
  )
})
