import { Clock, Effect, Layer } from "effect"
import { Sharding } from "effect/cluster"
import type { SqlError } from "effect/sql"
import type { Database } from "@tidegate/storage/Database"
import { enabledSubscriptions } from "@tidegate/storage/subscriptions/SubscriptionWork"
import { wakeUps } from "../dispatch/WakeUps.ts"
import { holdsShardOf } from "../Shards.ts"
import { SubscriptionsUnderWay } from "./SubscriptionsUnderWay.ts"

/** The time between two looks (ms): so long does a subscription wait whose process has ended, beside the time until its shard has an owner. */
const everyMs = 2_000

/**
 * Wakes the subscriptions of this process's shards that are due and that no actor holds, and those that have changed without their actor's
 * knowing: a wake-up notification may be lost.
 */
export const lookAtSubscriptions: Effect.Effect<void, SqlError.SqlError, Database | Sharding.Sharding> = Effect.gen(
  function* () {
    const sharding = yield* Sharding.Sharding
    const underWay = yield* SubscriptionsUnderWay
    const { wakeSubscription } = yield* wakeUps
    const enabled = yield* enabledSubscriptions
    const now = yield* Clock.currentTimeMillis
    const known = new Map(enabled.map(({ source_id, version }) => [source_id, version]))
    const due = enabled.filter(({ due_at, source_id }) => due_at <= now && !underWay.has(source_id))
    const changed = [...underWay].filter(([id, version]) => known.get(id) !== version)
    const mine = [...due.map(({ source_id }) => source_id), ...changed.map(([id]) => id)].filter((id) =>
      holdsShardOf(sharding, id)
    )
    yield* Effect.forEach(mine, wakeSubscription, { concurrency: 16, discard: true })
  }
)

export const layer: Layer.Layer<never, never, Database | Sharding.Sharding> = Layer.effectDiscard(
  Effect.forkScoped(
    Effect.forever(
      Effect.andThen(
        Effect.catchCause(lookAtSubscriptions, (cause) =>
          Effect.logWarning("subscriptions could not be looked after; the next look goes on", cause)
        ),
        Effect.sleep(everyMs)
      )
    )
  )
)
