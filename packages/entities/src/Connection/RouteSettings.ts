import { Effect, Result } from "effect"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import { connectorOf } from "@tidegate/connectors/Connectors"
import { compilingDeduplication } from "@tidegate/rules/Deduplication"
import { compilingRules } from "@tidegate/rules/RuleSet"
import type { Basis } from "@tidegate/storage/journal/RoutingRecord"
import type { PendingWork, RoutedTransformation } from "@tidegate/storage/delivery/RoutingJobs"
import { Secrets } from "@tidegate/storage/secrets/Secrets"
import { openEnv } from "@tidegate/storage/control/TransformationEnv"
import type { Decider } from "./Decide.ts"
import type { Transformation } from "./Transforming.ts"

/** The settings that decide a connection's routing jobs, and their version. */
export interface RouteSettings {
  readonly decider: Decider
  readonly basis: Basis
}

/** Null when the transformation is missing or its variables cannot be read: the requests wait, because it may come back. */
const readyToRun = Effect.fnUntraced(function* (
  stored: RoutedTransformation | null
): Effect.fn.Return<Transformation | null, never, Secrets> {
  if (stored === null) return null
  const { code, code_hash, id, isolation } = stored
  return yield* openEnv(yield* Secrets, stored).pipe(
    Effect.map((env): Transformation => ({ id, code, codeHash: code_hash, isolation, env })),
    Effect.catch((error) =>
      Effect.as(Effect.logError("a transformation's variables cannot be read", { transformation_id: id, error }), null)
    )
  )
})

/** Whether these settings can decide every request that is handed to the connection. */
export const decidesAll = ({ decider }: RouteSettings): boolean =>
  decider.slow.transform === null || decider.transformation !== null

/** Prepares the stored settings to decide; null when they cannot decide anything. */
export const routeSettings = Effect.fnUntraced(function* (
  connectionId: string,
  { connection, transformation: stored }: PendingWork,
  pin: (reason: string) => void
): Effect.fn.Return<RouteSettings | null, never, Secrets> {
  const { destination_id: destinationId, source_id: sourceId, version } = connection
  const rules = Result.getOrNull(yield* inSlices(compilingRules(connection.rules)))
  if (rules === null) {
    // Fails closed: rules that cannot be read let nothing through. Nothing is lost, because the requests wait.
    yield* Effect.logError("a connection's rules cannot be read", { connection_id: connectionId })
    return null
  }
  // When the slow rules were removed meanwhile, there is nothing to wait for.
  const slow = rules.slow ?? { deduplicate: null, transform: null, filter: rules.filter }
  const transformation = slow.transform === null ? null : yield* readyToRun(stored)
  const deduplication = slow.deduplicate === null ? null : yield* inSlices(compilingDeduplication(slow.deduplicate))
  const windowMs = slow.deduplicate?.window ?? 0
  const isTunnel = connectorOf(connection.destination_type)?.isTunnel === true
  const { delay } = rules
  return {
    decider: { connectionId, destinationId, isTunnel, slow, delay, deduplication, windowMs, transformation, pin },
    basis: {
      sourceId,
      version,
      transformation: stored === null ? null : { id: stored.id, mark: stored.mark }
    }
  }
})
