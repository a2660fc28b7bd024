import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestRunner } from "effect/cluster"
import * as Coordination from "@tidegate/coordination/Coordination"
import { RateLimiter } from "@tidegate/coordination/limits/RateLimiter"
import type { Limit } from "@tidegate/coordination/limits/Limit"
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

it.live("Rate limit of an API key is counted by its actor", () => {
  const asked: Array<string> = []
  return Effect.gen(function* () {
    expect(yield* burst("pak_1", 2, 60)).toBe(2)
    expect(yield* burst("pak_2", 3, 60)).toBe(3)
    const { take } = yield* KeyLimits
    const refused = yield* take("pak_1", 2)
    expect(refused).toMatchObject({ allowed: false, limit: 2, remaining: 0 })
    expect(refused.retryMs).toBeLessThanOrEqual(30_000)
    // Raised, it holds from the next call on.
    const raised = yield* take("pak_1", 3)
    expect(raised).toMatchObject({ allowed: false, limit: 3 })
    expect(raised.retryMs).toBeLessThanOrEqual(20_000)
    expect(asked).toEqual([])
  }).pipe(Effect.provide(world(asked, null, KeyLimitBehaviour.layer)))
})

it.live("Rate limit of an API key is counted by Redis when it answers", () => {
  const asked: Array<string> = []
  return Effect.gen(function* () {
    expect(yield* burst("pak_1", 2, 9)).toBe(2)
    expect(asked).toHaveLength(9)
  }).pipe(Effect.provide(world(asked, true, KeyLimitBehaviour.layer)))
})

it.live("Rate limit of an API key is counted by the process alone when no actor answers", () => {
  const asked: Array<string> = []
  return Effect.gen(function* () {
    expect(yield* burst("pak_1", 2, 9)).toBe(2)
    expect(asked).toHaveLength(9)
  }).pipe(Effect.provide(world(asked, false, Layer.empty)))
})
