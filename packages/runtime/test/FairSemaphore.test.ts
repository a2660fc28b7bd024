import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Deferred, Effect, Exit, Fiber, Schema } from "effect"
import { FairSemaphore, type KeyPermits, permitsByKey } from "../src/FairSemaphore.ts"

/** Takes as many as it gets. */
const fill = (key: KeyPermits): number => {
  let taken = 0
  while (key.take()) taken++
  return taken
}

describe("Permits of the fair semaphore", () => {
  it("A single key gets at most half of the semaphore's permits", () => {
    const semaphore = new FairSemaphore({ permits: 100 })
    expect(fill(semaphore.key(() => {}))).toBe(50)
  })

  it("All keys of a semaphore end up with an equal part of its permits", () => {
    const semaphore = new FairSemaphore({ permits: 120 })
    const held = [0, 0, 0, 0]
    const keys = held.map((_, index) => semaphore.key(() => again(index)))
    const again = (index: number): void => void (held[index]! += fill(keys[index]!))
    // One after the other; those before give back what they have too much of.
    for (const index of keys.keys()) {
      again(index)
      for (let ends = 0; ends < 500; ends++) {
        const at = ends % (index + 1)
        if (held[at] === 0) continue
        held[at]!--
        keys[at]!.release()
        again(at)
      }
    }
    expect(semaphore.taken).toBeLessThanOrEqual(120)
    for (const count of held) expect(Math.abs(count - 24)).toBeLessThanOrEqual(2)
  })

  it("A new key gets a permit although slow keys hold all that they can get", () => {
    const semaphore = new FairSemaphore({ permits: 64 })
    const slow = Array.from({ length: 6 }, () => semaphore.key(() => {}))
    for (const key of slow) fill(key)
    const quick = semaphore.key(() => {})
    expect(fill(quick)).toBeGreaterThanOrEqual(1)
  })

  it("Keys get one permit each, in turn, when there are more keys than permits", () => {
    const semaphore = new FairSemaphore({ permits: 8 })
    const started: Array<number> = []
    const keys = Array.from({ length: 40 }, (_, index): KeyPermits =>
      semaphore.key(() => void (take(index) || undefined))
    )
    const take = (index: number): boolean => {
      const got = keys[index]!.take()
      if (got) started.push(index)
      return got
    }
    for (const index of keys.keys()) take(index)
    // Each that ends asks for another permit at once, and waits behind those who have waited.
    for (let ended = 0; ended < 72; ended++) {
      const index = started[ended]!
      keys[index]!.release()
      take(index)
    }
    expect(semaphore.taken).toBe(8)
    expect(started.slice(0, 80)).toStrictEqual([...keys.keys(), ...keys.keys()])
  })

  const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))
  const run = Arbitrary.schema(
    Schema.Struct({
      permits: between(1, 60),
      /** Which key wants how many more; 0: it gives one back. */
      steps: Schema.Array(Schema.Struct({ key: between(0, 29), wants: between(0, 12) })).check(Schema.isMaxLength(300))
    })
  )
  it.prop("Taken permits never exceed the total, and no key that may have one waits", { run }, ({ run }) => {
    const semaphore = new FairSemaphore({ permits: run.permits })
    const wants = Array.from({ length: 30 }, () => 0)
    const held = wants.map(() => 0)
    const keys = wants.map((_, index): KeyPermits => semaphore.key(() => start(index)))
    const start = (index: number): void => {
      while (wants[index]! > 0 && keys[index]!.take()) {
        wants[index]!--
        held[index]!++
      }
    }
    for (const { key, wants: more } of run.steps) {
      if (more > 0) {
        wants[key]! += more
        start(key)
      } else if (held[key]! > 0) {
        held[key]!--
        keys[key]!.release()
        start(key)
      }
      expect(semaphore.taken).toBe(held.reduce((sum, count) => sum + count, 0))
      expect(semaphore.taken).toBeLessThanOrEqual(run.permits)
      const free = run.permits - semaphore.taken
      const left = held.filter((count, at) => free > 0 && wants[at]! > 0 && count < Math.max(1, free))
      expect(left, "they would have got one").toStrictEqual([])
    }
  })
})

