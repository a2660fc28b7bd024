import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { TestRunner } from "effect/cluster"
import { TestClock } from "effect/testing"
import * as Coordination from "@tidegate/coordination/Coordination"
import { type Limit, RateLimiter } from "@tidegate/coordination/RateLimiter"
import * as KeyLimitBehaviour from "../../entities/src/KeyLimit/KeyLimitBehaviour.ts"
import { KeyLimits } from "../src/KeyLimits.ts"

/** What counts of each process, noted: what is asked of it is not asked of an actor. */
const noted = (asked: Array<string>) =>
  Layer.effect(
    RateLimiter,
    Effect.map(RateLimiter, (limiter) => ({
      take: (limit: Limit, key: string) => {
        asked.push(`${key} ${limit.calls}`)
        return limiter.take(limit, key)
      }
    }))
  ).pipe(Layer.provide(RateLimiter.layerMemory))

const world = (
  asked: Array<string>,
  redis: boolean | null,
  actors: Layer.Layer<never> | typeof KeyLimitBehaviour.layer
) =>
  KeyLimits.layer.pipe(
    Layer.provide([noted(asked), Layer.succeed(Coordination.RedisStatus, { answers: () => redis })]),
    Layer.provide(actors),
    Layer.provide(TestRunner.layer)
  )

/** How many of so many calls at once were let in. */
const burst = Effect.fnUntraced(function* (key: string, calls: number, times: number) {
  const { take } = yield* KeyLimits
  const verdicts = yield* Effect.all(
    Array.from({ length: times }, () => take(key, calls)),
    { concurrency: "unbounded" }
  )
  return verdicts.filter(({ allowed }) => allowed).length
})

it.effect("the limit of a key is counted by its actor, and nobody else is asked", () => {
  const asked: Array<string> = []
  return Effect.gen(function* () {
    expect(yield* burst("pak_1", 20, 60)).toBe(20)
    expect(yield* burst("pak_2", 7, 60)).toBe(7)
    const { take } = yield* KeyLimits
    expect(yield* take("pak_1", 20)).toMatchObject({ allowed: false, limit: 20, remaining: 0, retryMs: 3_000 })
    yield* TestClock.adjust("3 seconds")
    expect(yield* take("pak_1", 20)).toMatchObject({ allowed: true, remaining: 0 })
    // Raised, it holds from the next call on.
    expect(yield* take("pak_1", 200)).toMatchObject({ allowed: false, limit: 200, retryMs: 300 })
    expect(asked).toEqual([])
  }).pipe(Effect.provide(world(asked, null, KeyLimitBehaviour.layer)))
})

it.effect("a Redis that answers counts instead", () => {
  const asked: Array<string> = []
  return Effect.gen(function* () {
    expect(yield* burst("pak_1", 5, 9)).toBe(5)
    expect(asked).toHaveLength(9)
  }).pipe(Effect.provide(world(asked, true, KeyLimitBehaviour.layer)))
})

it.effect("where no actor answers a process counts alone, after two seconds", () => {
  const asked: Array<string> = []
  return Effect.gen(function* () {
    const counted = yield* Effect.forkChild(burst("pak_1", 5, 9))
    yield* TestClock.adjust("1900 millis")
    expect(asked).toEqual([])
    yield* TestClock.adjust("100 millis")
    expect(yield* Fiber.join(counted)).toBe(5)
    expect(asked).toHaveLength(9)
  }).pipe(Effect.provide(world(asked, false, Layer.empty)))
})
