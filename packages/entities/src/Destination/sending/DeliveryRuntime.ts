import { Context, Effect, Layer, type Scope } from "effect"
import type { Connector } from "@tidegate/connectors/Connector"
import * as Connectors from "@tidegate/connectors/Connectors"
import { FairSemaphore } from "@tidegate/runtime/FairSemaphore"
import { SharedBytes } from "@tidegate/runtime/SharedBytes"
import { metrics, worstDestinations } from "@tidegate/telemetry/Metrics"
import type { DeliveryQueue } from "../queue/DeliveryQueue.ts"

type Watched = Pick<DeliveryQueue, "onWire" | "limit">

/** Messages that consumers of all destinations may have. Each takes some 2 KiB. */
const maxLeases = 10_000

/** What the destinations of one process share. */
export class DeliveryRuntime extends Context.Service<
  DeliveryRuntime,
  {
    /** A delivery on the wire has a permit. */
    readonly permits: FairSemaphore
    /** Memory that the destinations' events may take. */
    readonly windowBytes: SharedBytes
    /** Messages that consumers have fetched and not settled, one each. */
    readonly leases: SharedBytes
    readonly connectorOf: (type: string) => Connector | undefined
    /** Shows the concurrency limit of a destination in the metrics while its actor lives. */
    readonly watch: (id: string, queue: Watched) => Effect.Effect<void, never, Scope.Scope>
  }
>()("@tidegate/entities/DeliveryRuntime") {
  /** `deliveries`: how many may be under way at once. `windowBytes`: bytes that all windows may hold. */
  static readonly layer = ({
    connectorOf = Connectors.connectorOf,
    deliveries,
    windowBytes
  }: {
    readonly deliveries: number
    readonly windowBytes: number
    readonly connectorOf?: (type: string) => Connector | undefined
  }): Layer.Layer<DeliveryRuntime> =>
    Layer.sync(DeliveryRuntime, () => {
      const permits = new FairSemaphore({ permits: deliveries })
      const queues = new Map<string, Watched>()
      metrics.deliveriesUnderWay.readBy(() => permits.taken)
      const leases = new SharedBytes(maxLeases)
      metrics.leasedMessages.readBy(() => maxLeases - leases.free)
      metrics.concurrencyLimit.readBy(() => limitsOf(queues))
      return DeliveryRuntime.of({
        permits,
        windowBytes: new SharedBytes(windowBytes),
        leases,
        connectorOf,
        watch: (id, queue) =>
          Effect.acquireRelease(
            Effect.sync(() => void queues.set(id, queue)),
            () => Effect.sync(() => void (queues.get(id) === queue && queues.delete(id)))
          )
      })
    })
}

/** The limits of the destinations with the most deliveries under way, and the highest limit of the others that have some. */
const limitsOf = (queues: ReadonlyMap<string, Watched>): ReadonlyArray<readonly [readonly [string], number]> => {
  const busy = [...queues].filter(([, { onWire }]) => onWire > 0)
  const busiest = busy.toSorted(([, a], [, b]) => b.onWire - a.onWire)
  const others = busiest.slice(worstDestinations)
  return [
    ...busiest.slice(0, worstDestinations).map(([id, { limit }]) => [[id] as const, limit] as const),
    [["other"], others.reduce((max, [, { limit }]) => Math.max(max, limit), 0)]
  ]
}