describe("Permits by key", () => {
  /** Runs that end when the test ends them, and the keys in the order in which they began. */
  const world = (permits: Parameters<typeof permitsByKey>[0]) => {
    const byKey = permitsByKey(permits)
    const began: Array<string> = []
    const ends: Array<Deferred.Deferred<void>> = []
    const ask = (key: string) =>
      Effect.forkChild(
        byKey.within(key)(
          Effect.gen(function* () {
            const end = yield* Deferred.make<void>()
            began.push(key)
            ends.push(end)
            yield* Deferred.await(end)
          }),
          Effect.fail("full")
        ),
        { startImmediately: true }
      )
    const end = (n: number) => Effect.andThen(Deferred.succeed(ends[n]!, undefined), settle)
    return { ask, began, byKey, end }
  }
  /** Lets every fiber go on that can. */
  const settle = Effect.forEach(Array.from({ length: 10 }), () => Effect.yieldNow, { discard: true })

  it.effect("A key waits only for its own permits", () =>
    Effect.gen(function* () {
      const { ask, began, end } = world({ perKey: 2 })
      for (let n = 0; n < 4; n++) yield* ask("a")
      yield* ask("b")
      expect(began).toEqual(["a", "a", "b"])
      yield* end(0)
      yield* end(1)
      expect(began).toEqual(["a", "a", "b", "a", "a"])
    })
  )

  it.effect("Waiting keys are served one after the other, however many waiters each key has", () =>
    Effect.gen(function* () {
      const { ask, began, end } = world({ permits: 2 })
      for (let n = 0; n < 6; n++) yield* ask("a")
      for (const key of ["b", "c", "c"]) yield* ask(key)
      for (let n = 0; n < 8; n++) yield* end(n)
      expect(began.slice(0, 2)).toEqual(["a", "b"])
      expect(began.slice(2, 5).sort()).toEqual(["a", "a", "c"].sort())
      expect(began).toHaveLength(9)
    })
  )

  it.effect("A permit that rests after its use is given on when it has rested", () =>
    Effect.gen(function* () {
      const resting: Array<() => void> = []
      const { ask, began, byKey, end } = world({ permits: 1, resting: () => (giveBack) => void resting.push(giveBack) })
      yield* ask("a")
      yield* ask("b")
      yield* end(0)
      expect(began).toEqual(["a"])
      resting[0]!()
      yield* settle
      expect(began).toEqual(["a", "b"])
      yield* end(1)
      resting[1]!()
      expect(byKey.keys()).toBe(0)
    })
  )

  it.effect("A key with the maximum of waiters rejects the next one with the given answer", () =>
    Effect.gen(function* () {
      const { ask, end } = world({ perKey: 1, maxWaiting: 1 })
      yield* ask("a")
      yield* ask("a")
      expect(yield* Fiber.await(yield* ask("a"))).toEqual(Exit.fail("full"))
      yield* end(0)
      const last = yield* ask("a")
      yield* end(1)
      yield* end(2)
      expect(yield* Fiber.await(last)).toEqual(Exit.void)
    })
  )

  it.effect("An interrupted waiter gives back its permit or stops waiting, and an unused key is forgotten", () =>
    Effect.gen(function* () {
      const { ask, began, byKey, end } = world({ permits: 1 })
      const holds = yield* ask("a")
      const waits = yield* ask("a")
      yield* ask("b")
      expect(byKey.keys()).toBe(2)
      yield* Fiber.interrupt(waits)
      yield* Fiber.interrupt(holds)
      yield* settle
      expect(began).toEqual(["a", "b"])
      expect(byKey.keys()).toBe(1)
      yield* end(1)
      expect(byKey.keys()).toBe(0)
    })
  )
})
