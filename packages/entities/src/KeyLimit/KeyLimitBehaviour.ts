import { Clock, Effect } from "effect"
import { Allowances } from "@tidegate/coordination/limits/Allowances"
import { KeyLimitEntity } from "./KeyLimitProtocol.ts"

/** Longer than a window: an actor that nobody has asked for so long has nothing to remember. */
const maxIdleTime = "2 minutes"

/**
 * Counts in memory alone. An owner that is new does not know what the one before it had counted, so that a take-over lets at most one more
 * window's calls through: the price of writing nothing for a call.
 */
export const layer = KeyLimitEntity.toLayer(
  Effect.sync(() => {
    const name = "project_keys"
    let allowances: Allowances | null = null
    return KeyLimitEntity.of({
      Take: ({ payload: { calls, window_ms: windowMs } }) =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          const limit = { name, calls, windowMs, maxKeys: 1 }
          allowances ??= new Allowances(limit)
          return allowances.take(name, now, limit)
        })
    })
  }),
  { concurrency: "unbounded", maxIdleTime }
)
