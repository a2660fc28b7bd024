import { Pacer } from "@tidegate/coordination/limits/Pacer"
import { SharedBytes } from "@tidegate/runtime/SharedBytes"
import { Clock, Effect, Semaphore } from "effect"
import type { SqlError } from "effect/sql"
import type { RatePeriod } from "@tidegate/model/Destination"
import { type ActionPace, readActionPace } from "@tidegate/storage/workflows/Actions"
import type { Database } from "@tidegate/storage/Database"
import { Call, Calls } from "../limits/Calls.ts"
import { makeRatePermits, type StepPermits } from "../limits/RatePermits.ts"

/**
 * A step that waits longer than this (ms) has to ask again, so that it finds the action's actor after a move to another
 * runner.
 */
const waitMs = 30_000
/** Without a lease, check again after this time (ms). */
const leaseRetryMs = 250

interface Pacing {
  readonly limit: number
  readonly period: RatePeriod
  readonly pacer: Pacer
  readonly permits: StepPermits
}

interface Asked {
  readonly team_id: string
  /** The workflow. Calls of one workflow wait in order, and workflows take turns. */
  readonly line: string
  /** When the step began to wait (Unix ms), which may be before this process owned the action. */
  readonly since: number
}

/**
 * Gives the rate permits of one saved action. The limit is exact over all processes, because only the actor's owner gives
 * permits. It is also exact when the owner changes, because permits are stored before they are given (`RatePermits.ts`). Fails
 * closed: a target is not called faster than its rate limit allows, so steps wait while there is no database. `mayGive`: whether
 * this process still owns the action.
 */
export const makeActionPermits = Effect.fnUntraced(function* (id: string, mayGive: () => boolean) {
  const clock = yield* Clock.Clock
  const services = yield* Effect.context<Database>()
  const fork = Effect.runForkWith(services)
  const now = (): number => clock.currentTimeMillisUnsafe()
  // The number of waiting calls is bounded. Their bytes are not counted here, because they hold none here.
  const calls = new Calls(new SharedBytes(Number.POSITIVE_INFINITY).share())
  /** For each waiting step, the function that makes it ask again. */
  const asking = new Set<() => void>()
  /** Undefined: has to be read. */
  let settings: ActionPace | null | undefined
  /** Counts changes. Settings that were read before the latest change may be outdated. */
  let changes = 0
  let pacing: Pacing | null = null
  let stopTimer: (() => void) | null = null

  const after = (ms: number, then: () => void): (() => void) => {
    const timer = fork(Effect.andThen(Effect.sleep(ms), Effect.sync(then)))
    return () => timer.interruptUnsafe()
  }

  /** Starts as many waiting calls as the rate limit allows now. */
  const tick = (): void => {
    stopTimer?.()
    stopTimer = null
    if (pacing === null) return
    const { pacer, permits } = pacing
    while (!calls.isEmpty) {
      const at = now()
      const next = mayGive() ? pacer.nextAt(at) : at + leaseRetryMs
      if (next > at) {
        stopTimer = after(next - at, tick)
        return
      }
      // Without a stored permit, one is being stored, and then this function is called again.
      if (!permits.ready()) return
      permits.use()
      pacer.take(at)
      pacer.start(at)
      calls.next()?.start(at)
    }
  }

  /** Applies the stored settings. Calls that were made under another limit still count. */
  const read = Semaphore.makeUnsafe(1).withPermits(1)(
    Effect.gen(function* (): Effect.fn.Return<void, SqlError.SqlError, Database> {
      if (settings !== undefined) return
      const before = changes
      const next = yield* readActionPace(id)
      const { limit = null, period = "second", team_id = "" } = next ?? {}
      if (pacing !== null && (pacing.limit !== limit || pacing.period !== period)) {
        const { permits } = pacing
        pacing = null
        yield* permits.close
      }
      if (pacing === null && limit !== null) {
        const pacer = new Pacer(limit, period)
        const { permits, starts } = yield* makeRatePermits({ id, team_id, pacer, changed: tick })
        pacer.remember(starts)
        pacing = { limit, period, pacer, permits }
      }
      if (changes === before) settings = next
    })
  )

  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      stopTimer?.()
      for (const again of asking) again()
      return pacing === null ? Effect.void : pacing.permits.close
    })
  )

  return {
    /**
     * True: the step has a permit. False: it asks again. Also true when the team does not own the action, or when it has no
     * limit: the call itself then fails, or needs no permit.
     */
    take: ({ line: group, since, team_id }: Asked): Effect.Effect<boolean, SqlError.SqlError> =>
      Effect.andThen(
        settings === undefined ? read : Effect.void,
        Effect.callback<boolean>((resume) => {
          // The action has been changed since it was read.
          if (settings === undefined) return resume(Effect.succeed(false))
          if (settings?.team_id !== team_id || pacing === null) return resume(Effect.succeed(true))
          const end = (had: boolean): void => {
            stopWaiting()
            asking.delete(again)
            resume(Effect.succeed(had))
          }
          const call = new Call({ group, since, bytes: 0, start: () => end(true) })
          const again = (): void => {
            calls.remove(call)
            end(false)
          }
          const stopWaiting = after(waitMs, again)
          asking.add(again)
          if (!calls.add(call)) return end(false)
          tick()
          return Effect.sync(() => {
            stopWaiting()
            asking.delete(again)
            calls.remove(call)
          })
        })
      ).pipe(Effect.provideContext(services)),
    /** The action has been changed: waiting steps ask again, and the stored settings apply. */
    changed: (): void => {
      changes++
      settings = undefined
      for (const again of asking) again()
    }
  }
})
