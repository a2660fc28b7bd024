import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Runner, RunnerAddress, RunnerStorage } from "effect/cluster"
import { TestClock } from "effect/testing"
import * as LoneRunner from "../src/LoneRunner.ts"

const runner = (port: number) =>
  Runner.make({ address: RunnerAddress.make("127.0.0.1", port), groups: ["default"], weight: 1 })

/** A storage in memory that tells how often it was asked who is there. */
const world = Effect.gen(function* () {
  const shared = yield* RunnerStorage.makeMemory
  let asked = 0
  const counting = RunnerStorage.RunnerStorage.of({
    ...shared,
    getRunners: Effect.suspend(() => {
      asked++
      return shared.getRunners
    })
  })
  const layer = LoneRunner.layerAskingLess.pipe(Layer.provide(Layer.succeed(RunnerStorage.RunnerStorage, counting)))
  const storage = yield* Effect.provide(RunnerStorage.RunnerStorage, layer)
  /** Whom the runner sees in some seconds, asking twice in each; and how often that came to the storage. */
  const watch = Effect.fnUntraced(function* (seconds: number) {
    const before = asked
    let seen = 0
    for (let i = 0; i < 2 * seconds; i++) {
      seen = (yield* storage.getRunners).length
      yield* TestClock.adjust("500 millis")
    }
    return { seen, asked: asked - before }
  })
  return { shared, storage, watch }
})

it.effect("A single runner asks for other runners every other second and notices a new one", () =>
  Effect.gen(function* () {
    const { shared, storage, watch } = yield* world
    yield* storage.register(runner(1), true)
    expect(yield* watch(10)).toEqual({ seen: 1, asked: 5 })
    yield* shared.register(runner(2), true)
    expect((yield* watch(3)).seen).toBe(2)
  })
)

it.effect("A runner beside others asks each time, and after its own changes", () =>
  Effect.gen(function* () {
    const { shared, storage, watch } = yield* world
    yield* shared.register(runner(2), true)
    expect((yield* storage.getRunners).length).toBe(1)
    yield* storage.register(runner(1), true)
    expect(yield* watch(5)).toEqual({ seen: 2, asked: 10 })
    yield* storage.unregister(runner(2).address)
    expect(yield* watch(1)).toEqual({ seen: 1, asked: 1 })
  })
)
