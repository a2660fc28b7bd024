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

/** One enabled connection to an enabled destination, ready to route by. */
export interface Route {
  readonly connectionId: string
  readonly destinationId: string
  /** The shard of the destination's actor, and of the connection's. */
  readonly destinationShard: number
  readonly connectionShard: number
  /** Whether deliveries to the destination go through a tunnel. */
  readonly isTunnel: boolean
  /**
   * Null when the connection's actor decides whatever they are: the stored rules cannot be read (closed, and nothing is lost), what
   * comes must not pass what waits there, or the source's connections have more rules than a door holds.
   */
  readonly rules: CompiledRules | null
  /** By what its events are kept in order; null: in none, or by something that cannot be read. */
  readonly ordering: OrderingKey | null
}

/** A workflow that each accepted request begins a run of. */
export interface RunRoute {
  readonly workflowId: string
  readonly shard: number
  readonly version: number
  readonly steps: number
}

/** Everything a door needs to decide about a request of one source, as of one version of it. */
export interface SourceSnapshot {
  readonly id: string
  /** What else names it in its URL, as of that version; null: nothing does. */
  readonly slug: string | null
  readonly teamId: string
  readonly version: number
  /** What a request target is appended to, to be the URL that the sender has called. */
  readonly origin: string
  readonly disabled: boolean
  /** Null: as many requests are accepted as come. */
  readonly limit: IngestLimit | null
  /** Null: it is a source of a team. */
  readonly bin: Bin | null
  readonly allowedMethods: ReadonlyArray<string>
  readonly verifier: SourceVerifier
  /** Seals what a request of this source has presented, for the row of that request alone. */
  readonly seal: (requestId: string, presented: PresentedSecrets) => string
  readonly reply: ReplySettings
  /** Where the answer comes from when the source is in proxy mode, else null. */
  readonly proxy: ProxySettings | null
  readonly routes: ReadonlyArray<Route>
  readonly workflows: ReadonlyArray<RunRoute>
}

const maxCached = 20_000
/** Sources that are read at once: small ones, and others, of which a team has one at a time. */
const maxLightReads = 32
const maxHeavyReads = 2
/**
 * How long an id that names no source is remembered. Ids are never reused and not guessable, so nothing is missed. A slug
 * is never remembered so: it may be given to a source any moment, and whoever did so is told that it holds at once.
 */
const unknownForMs = 5_000

/**
 * The snapshots that a door routes by. A cached one may be old: the commit finds out and the door asks for a newer one.
 */
export class SourceSnapshots extends Context.Service<
  SourceSnapshots,
  {
    /** The cached snapshot of the source of that id or slug; null: no such source; undefined: not cached, ask `load`. */
    readonly get: (name: string) => SourceSnapshot | null | undefined
    /**
     * Reads it anew; concurrent callers share one read that began after the last of them asked. A request is loaded by
     * the name it was sent to, each time: a slug may have moved to another source, and the request with it.
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
  /** Which source has had a slug. Believed only when the source's snapshot says so too. */
  const idsBySlug = new WeighedCache<string, string>(maxCached)
  const unknown = new Map<string, number>()
  /** Reads under way, and those that have to follow because somebody asked while one was under way. */
  const reading = new Map<string, Promise<SourceSnapshot | null>>()
  const following = new Map<string, Promise<SourceSnapshot | null>>()

  const origin = ingressOrigin(ingress)

  /** Closed: by settings that cannot be read, nobody is verified. */
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

  /** How it answers. A custom response that cannot be read is left out: what comes in is worth more than its answer. */
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

  /** What is read at once is bounded before it is read: a thousand large sources may be posted to in one moment. Small ones do not wait for them. */
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
    // What is kept holds this, and not all that was read.
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
      // The journal finds a newer snapshot current, even when the source has given the slug up by then.
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
