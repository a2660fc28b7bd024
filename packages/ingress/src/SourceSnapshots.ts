import { Context, Effect, Layer, Result, Semaphore } from "effect"
import { Sharding } from "effect/cluster"
import type { SqlError } from "effect/sql"
import { connectorOf } from "@tidegate/connectors/Connectors"
import { weighing } from "@tidegate/runtime/HeldBytes"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import { permitsByKey } from "@tidegate/runtime/FairSemaphore"
import { WeighedCache } from "@tidegate/runtime/WeighedCache"
import { compileOrdering, type OrderingKey } from "@tidegate/rules/Ordering"
import { compilingRules, type CompiledRules } from "@tidegate/rules/RuleSet"
import { shardOf } from "@tidegate/entities/Shards"
import { Ingress, ingressOrigin, isSlug } from "@tidegate/model/Ingress"
import { compilingCustomResponse } from "@tidegate/rules/CustomResponse"
import type { PresentedSecrets } from "@tidegate/verification/PresentedSecrets"
import { compileSourceAuth, type SourceVerifier, verifyNobody } from "@tidegate/verification/SourceAuth"
import type { Database } from "@tidegate/storage/Database"
import { sealPresented } from "@tidegate/storage/secrets/PresentedColumn"
import { readRoutedSource, type RoutedSource, weighRoutedSource } from "@tidegate/storage/delivery/RoutedSource"
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
}

const maxCached = 20_000
/** Sources that are read at once: light ones, and heavy ones, of which each team reads one at a time. */
const maxLightReads = 32
const maxHeavyReads = 2
/**
 * Milliseconds for which an unknown id is remembered. Ids are never reused and cannot be guessed, so no source is missed. An unknown slug is
 * never remembered: it may be given to a source at any time, and takes effect as soon as that call returns.
 */
const unknownForMs = 5_000

/** The snapshots by which ingress routes. A cached one may be outdated: the commit detects that, and ingress loads a newer one. */
export class SourceSnapshots extends Context.Service<
  SourceSnapshots,
  {
    /** The cached snapshot of the source with that id or slug; null: no such source; undefined: not cached, call `load`. */
    readonly get: (name: string) => SourceSnapshot | null | undefined
    /**
     * Reads the snapshot again. Concurrent callers share one read that began after the last of them called. A request is always loaded by the
     * name it was sent to: a slug may have moved to another source, and the request goes with it.
     */
    readonly load: (name: string) => Promise<SourceSnapshot | null>
  }
