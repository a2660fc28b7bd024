import { Effect, Latch } from "effect"

/**
 * What a worker does after a step. "again": it takes the next step at once. A number: it waits for a wake-up, but not longer than that many
 * milliseconds (`Infinity`: without limit). "idle": there is no work.
 */
export type Next = "again" | "idle" | number

/** After a failed step the worker tries again after this time (ms), or at the next wake-up. */
const retryMs = 1_000

export interface WorkerOptions<E, R> {
  /** Does a piece of the work. It is never run twice at the same time. */
  readonly step: Effect.Effect<Next, E, R>
  /** Logs why a step has failed. */
  readonly failed: (error: E) => Effect.Effect<void, never, R>
  /**
   * Without work, the worker ends only after one or two periods of this length (ms) in which nothing woke it. By default it ends at once.
   */
  readonly lingerMs?: number
  /** Runs at the end of each such period. */
  readonly everyPeriod?: Effect.Effect<void, never, R>
}

export interface WakeableWorker<R> {
  /** Whether a fiber works now. */
  readonly isWorking: () => boolean
  /** There may be new work. It returns at once, and whether a fiber works that will look for it. */
  readonly wake: () => boolean
  /**
   * Wakes the worker. If no fiber works, the calling fiber works until there is no work; the actor of a message stays in memory for as long.
   * Otherwise this returns at once.
   */
  readonly work: Effect.Effect<void, never, R>
}

/**
 * Work that is done by one fiber at a time, and begins when somebody wakes it.
 *
 * - A wake-up says only that there may be work, so several are as good as one.
 * - No wake-up is lost: the worker ends in the same synchronous step in which it finds that nothing has woken it since its last step began.
 * - A failed step is logged, and the worker tries again after a pause. The step itself has to find in its own state what is left to do.
 * - A defect ends the worker and its caller: memory may be half changed, so the caller has to begin anew from what is stored.
 * - The worker ends with the fiber that works. The next `work` begins again.
 */
export const makeWakeableWorker = <E, R = never>({
  everyPeriod = Effect.void,
  failed,
  lingerMs,
  step
}: WorkerOptions<E, R>): WakeableWorker<R> => {
  /** Open: something has woken the worker since its last step began. */
  const signal = Latch.makeUnsafe()
  /** Names the fiber that works; null: none. */
  let worker: object | null = null
  /** It waits, and has no work. */
  let isIdle = false
  /** It was woken in this period. */
  let isUsed = false
  /** It was idle and unused for a whole period. */
  let isExpired = false

  const wake = (): boolean => {
    isUsed = true
    isExpired = false
    signal.openUnsafe()
    return worker !== null
  }

  const nextOf = Effect.catch(step, (error) => Effect.as(failed(error), retryMs))

  const steps = Effect.gen(function* () {
    for (;;) {
      signal.closeUnsafe()
      const next = yield* nextOf
      if (next === "again") continue
      if (next !== "idle") {
        yield* next === Number.POSITIVE_INFINITY ? signal.await : Effect.raceFirst(signal.await, Effect.sleep(next))
        continue
      }
      if (signal.isOpen()) continue
      if (lingerMs === undefined) break
      isIdle = true
      yield* signal.await
      isIdle = false
      if (isExpired) break
    }
    worker = null
  })

  const periods = (ms: number): Effect.Effect<never, never, R> =>
    Effect.forever(
      Effect.andThen(
        Effect.andThen(Effect.sleep(ms), everyPeriod),
        Effect.sync(() => {
          if (isIdle && !isUsed) {
            isExpired = true
            signal.openUnsafe()
          }
          isUsed = false
        })
      )
    )

  const working = lingerMs === undefined ? steps : Effect.raceFirst(steps, periods(lingerMs))

  return {
    isWorking: () => worker !== null,
    wake,
    work: Effect.suspend(() => {
      if (wake()) return Effect.void
      const self = {}
      worker = self
      isIdle = false
      return Effect.onError(working, () =>
        Effect.sync(() => {
          if (worker === self) worker = null
        })
      )
    })
  }
}
