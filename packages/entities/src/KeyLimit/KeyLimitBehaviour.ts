import { Clock, Effect } from "effect"
import { Allowances } from "@tidegate/coordination/limits/Allowances"
import { KeyLimitEntity } from "./KeyLimitProtocol.ts"

/** Longer than a window: when nobody has asked the actor for this time, it has no counts worth keeping. */
const maxIdleTime = "2 minutes"

/**
 * Counts in memory only. A new owner does not know the counts of the previous one, so a fail-over allows the calls of at most one
 * additional window. This is the price for writing nothing per call.
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
