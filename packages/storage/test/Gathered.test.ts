import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { gathered } from "../src/Gathered.ts"

/** A read that ends when the test ends it, and records the requested keys of each call. */
const heldWith = Effect.fnUntraced(function* (pace?: { readonly restMs: number }) {
  const reads: Array<{ readonly keys: ReadonlyArray<string>; readonly end: Deferred.Deferred<void, string> }> = []
  const waiting: Array<{ readonly count: number; readonly reached: Deferred.Deferred<void> }> = []
  const ask = yield* gathered(
    (keys) =>
      Effect.suspend(() => {
        const end = Deferred.makeUnsafe<void, string>()
        reads.push({ keys, end })
        for (const { count, reached } of waiting) if (reads.length >= count) Deferred.doneUnsafe(reached, Exit.void)
        return Effect.as(Deferred.await(end), new Map(keys.map((key) => [key, `${key} ${reads.length}`])))
      }),
    pace
  )
  /** Completes when as many reads have begun. */
  const begun = (count: number) =>
    Effect.suspend(() => {
      if (reads.length >= count) return Effect.void
      const reached = Deferred.makeUnsafe<void>()
      waiting.push({ count, reached })
      return Deferred.await(reached)
    })
  const one = (key: string) =>
    Effect.forkChild(
      Effect.map(ask([key]), (found) => found.get(key)),
      { startImmediately: true }
    )
  return { reads, begun, one, end: (index: number) => Deferred.succeed(reads[index]!.end, undefined), ask }
})
const held = heldWith()

describe("Gathered reads", () => {
  it.effect("Keys that are requested during a read go into the next read", () =>
    Effect.gen(function* () {
      const { begun, end, one, reads } = yield* held
      const first = yield* one("a")
      const later = [yield* one("a"), yield* one("b"), yield* one("b")]
      yield* begun(1)
      expect(reads.map(({ keys }) => keys)).toEqual([["a"]])
      yield* end(0)
      expect(yield* Fiber.join(first)).toBe("a 1")
      yield* begun(2)
      yield* end(1)
      expect(yield* Effect.forEach(later, Fiber.join)).toEqual(["a 2", "b 2", "b 2"])
      expect(reads.map(({ keys }) => keys)).toEqual([["a"], ["a", "b"]])
    })
  )

  it.effect("Callers of one read fail together, and the next read is a new attempt", () =>
    Effect.gen(function* () {
      const { begun, end, one, reads } = yield* held
      const first = yield* one("a")
      yield* begun(1)
      yield* Deferred.fail(reads[0]!.end, "lost")
      expect(yield* Fiber.await(first)).toEqual(Exit.fail("lost"))
      const second = yield* one("a")
      yield* begun(2)
      yield* end(1)
      expect(yield* Fiber.join(second)).toBe("a 2")
    })
  )

  it.effect("A gathered read continues for the others if one caller is interrupted", () =>
    Effect.gen(function* () {
      const { begun, end, one } = yield* held
      const gone = yield* one("a")
      yield* begun(1)
      const gone2 = yield* one("b")
      const stays = yield* one("c")
      yield* Fiber.interrupt(gone)
      yield* Fiber.interrupt(gone2)
      yield* end(0)
      yield* begun(2)
      yield* end(1)
      expect(yield* Fiber.join(stays)).toBe("c 2")
    })
  )

  it.live("A read that does not return delays the other keys only for a moment", () =>
    Effect.gen(function* () {
      const { begun, end, one } = yield* held
      yield* one("a")
      const other = yield* one("b")
      yield* begun(2)
      yield* end(1)
      expect(yield* Fiber.join(other)).toBe("b 2")
    })
  )

  it.effect("A gathered read has a bounded number of keys, but at least those of one caller", () =>
    Effect.gen(function* () {
      const { ask, begun, end, one, reads } = yield* held
      const first = yield* one("a")
      const many = Array.from({ length: 300 }, (_, index) => `m${index}`)
      const large = yield* Effect.forkChild(ask(many), { startImmediately: true })
      const small = yield* one("z")
      yield* begun(1)
      yield* end(0)
      yield* begun(2)
      yield* end(1)
      yield* begun(3)
      yield* end(2)
      yield* Effect.forEach([first, large, small] as ReadonlyArray<Fiber.Fiber<unknown, string>>, Fiber.join)
      expect(reads.map(({ keys }) => keys.length)).toEqual([1, 300, 1])
    })
  )

  it.effect(
    "After a read that rests, the next one begins when the rest is over, or with as many keys as one may have",
    () =>
      Effect.gen(function* () {
        const { ask, begun, end, one, reads } = yield* heldWith({ restMs: 50 })
        const first = yield* one("a")
        yield* end(0)
        yield* Fiber.join(first)
        // The rest begins in the next turn of the event loop.
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(() => setImmediate(resolve))))
        const later = [yield* one("b"), yield* one("c")]
        yield* TestClock.adjust(49)
        expect(reads.length).toBe(1)
        yield* TestClock.adjust(1)
        yield* begun(2)
        yield* end(1)
        yield* Effect.forEach(later, Fiber.join)
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(() => setImmediate(resolve))))
        const waits = yield* one("d")
        const full = yield* Effect.forkChild(ask(Array.from({ length: 255 }, (_, index) => `m${index}`)), {
          startImmediately: true
        })
        yield* begun(3)
        yield* end(2)
        yield* Fiber.join(full)
        yield* Fiber.join(waits)
        expect(reads.map(({ keys }) => keys.length)).toEqual([1, 2, 256])
      })
  )
})
