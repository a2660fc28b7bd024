import { Clock, Context, Effect, Result } from "effect"
import { Sharding } from "effect/cluster"
import type { SqlError } from "effect/sql"
import { derivedId, prefixes } from "@tidegate/model/Ids"
import { compileRules, type CompiledRules } from "@tidegate/rules/RuleSet"
import type { HotSql, JournalSql } from "@tidegate/storage/Database"
import {
  type PendingRouteRow,
  readPendingRoutes,
  type Settled,
  settlePendingRoutes
} from "@tidegate/storage/PendingRoutes"
import { DestinationEntity } from "../Destination/DestinationProtocol.ts"
import { shardOf } from "../Shards.ts"

/** What a connection's slow rules say about one request. */
export type SlowOutcome =
  | { readonly kind: "pass" }
  | { readonly kind: "ignore"; readonly cause: string; readonly meta: ReadonlyArray<unknown> }
  /** Not now: the route stays pending and is looked at again by the next sweep. */
  | { readonly kind: "wait" }

/**
 * Runs the slow rules (deduplicate, transformation, and the filters behind them). Executing them is a part of its own;
 * until it is there, no such rule can be stored, and what meets this waits: closed, and nothing is lost.
 */
export class SlowRuleRunner extends Context.Reference<{
  readonly run: (rules: CompiledRules, request: PendingRouteRow) => Effect.Effect<SlowOutcome>
}>("@tidegate/entities/SlowRuleRunner", {
  defaultValue: () => ({ run: () => Effect.succeed({ kind: "wait" } as const) })
}) {}

const batchSize = 200

/**
 * Works off a connection's pending routes in the order they came: each becomes an event or an ignored event, in the same
 * transaction in which it leaves the list. Interrupted anywhere, it begins again where SQL says it was.
 */
export const workOffPendingRoutes = Effect.fnUntraced(
  function* (connectionId: string): Effect.fn.Return<void, SqlError.SqlError, HotSql | JournalSql | Sharding.Sharding> {
    const sharding = yield* Sharding.Sharding
    const runner = yield* SlowRuleRunner
    const destination = yield* DestinationEntity.client
    for (;;) {
      const read = yield* readPendingRoutes(connectionId, batchSize)
      if (read === null || read.waiting.length === 0) return
      const { connection, waiting } = read
      const rules = Result.getOrNull(compileRules(connection.rules))
      const now = yield* Clock.currentTimeMillis
      const settled: Array<Settled> = []
      for (const request of waiting) {
        const requestId = request.request_id
        if (!connection.routes) {
          settled.push({ kind: "dropped", requestId })
          continue
        }
        if (rules === null) continue
        // A rule that was removed meanwhile leaves nothing to wait for.
        const outcome: SlowOutcome = rules.slow === null ? { kind: "pass" } : yield* runner.run(rules, request)
        if (outcome.kind === "wait") continue
        settled.push(
          outcome.kind === "pass"
            ? {
                kind: "event",
                requestId,
                eventId: derivedId(prefixes.event, requestId, connectionId),
                dueAt: now + rules.delay
              }
            : {
                kind: "ignored",
                requestId,
                ignoredId: derivedId(prefixes.ignoredEvent, requestId, connectionId),
                cause: outcome.cause,
                meta: JSON.stringify(outcome.meta)
              }
        )
      }
      if (settled.length === 0) return
      const destinationId = connection.destination_id
      const shard = shardOf(sharding, destinationId)
      yield* settlePendingRoutes({ connectionId, destinationId, shard, now, settled })
      yield* destination(destinationId)
        .Wake(undefined, { discard: true })
        .pipe(Effect.timeout("1 second"), Effect.ignore)
      if (settled.length < waiting.length) return
    }
  },
  (effect, connectionId) =>
    Effect.catch(effect, (error) =>
      Effect.logWarning("pending routes could not be worked off", { connection_id: connectionId, error })
    )
)
