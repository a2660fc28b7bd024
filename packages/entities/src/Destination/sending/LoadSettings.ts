import { Effect, Schedule } from "effect"
import type { SqlError } from "effect/sql"
import { passed } from "@tidegate/runtime/TestSignal"
import type { makeHolding } from "../../holds/Holding.ts"
import type { DestinationState } from "../DestinationState.ts"
import type { DeliveryQueue } from "../queue/DeliveryQueue.ts"
import type { DestinationPolls } from "../pull/DestinationPolls.ts"
import { maxLeased } from "../pull/Polls.ts"
import type { DestinationTunnel } from "../tunnel/DestinationTunnel.ts"
import { maxThroughTunnel } from "../tunnel/Tunnel.ts"
import type { Opening } from "./Opened.ts"
import type { makePacing } from "./Pacing.ts"
import type { StartedDeliveries } from "./StartedDeliveries.ts"

interface Parts<R> {
  readonly load: Effect.Effect<DestinationState | null, SqlError.SqlError, R>
  readonly started: StartedDeliveries
  readonly holding: ReturnType<typeof makeHolding>
  readonly pacing: ReturnType<typeof makePacing>
  readonly opening: Opening
  readonly tunnel: DestinationTunnel
  readonly polls: DestinationPolls
  readonly queue: DeliveryQueue
  /** The state from here on. */
  readonly use: (next: DestinationState | null) => void
  /** All parts use it. */
  readonly used: () => void
}

/** Loads the settings of a destination, and applies them to all parts of its actor. Waits for the database without limit. */
export const loadSettings = <R>({
  holding,
  load,
  opening,
  pacing,
  polls,
  queue,
  started,
  tunnel,
  use,
  used
}: Parts<R>) =>
  Effect.gen(function* () {
    started.collect(!pacing.isPaced())
    const read = holding.reading()
    const next = yield* load
    const { pacer, stepPermits } = yield* pacing.of(next)
    const apply = yield* opening.prepare(next)
    // From here on without interruption: nothing may be sent with a mix of old and new settings.
    apply()
    use(next)
    const isTunnel = next?.sender?.kind === "tunnel"
    const isPulled = next?.sender?.kind === "pull"
    tunnel.configure(isTunnel)
    polls.configure(isPulled)
    queue.configure({
      state: next?.state ?? "cancelled",
      cancelBefore: next?.cancelBefore ?? 0,
      connections: next?.connections ?? new Map<string, never>(),
      pacer,
      stepPermits,
      maxConcurrency: isTunnel ? maxThroughTunnel : isPulled ? maxLeased : (next?.maxConcurrency ?? null),
      targetAvailability: isTunnel ? tunnel.current : null,
      consumers: isPulled ? polls.current : null
    })
    read(next?.heldUntil ?? 0)
    used()
    passed("reload")
  }).pipe(
    Effect.ensuring(Effect.sync(() => started.stopCollecting())),
    Effect.retry(Schedule.spaced("250 millis")),
    Effect.orDie
  )
