import { Cause, Effect, type Fiber } from "effect"
import { passed } from "@tidegate/runtime/TestSignal"
import { cancelPending } from "@tidegate/storage/delivery/CancelPending"
import type { Database } from "@tidegate/storage/Database"
import { Journal } from "@tidegate/storage/Journal"
import { type DeliveryItem, horizonMs } from "../queue/DeliveryItem.ts"
import type { DeliveryQueue } from "../queue/DeliveryQueue.ts"
import { readPrefetch } from "../queue/PrefetchRead.ts"
import type { QueueHost } from "../queue/QueueHost.ts"
import type { makeDeliveriesInHand } from "./DeliveriesInHand.ts"
import { DeliveryRuntime } from "./DeliveryRuntime.ts"

/** The settings of a connection that stays unknown are requested at most this often (ms). */
const unknownEveryMs = 1_000
/** When more connections are unknown, all are forgotten, so that memory is bounded. */
const maxUnknown = 1_000

interface Hosting {
  readonly id: string
  readonly shard: number
  readonly now: () => number
  readonly holdsLease: () => boolean
  readonly run: <A, E>(effect: Effect.Effect<A, E, Database>) => Fiber.Fiber<A, E>
  readonly inHand: Effect.Success<ReturnType<typeof makeDeliveriesInHand>>
  readonly queue: () => DeliveryQueue
  /** How many connections deliver to the destination. */
  readonly connections: () => number
  readonly deliver: (item: DeliveryItem, startedAt: number) => void
  readonly changed: () => void
  /** Loads the settings again. */
  readonly reload: () => void
}

/** The environment of a destination's delivery queue: it connects the queue to the clock, to SQL and to what sends. */
export const makeQueueHosting = Effect.fnUntraced(function* (hosting: Hosting) {
  const { changed, connections, deliver, holdsLease, id, inHand, now, queue, reload, run, shard } = hosting
  const journal = yield* Journal
  const { permits, windowBytes } = yield* DeliveryRuntime
  const cancelling = new Set<string>()
  /** When the settings of unknown connections were requested. */
  const unknownAt = new Map<string, number>()

  const prefetch = Effect.suspend(() =>
    readPrefetch(shard, id, now() + horizonMs, {
      connections: connections(),
      memory: queue().memory,
      reads: queue().takeReads()
    })
  ).pipe(
    Effect.map((read) => {
      queue().prefetched(read)
      passed("prefetch")
    }),
    // Defects too: the queue waits for a result, and does not ask again before it has one.
    Effect.catchCause((cause) =>
      Effect.andThen(
        Effect.logWarning("a destination could not read its queue", { destination_id: id }, cause),
        Effect.sync(() => queue().prefetchFailed())
      )
    )
  )

  const host: QueueHost = {
    now,
    mayDeliver: holdsLease,
    permits,
    windowBytes,
    deliver,
    mustBeRecorded: inHand.isWanted,
    takeInHand: inHand.take,
    letGo: inHand.over,
    mark: (item, startedAt, done) => journal.mark(item.eventId, startedAt, done),
    prefetch: () => void run(prefetch),
    unknown: (connectionId) => {
      const at = now()
      if (at - (unknownAt.get(connectionId) ?? Number.NEGATIVE_INFINITY) < unknownEveryMs) return
      if (unknownAt.size >= maxUnknown) unknownAt.clear()
      unknownAt.set(connectionId, at)
      reload()
    },
    cancel: (connectionId) => {
      if (cancelling.has(connectionId)) return
      cancelling.add(connectionId)
      run(
        cancelPending({ connection_id: connectionId }).pipe(
          Effect.ignore,
          Effect.ensuring(Effect.sync(() => cancelling.delete(connectionId)))
        )
      )
    },
    changed,
    brokeDown: (cause) =>
      void run(Effect.logError("a delivery queue broke down", { destination_id: id }, Cause.die(cause)))
  }

  return {
    host,
    /** The settings of these connections are loaded. */
    known: (known: ReadonlyMap<string, unknown> | undefined): void => {
      for (const connectionId of unknownAt.keys()) if (known?.has(connectionId)) unknownAt.delete(connectionId)
    }
  }
})
