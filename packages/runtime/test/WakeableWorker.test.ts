import { describe, expect, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Scheduler } from "effect"
import { TestClock } from "effect/testing"
import { makeWakeableWorker, type Next } from "../src/WakeableWorker.ts"

const neverFails = () => Effect.die("no step fails here")

/** Lets every fiber run as far as it can without time passing. */
const settled = Effect.gen(function* () {
  for (let i = 0; i < 20; i++) yield* Effect.yieldNow
})

/** A worker whose steps are counted. Each step takes the next result of the list; without one there is no work. */
const workerOf = (
  results: Array<Next | Effect.Effect<Next, string>>,
  options: { readonly lingerMs?: number; readonly everyPeriod?: Effect.Effect<void> } = {}
) => {
  const seen = { steps: 0, failures: [] as Array<string> }
  const worker = makeWakeableWorker<string>({
    step: Effect.suspend((): Effect.Effect<Next, string> => {
      seen.steps++
      const result = results.shift() ?? "idle"
      return Effect.isEffect(result) ? result : Effect.succeed(result)
    }),
    failed: (error) => Effect.sync(() => void seen.failures.push(error)),
    ...options
  })
  return { seen, worker }
}

describe("a wakeable worker", () => {
  it.effect("works until there is no work, and then ends", () =>
    Effect.gen(function* () {
      const { seen, worker } = workerOf(["again", "again"])
      expect(worker.isWorking()).toBe(false)
      yield* worker.work
      expect([seen.steps, worker.isWorking(), worker.wake()]).toEqual([3, false, false])
      yield* worker.work
      expect(seen.steps).toBe(4)
    })
  )

  it.effect("never works in two fibers, and answers several wake-ups during a step with one step", () =>
    Effect.gen(function* () {
      const go = yield* Deferred.make<void>()
      const { seen, worker } = workerOf([Effect.as(Deferred.await(go), "idle" as const)])
      const first = yield* Effect.forkChild(worker.work)
      yield* settled
      yield* worker.work
      expect([worker.wake(), worker.wake(), seen.steps]).toEqual([true, true, 1])
      expect(first.pollUnsafe()).toBeUndefined()
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(first)
      expect([seen.steps, worker.isWorking()]).toEqual([2, false])
    })
  )

  it.effect("waits for a wake-up, but not longer than the step has said", () =>
    Effect.gen(function* () {
      const { seen, worker } = workerOf([500, 500, Number.POSITIVE_INFINITY])
      const fiber = yield* Effect.forkChild(worker.work)
      yield* settled
      yield* TestClock.adjust(499)
      expect(seen.steps).toBe(1)
      yield* TestClock.adjust(1)
      expect(seen.steps).toBe(2)
      worker.wake()
      yield* settled
      expect(seen.steps).toBe(3)
      yield* TestClock.adjust("1 day")
      expect([seen.steps, worker.isWorking()]).toEqual([3, true])
      worker.wake()
      yield* Fiber.join(fiber)
      expect(seen.steps).toBe(4)
    })
  )

  it.effect("logs a failure with its cause and tries again after a pause, or at the next wake-up", () =>
    Effect.gen(function* () {
      const { seen, worker } = workerOf([Effect.fail("first"), Effect.fail("second")])
      const fiber = yield* Effect.forkChild(worker.work)
      yield* settled
      yield* TestClock.adjust(999)
      expect([seen.steps, seen.failures]).toEqual([1, ["first"]])
      yield* TestClock.adjust(1)
      expect([seen.steps, seen.failures]).toEqual([2, ["first", "second"]])
      worker.wake()
      yield* Fiber.join(fiber)
      expect([seen.steps, worker.isWorking()]).toEqual([3, false])
    })
  )

  it.effect("that lingers ends after a whole period in which nothing woke it", () =>
    Effect.gen(function* () {
      let periods = 0
      const everyPeriod = Effect.sync(() => void periods++)
      const { seen, worker } = workerOf([], { lingerMs: 1_000, everyPeriod })
      const fiber = yield* Effect.forkChild(worker.work)
      yield* settled
      yield* TestClock.adjust(1_500)
      expect([periods, seen.steps, worker.wake()]).toEqual([1, 1, true])
      yield* settled
      expect(seen.steps).toBe(2)
      yield* TestClock.adjust(1_499)
      expect([periods, fiber.pollUnsafe()]).toEqual([2, undefined])
      yield* TestClock.adjust(1)
      yield* Fiber.join(fiber)
      expect([periods, seen.steps, worker.wake()]).toEqual([3, 2, false])
    })
  )

  it.effect("that lingers does not end while its step waits", () =>
    Effect.gen(function* () {
      const { worker } = workerOf([Number.POSITIVE_INFINITY], { lingerMs: 1_000 })
      const fiber = yield* Effect.forkChild(worker.work)
      yield* TestClock.adjust("1 minute")
      expect(worker.wake()).toBe(true)
      yield* settled
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(fiber)
    })
  )

  it.effect("ends with its fiber, and the next caller begins again", () =>
    Effect.gen(function* () {
      const { seen, worker } = workerOf([Effect.never, "again"], { lingerMs: 1_000 })
      const first = yield* Effect.forkChild(worker.work)
      yield* settled
      yield* Fiber.interrupt(first)
      expect([worker.isWorking(), worker.wake()]).toEqual([false, false])
      const second = yield* Effect.forkChild(worker.work)
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(second)
      expect(seen.steps).toBe(3)
    })
  )

  it.effect("ends its caller by a defect, and the next caller begins again", () =>
    Effect.gen(function* () {
      const { seen, worker } = workerOf([Effect.die("broken")])
      const exit = yield* Effect.exit(worker.work)
      expect(exit).toEqual(Exit.die("broken"))
      expect(worker.isWorking()).toBe(false)
      yield* worker.work
      expect([seen.steps, seen.failures]).toEqual([2, []])
    })
  )
})

