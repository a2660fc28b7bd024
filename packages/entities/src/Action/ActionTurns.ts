import { Pacer } from "@tidegate/coordination/limits/Pacer"
import { SharedBytes } from "@tidegate/runtime/SharedBytes"
import { Clock, Effect, Semaphore } from "effect"
import type { SqlError } from "effect/sql"
import type { RatePeriod } from "@tidegate/model/Destination"
import { type ActionPace, readActionPace } from "@tidegate/storage/workflows/Actions"
import type { Database } from "@tidegate/storage/Database"
import { Call, Calls } from "../limits/Calls.ts"
import { makeRatePermits, type Turns } from "../limits/RatePermits.ts"

/** So long a step waits before it asks again (ms): whoever has moved is found by that. */
const waitMs = 30_000
/** Without a lease, look again after (ms). */
const leaseRetryMs = 250

interface Pacing {
  readonly limit: number
  readonly period: RatePeriod
  readonly pacer: Pacer
  readonly turns: Turns
}

interface Asked {
  readonly team_id: string
  /** The workflow: those of one wait behind each other, and workflows take turns. */
  readonly line: string
  /** Since when it waits (Unix ms), also with owners that came before. */
  readonly since: number
}

/**
 * The turns of one saved action: exact over all processes, because its one owner gives them out, and across owners, because they are noted
 * before (`RatePermits.ts`). Fails closed: a target is not called faster than it was promised, so without the database steps wait.
 * `mayGive`: whether this process still owns it.
 */
export const makeActionTurns = Effect.fnUntraced(function* (id: string, mayGive: () => boolean) {
  const clock = yield* Clock.Clock
  const services = yield* Effect.context<Database>()
  const fork = Effect.runForkWith(services)
  const now = (): number => clock.currentTimeMillisUnsafe()
  // How many may wait is bounded; what they hold is not here.
  const calls = new Calls(new SharedBytes(Number.POSITIVE_INFINITY).share())
  /** Those that wait, and what tells one to ask again. */
  const asking = new Set<() => void>()
  /** Undefined: to be read. */
  let settings: ActionPace | null | undefined
  /** Changes so far: what was read before the last one may not be what is stored. */
  let changes = 0
  let pacing: Pacing | null = null
  let stopTimer: (() => void) | null = null

  const after = (ms: number, then: () => void): (() => void) => {
    const timer = fork(Effect.andThen(Effect.sleep(ms), Effect.sync(then)))
    return () => timer.interruptUnsafe()
  }

  /** Gives turns to as many as may have theirs. */
  const tick = (): void => {
    stopTimer?.()
    stopTimer = null
    if (pacing === null) return
    const { pacer, turns } = pacing
    while (!calls.isEmpty) {
      const at = now()
      const next = mayGive() ? pacer.nextAt(at) : at + leaseRetryMs
      if (next > at) {
        stopTimer = after(next - at, tick)
        return
      }
      // Else they are noted, and this is called again.
      if (!turns.ready()) return
      turns.use()
      pacer.take(at)
      pacer.start(at)
      calls.next()?.start(at)
    }
  }

  /** Goes by what is stored. What was used under another limit counts. */
  const read = Semaphore.makeUnsafe(1).withPermits(1)(
    Effect.gen(function* (): Effect.fn.Return<void, SqlError.SqlError, Database> {
      if (settings !== undefined) return
      const before = changes
      const next = yield* readActionPace(id)
      const { limit = null, period = "second", team_id = "" } = next ?? {}
      if (pacing !== null && (pacing.limit !== limit || pacing.period !== period)) {
        const { turns } = pacing
        pacing = null
        yield* turns.close
      }
      if (pacing === null && limit !== null) {
        const pacer = new Pacer(limit, period)
        const { starts, turns } = yield* makeRatePermits({ id, team_id, pacer, changed: tick })
        pacer.remember(starts)
        pacing = { limit, period, pacer, turns }
      }
      if (changes === before) settings = next
    })
  )

  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      stopTimer?.()
      for (const again of asking) again()
      return pacing === null ? Effect.void : pacing.turns.close
    })
  )

  return {
    /** Whether it has had its turn; if not it asks again. Whoever may not call it at all finds that out by calling it. */
    turn: ({ line, since, team_id }: Asked): Effect.Effect<boolean, SqlError.SqlError> =>
      Effect.andThen(
        settings === undefined ? read : Effect.void,
        Effect.callback<boolean>((resume) => {
          // It has been changed since it was read.
          if (settings === undefined) return resume(Effect.succeed(false))
          if (settings?.team_id !== team_id || pacing === null) return resume(Effect.succeed(true))
          const end = (had: boolean): void => {
            stopWaiting()
            asking.delete(again)
            resume(Effect.succeed(had))
          }
          const call = new Call({ line, since, bytes: 0, start: () => end(true) })
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
    /** It has been changed: those that wait ask again, by what is stored now. */
    changed: (): void => {
      changes++
      settings = undefined
      for (const again of asking) again()
    }
  }
})
