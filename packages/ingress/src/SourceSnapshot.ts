import { Effect, Result } from "effect"
import { Sharding } from "effect/cluster"
import { connectorOf } from "@tidegate/connectors/Connectors"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import { compileOrdering, type OrderingKey } from "@tidegate/rules/Ordering"
import { compilingRules, type CompiledRules } from "@tidegate/rules/RuleSet"
import { shardOf } from "@tidegate/entities/Shards"
import { Ingress, ingressOrigin } from "@tidegate/model/Ingress"
import type { WorkflowAnswer } from "@tidegate/model/WorkflowTriggers"
import { compilingCustomResponse } from "@tidegate/rules/CustomResponse"
import type { PresentedSecrets } from "@tidegate/verification/PresentedSecrets"
import { compileSourceAuth, type SourceVerifier, verifyNobody } from "@tidegate/verification/SourceAuth"
import { sealPresented } from "@tidegate/storage/secrets/PresentedColumn"
import type { AwaitingWorkflow } from "@tidegate/storage/Journal"
import type { RoutedSource } from "@tidegate/storage/delivery/RoutedSource"
import { Secrets } from "@tidegate/storage/secrets/Secrets"
import { type Bin, newBin } from "./BinIngress.ts"
import { Certificates } from "./Certificates.ts"
import { type IngestLimit, IngestLimits } from "./IngestLimits.ts"
import type { ProxySettings } from "./ProxyUpstream.ts"
import { acknowledgementOf, type ReplySettings } from "./Reply.ts"

/** An enabled connection to an enabled destination, prepared for routing. */
export interface Route {
  readonly connectionId: string
  readonly destinationId: string
  /** Shard of the destination's actor. */
  readonly destinationShard: number
  readonly connectionShard: number
  /** Whether deliveries to the destination go through a tunnel. */
  readonly isTunnel: boolean
  /**
   * Null if the connection's actor has to decide, whatever the rules are: the stored rules cannot be read (fails closed, and nothing is
   * lost), new requests must not overtake those that wait there, or the source's connections have too many rules for ingress.
   */
  readonly rules: CompiledRules | null
  /** The ordering key of its events; null: none, or one that cannot be read. */
  readonly ordering: OrderingKey | null
}

/** A workflow that starts a run for each accepted request. */
export interface RunRoute {
  readonly workflowId: string
  readonly shard: number
  readonly version: number
  readonly steps: number
}

/** All that ingress needs to decide about a request of one source, as of one version of it. */
export interface SourceSnapshot {
  readonly id: string
  /** The slug in the source's URL, as of that version; null: none. */
  readonly slug: string | null
  readonly teamId: string
  readonly version: number
  /** The origin of the source's public URL, to which the request target is appended. */
  readonly origin: string
  readonly disabled: boolean
  /** Null: no limit. */
  readonly limit: IngestLimit | null
  /** Null if it is a source of a team. */
  readonly bin: Bin | null
  readonly allowedMethods: ReadonlyArray<string>
  readonly verifier: SourceVerifier
  /** Encrypts the presented credentials of a request of this source, bound to the row of that request. */
  readonly seal: (requestId: string, presented: PresentedSecrets) => string
  readonly reply: ReplySettings
  /** The upstream, if the source is in proxy mode; else null. */
  readonly proxy: ProxySettings | null
  readonly routes: ReadonlyArray<Route>
  readonly workflows: ReadonlyArray<RunRoute>
  /** The workflows with steps that wait for a request of the source; absent: there are none. */
  readonly awaiting?: ReadonlyArray<AwaitingWorkflow>
  /** The workflow whose run answers senders, and by which step; null: none does. */
  readonly answer: (WorkflowAnswer & { readonly workflowId: string }) | null
}