>()("@tidegate/ingress/SourceSnapshots") {
  static readonly layer: Layer.Layer<
    SourceSnapshots,
    never,
    Database | Secrets | Sharding.Sharding | Certificates | IngestLimits | Ingress
  > = Layer.effect(
    SourceSnapshots,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const secrets = yield* Secrets
  const sharding = yield* Sharding.Sharding
  const certificates = yield* Certificates
  const limits = yield* IngestLimits
  const ingress = yield* Ingress
  const context = yield* Effect.context<Database | Secrets>()
  const runPromise = Effect.runPromiseWith(context)

  const cached = new WeighedCache<string, SourceSnapshot>(maxCached)
  /** The source that had a slug when last read. Used only if the source's snapshot has the same slug. */
  const idsBySlug = new WeighedCache<string, string>(maxCached)
  const unknown = new Map<string, number>()
  /** Reads in progress, and reads that start after them, because a caller needs one that began after its call. */
  const reading = new Map<string, Promise<SourceSnapshot | null>>()
  const following = new Map<string, Promise<SourceSnapshot | null>>()

  const origin = ingressOrigin(ingress)

  /** Fails closed, because settings that cannot be read must not accept forgeries. */
  const verifierOf = ({ auth, config, id, type }: RoutedSource): Effect.Effect<SourceVerifier> =>
    Result.isSuccess(auth)
      ? Effect.succeed(compileSourceAuth({ type, auth_type: config.auth_type, auth: auth.success }, certificates.get))
      : Effect.as(
          Effect.logError("a source's verification settings cannot be read", { source_id: id, error: auth.failure }),
          verifyNobody
        )

  const limitOf = ({ config, id, team_id, version }: RoutedSource): IngestLimit | null => {
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
      isOld: () => void load(id).catch(() => null)
    })
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

  const light = Semaphore.makeUnsafe(maxLightReads)
  const heavy = Semaphore.makeUnsafe(maxHeavyReads)
  const heavyOfTeam = permitsByKey({ perKey: 1 })

  /**
   * Limits the concurrent reads before they start, because a thousand large sources may get requests at the same moment. Small sources
   * do not wait for large ones.
   */
  const readInTurn = Effect.fnUntraced(function* (
    name: string
  ): Effect.fn.Return<RoutedSource | null, SqlError.SqlError, Database | Secrets> {
    const weight = yield* weighRoutedSource(name)
    if (weight === null) return null
    return yield* weight.isLight
      ? Semaphore.withPermit(light, readRoutedSource(name))
      : heavyOfTeam.within(weight.team_id)(Semaphore.withPermit(heavy, readRoutedSource(name)))
  })

  const read = Effect.fnUntraced(function* (
    name: string
  ): Effect.fn.Return<SourceSnapshot | null, SqlError.SqlError, Database | Secrets> {
    const source = yield* readInTurn(name)
    if (source === null) {
      if (isSlug(name)) {
        idsBySlug.delete(name)
        return null
      }
      cached.delete(name)
      limits.drop(name)
      if (unknown.size >= maxCached) unknown.clear()
      unknown.set(name, performance.now() + unknownForMs)
      return null
    }
    const bytes = yield* inSlices(weighing(source))
    const routes: Array<Route> = []
    for (const connection of source.connections) {
      routes.push({
        connectionId: connection.id,
        destinationId: connection.destination_id,
        destinationShard: shardOf(sharding, connection.destination_id),
        isTunnel: connectorOf(connection.destination_type)?.isTunnel === true,
        connectionShard: shardOf(sharding, connection.id),
        rules:
          connection.follows || connection.rules === null
            ? null
            : Result.getOrNull(yield* inSlices(compilingRules(connection.rules))),
        ordering: connection.ordering === null ? null : Result.getOrNull(compileOrdering(connection.ordering.key))
      })
    }
    // The closures below capture only this, so the cache does not retain all that was read.
    const { team_id } = source
    const snapshot: SourceSnapshot = {
      id: source.id,
      slug: source.slug,
      teamId: team_id,
      version: source.version,
      origin,
      disabled: source.disabled,
      limit: limitOf(source),
      bin: source.binExpiresAt === null ? null : (cached.get(source.id)?.bin ?? newBin(source.binExpiresAt)),
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
      }))
    }
    const known = cached.get(source.id)
    if (known === undefined || known.version <= snapshot.version) {
      cached.set(source.id, snapshot, { owner: team_id, bytes })
    }
    if (isSlug(name)) idsBySlug.set(name, source.id, { owner: team_id, bytes: 0 })
    return snapshot
  })

  const start = (name: string): Promise<SourceSnapshot | null> => {
    const result = runPromise(read(name)).finally(() => reading.delete(name))
    reading.set(name, result)
    return result
  }

  const load = (name: string): Promise<SourceSnapshot | null> => {
    const current = reading.get(name)
    if (current === undefined) return start(name)
    let next = following.get(name)
    if (next === undefined) {
      next = current
        .catch(() => null)
        .then(() => {
          following.delete(name)
          return start(name)
        })
      following.set(name, next)
    }
    return next
  }

  return SourceSnapshots.of({
    get: (name) => {
      const snapshot = cached.get(name)
      if (snapshot !== undefined) return snapshot
      const id = idsBySlug.get(name)
      const named = id === undefined ? undefined : cached.get(id)
      // The commit accepts this snapshot if its version is current, even if the slug was given up since.
      if (named?.slug === name) return named
      const until = unknown.get(name)
      if (until === undefined) return undefined
      if (performance.now() < until) return null
      unknown.delete(name)
      return undefined
    },
    load
  })
})
