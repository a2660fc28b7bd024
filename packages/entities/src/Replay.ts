import { Effect, Result } from "effect"
import { Sharding } from "effect/cluster"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { compileOrdering } from "@tidegate/rules/Ordering"
import { requestInput } from "@tidegate/rules/RequestInput"
import type { Database } from "@tidegate/storage/Database"
import { type Replay, type Replayed, type Routing, storeReplay } from "@tidegate/storage/bulk/Replays"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { wakeUps } from "./dispatch/WakeUps.ts"
import { shardOf } from "./Shards.ts"

export type { Replay, Replayed } from "@tidegate/storage/bulk/Replays"

/** How replays are routed in this cluster. An ordering setting that cannot be read gives no ordering key, as at ingress. */
export const replayRouting: Effect.Effect<Routing, never, Sharding.Sharding> = Effect.map(
  Sharding.Sharding,
  (sharding) => ({
    shardOf: (id) => shardOf(sharding, id),
    orderingKeyOf: ({ key }, message) => {
      const compiled = compileOrdering(key)
      return Result.isSuccess(compiled) ? compiled.success.of(requestInput(message, message.body)) : null
    }
  })
)

/**
 * Repeats a request as a new one of its source, on all of its connections and workflows or on the named connections. Returns when
 * the new request is stored. The connections' actors route it by their current rules, without deduplication.
 */
export const replay = Effect.fnUntraced(function* (
  given: Replay
): Effect.fn.Return<Replayed, GatewayError, Database | Secrets | Sharding.Sharding> {
  const replayed = yield* storeReplay(given, yield* replayRouting)
  const { wakeConnection, wakeWorkflow } = yield* wakeUps
  // Wake-up notifications: the poller finds what they miss.
  yield* Effect.forEach(replayed.connections, wakeConnection, { concurrency: 16, discard: true })
  yield* Effect.forEach(replayed.workflows, wakeWorkflow, { concurrency: 16, discard: true })
  return replayed
})
