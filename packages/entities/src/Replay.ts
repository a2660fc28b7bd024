import { Effect, Result } from "effect"
import { Sharding } from "effect/cluster"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { compileOrdering } from "@tidegate/rules/Ordering"
import { requestInput } from "@tidegate/rules/RequestInput"
import type { Database } from "@tidegate/storage/Database"
import { type Replay, type Replayed, type Routing, storeReplay } from "@tidegate/storage/bulk/Replays"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { actors } from "./dispatch/Dispatcher.ts"
import { shardOf } from "./Shards.ts"

export type { Replay, Replayed } from "@tidegate/storage/bulk/Replays"

/** How replays are routed on this cluster. An ordering that cannot be read puts nothing in a line, as at the doors. */
export const replayRouting: Effect.Effect<Routing, never, Sharding.Sharding> = Effect.map(
  Sharding.Sharding,
  (sharding) => ({
    shardOf: (id) => shardOf(sharding, id),
    lineOf: ({ key }, message) => {
      const compiled = compileOrdering(key)
      return Result.isSuccess(compiled) ? compiled.success.of(requestInput(message, message.body)) : null
    }
  })
)

/**
 * Makes a request happen again, as a new one of its source, on all of its connections and workflows, or on the connections named. It answers when that is stored: what it
 * becomes the connections' actors decide, by the rules that hold then, but for deduplication.
 */
export const replay = Effect.fnUntraced(function* (
  given: Replay
): Effect.fn.Return<Replayed, GatewayError, Database | Secrets | Sharding.Sharding> {
  const replayed = yield* storeReplay(given, yield* replayRouting)
  const { wakeConnection, wakeWorkflow } = yield* actors
  // Hints: the sweep finds what is not told.
  yield* Effect.forEach(replayed.connections, wakeConnection, { concurrency: 16, discard: true })
  yield* Effect.forEach(replayed.workflows, wakeWorkflow, { concurrency: 16, discard: true })
  return replayed
})
