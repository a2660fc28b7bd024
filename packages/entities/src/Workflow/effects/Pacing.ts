import { Clock, Effect } from "effect"
import type { RatePeriod } from "@tidegate/model/Destination"
import { Pacer } from "../../Destination/Pacer.ts"

/** Pacers that are kept. */
const most = 1_000

interface Pace {
  readonly id: string
  readonly limit: number
  readonly period: RatePeriod
}

/** Waits for the turn of a saved action, whose calls are paced by its limit: of each process by itself. */
export const makePacing = () => {
  const pacers = new Map<string, Pacer>()
  const pacerOf = ({ id, limit, period }: Pace): Pacer => {
    const key = `${id} ${limit} ${period}`
    const pacer = pacers.get(key) ?? new Pacer(limit, period)
    // Those that were not used for longest go first.
    pacers.delete(key)
    if (pacers.size >= most) pacers.delete(pacers.keys().next().value!)
    pacers.set(key, pacer)
    return pacer
  }
  return Effect.fnUntraced(function* (pace: Pace) {
    const pacer = pacerOf(pace)
    for (;;) {
      const now = yield* Clock.currentTimeMillis
      const at = pacer.nextAt(now)
      if (at <= now) {
        pacer.take(now)
        pacer.start(now)
        return
      }
      yield* Effect.sleep(at - now)
    }
  })
}