/** Makes a snapshot of what was read of a source. */
export const makeSnapshotCompiler = Effect.gen(function* () {
  const secrets = yield* Secrets
  const sharding = yield* Sharding.Sharding
  const certificates = yield* Certificates
  const limits = yield* IngestLimits
  const origin = ingressOrigin(yield* Ingress)

  const limitOf = ({ config, id, team_id, version }: RoutedSource, isOld: () => void): IngestLimit | null => {
    if (config.rate_limit === null) {
      limits.drop(id)
      return null
    }
    return limits.of({
      id,
      teamId: team_id,
      version,
      limit: config.rate_limit,
      period: config.rate_limit_period ?? "second",
      isOld
    })
  }

  /** Fails closed, because settings that cannot be read must not accept forgeries. */
  const verifierOf = ({ auth, config, id, type }: RoutedSource): Effect.Effect<SourceVerifier> =>
    Result.isSuccess(auth)
      ? Effect.succeed(compileSourceAuth({ type, auth_type: config.auth_type, auth: auth.success }, certificates.get))
      : Effect.as(
          Effect.logError("a source's verification settings cannot be read", { source_id: id, error: auth.failure }),
          verifyNobody
        )

  const routesOf = Effect.fnUntraced(function* ({ connections }: RoutedSource) {
    const routes: Array<Route> = []
    for (const { destination_id, destination_type, follows, id, ordering, rules } of connections) {
      routes.push({
        connectionId: id,
        destinationId: destination_id,
        destinationShard: shardOf(sharding, destination_id),
        isTunnel: connectorOf(destination_type)?.isTunnel === true,
        connectionShard: shardOf(sharding, id),
        rules: follows || rules === null ? null : Result.getOrNull(yield* inSlices(compilingRules(rules))),
        ordering: ordering === null ? null : Result.getOrNull(compileOrdering(ordering.key))
      })
    }
    return routes
  })

  /** `bin`: that of the snapshot before this one; null: none. `isOld` is called when the limit of a newer version is in use. */
  return Effect.fnUntraced(function* (
    source: RoutedSource,
    { bin, isOld }: { readonly bin: Bin | null; readonly isOld: () => void }
  ): Effect.fn.Return<SourceSnapshot> {
    // The closures below capture only this, so the cache does not retain all that was read.
    const { id: sourceId, team_id } = source
    const routes = yield* routesOf(source)
    return {
      id: sourceId,
      slug: source.slug,
      teamId: team_id,
      version: source.version,
      origin,
      disabled: source.disabled,
      limit: limitOf(source, isOld),
      bin: source.binExpiresAt === null ? null : (bin ?? newBin(source.binExpiresAt)),
      allowedMethods: source.config.allowed_http_methods,
      verifier: yield* verifierOf(source),
      seal: (id, presented) => sealPresented(secrets, { team_id, id }, presented),
      reply: yield* replyOf(source),
      proxy: source.config.mode === "proxy" ? source.config.proxy : null,
      routes,
      workflows: source.workflows.map(({ id, steps, version }) => ({
        workflowId: id,
        shard: shardOf(sharding, id),
        version,
        steps
      })),
      ...(source.awaiting.length === 0
        ? {}
        : { awaiting: source.awaiting.map((id) => ({ workflowId: id, shard: shardOf(sharding, id) })) }),
      answer: answerOf(source)
    }
  })
})

/** Of several workflows that would answer, the oldest does. */
const answerOf = ({ workflows }: RoutedSource): SourceSnapshot["answer"] => {
  const [first] = workflows.flatMap(({ answer, id }) => (answer === null ? [] : [{ ...answer, workflowId: id }]))
  return first ?? null
}

/** Settings of the answer. A custom response that cannot be read is left out, because receiving requests matters more than their answer. */
const replyOf = Effect.fnUntraced(function* (source: RoutedSource): Effect.fn.Return<ReplySettings> {
  const acknowledgement = acknowledgementOf(source.type, source.config.chat_defer_ephemeral)
  const written = source.config.custom_response
  if (written === null) return { customResponse: null, acknowledgement }
  const compiled = yield* inSlices(compilingCustomResponse(written, true))
  if (Result.isSuccess(compiled)) return { customResponse: compiled.success, acknowledgement }
  yield* Effect.logError("a source's custom response cannot be read", {
    source_id: source.id,
    error: compiled.failure
  })
  return { customResponse: null, acknowledgement }
})