/** Runs fibers one operation at a time, and only as far as the test lets them run. */
class OneByOne implements Scheduler.Scheduler {
  readonly executionMode = "async"
  readonly #tasks: Array<() => void> = []
  taken = 0

  shouldYield({ currentOpCount }: Fiber.Fiber<unknown, unknown>): boolean {
    return currentOpCount >= 3
  }

  makeDispatcher(): Scheduler.SchedulerDispatcher {
    return { scheduleTask: (task) => void this.#tasks.push(task), flush: () => this.run() }
  }

  run(operations = 10_000): void {
    for (let left = operations; left > 0 && this.#tasks.length > 0; left--) {
      this.taken++
      this.#tasks.shift()!()
    }
  }
}

/** Wakes a worker, and once more after so many operations. */
const wokenAfter = (operations: number) => {
  let steps = 0
  let running = 0
  let overlaps = 0
  const scheduler = new OneByOne()
  const fork = Effect.runForkWith(Context.make(Scheduler.Scheduler, scheduler))
  const step = Effect.gen(function* () {
    steps++
    if (++running > 1) overlaps++
    for (let i = 0; i < 5; i++) yield* Effect.void
    running--
    return "idle" as const
  })
  const worker = makeWakeableWorker({ step, failed: neverFails })
  const first = fork(worker.work)
  scheduler.run(operations)
  const before = steps
  const second = fork(worker.work)
  scheduler.run()
  const ended = [first, second].every((fiber) => fiber.pollUnsafe() !== undefined)
  return { taken: scheduler.taken, isLost: steps === before, overlaps, ended }
}

it("a wakeable worker loses no wake-up, whenever it comes", () => {
  const { taken } = wokenAfter(10_000)
  expect(taken).toBeGreaterThan(10)
  const faults = Array.from({ length: taken }, (_, operations) => operations).filter((operations) => {
    const { ended, isLost, overlaps } = wokenAfter(operations)
    return isLost || overlaps > 0 || !ended
  })
  expect(faults).toEqual([])
})
