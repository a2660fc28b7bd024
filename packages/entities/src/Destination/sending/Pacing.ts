import { Effect } from "effect"
import { Pacer } from "@tidegate/coordination/limits/Pacer"
import type { RatePeriod } from "@tidegate/model/Destination"
import { recentStarts } from "@tidegate/storage/delivery/DeliveryRows"
import { makeRatePermits, type StepPermits } from "../../limits/RatePermits.ts"
import type { DestinationState } from "../DestinationState.ts"
import type { StartedDeliveries } from "./StartedDeliveries.ts"

interface Paced {
  readonly limit: number
  readonly period: RatePeriod
  readonly pacer: Pacer
  readonly stepPermits: StepPermits
}

interface Pacing {
  readonly id: string
  readonly shard: number
  readonly now: () => number
  readonly started: StartedDeliveries
  /** There are permits for steps again. */
  readonly changed: () => void
}

const unpaced = { pacer: null, stepPermits: null }

/** The rate limiter of a destination: it stays the same while the rate does. */
export const makePacing = ({ changed, id, now, shard, started }: Pacing) => {
  let paced: Paced | null = null

  const leave = Effect.suspend(() => {
    const { stepPermits } = paced ?? {}
    paced = null
    return stepPermits?.close ?? Effect.void
  })

  return {
    isPaced: (): boolean => paced !== null,
    leave,
    /** The rate limiter of the next state. Starts under the previous state, or by an earlier owner, count. */
    of: Effect.fnUntraced(function* (next: DestinationState | null) {
      const { limit, period } = next?.rate ?? {}
      if (paced !== null && paced.limit === limit && paced.period === period) return paced
      yield* leave
      if (next === null || limit === undefined || period === undefined) return unpaced
      const pacer = new Pacer(limit, period)
      const stored = yield* makeRatePermits({ id, team_id: next.teamId, pacer, changed })
      const events = yield* recentStarts(shard, id, now() - pacer.period, pacer.slice)
      pacer.remember([...events, ...stored.starts].sort(([a], [b]) => a - b))
      // Starts during that read may be counted twice: this only makes the rate lower.
      pacer.remember(started.meanwhile.map((at) => [at, 1] as const))
      paced = { limit, period, pacer, stepPermits: stored.permits }
      return paced
    })
  }
}
