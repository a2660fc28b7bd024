import { Effect, Fiber, type Scope } from "effect"
import { makeWakeableWorker, type Next } from "@tidegate/runtime/WakeableWorker"
import type { DeliveryQueue } from "../queue/DeliveryQueue.ts"

/** An actor without work stays in memory for one or two periods of this length (ms): new events then need no message. */
const lingerMs = 1_000

interface Options<R> {
  readonly queue: Pick<DeliveryQueue, "nextAt" | "tick">
  readonly now: () => number
  readonly scope: Scope.Scope
  readonly run: (effect: Effect.Effect<void, never, R>) => Fiber.Fiber<void>
  /** Runs about once a second while the worker works. */
  readonly everyPeriod: Effect.Effect<void, never, R>
}

/** Runs the timers of a delivery queue, and keeps its actor in memory while the queue has something to do. */
export const makeDeliveryWorker = <R>({ everyPeriod, now, queue, run, scope }: Options<R>) => {
  const check = Effect.sync((): Next => {
    if (queue.nextAt === null) return "idle"
    const wait = queue.nextAt - now()
    if (wait > 0) return wait
    queue.tick()
    return "again"
  })
  const worker = makeWakeableWorker({
    // The queue changes several times in one go: it is looked at once, after that.
    step: Effect.andThen(Effect.yieldNow, check),
    // A step cannot fail: a tick reports what it does not expect to the host.
    failed: (none: never) => none,
    lingerMs,
    everyPeriod
  })
  let fiber: Fiber.Fiber<void> | null = null
  let isHeld = false

  /** A message need not wait for it: a step's call or a tunnel may begin it. */
  const start = (): void => {
    if (!worker.isWorking() && queue.nextAt !== null) fiber = Fiber.runIn(run(worker.work), scope)
  }

  const hold = Effect.suspend(() => {
    isHeld = true
    return Effect.whileLoop({
      while: worker.isWorking,
      body: () => Fiber.await(fiber!),
      step: () => {}
    })
  }).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        isHeld = false
      })
    )
  )

  return {
    start,
    wake: worker.wake,
    /** Whether the actor stays in memory: then it takes events without a message. */
    isHeld: (): boolean => isHeld && worker.isWorking(),
    /** Works while the queue has something to do: a running handler keeps the actor in memory, and a forked fiber does not. */
    work: Effect.suspend(() => {
      start()
      return isHeld ? Effect.void : hold
    })
  }
}
