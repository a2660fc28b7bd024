import { Context, Effect, Layer, Result, Schema } from "effect"
import { Sharding } from "effect/cluster"
import type { SqlError } from "effect/sql"
import { takeTurn } from "@tidegate/model/LoopTurn"
import type { Rule } from "@tidegate/model/Rule"
import { compileRules, type CompiledRules } from "@tidegate/rules/RuleSet"
import { shardOf } from "@tidegate/entities/Shards"
import { Ingress, isSlug } from "@tidegate/model/Ingress"
import { compileCustomResponse } from "@tidegate/rules/CustomResponse"
import type { PresentedSecrets } from "@tidegate/signatures/PresentedSecrets"
import { compileSourceAuth, type SourceVerifier, verifyNobody } from "@tidegate/signatures/SourceAuth"
import { HotSql } from "@tidegate/storage/Database"
import { sealPresented } from "@tidegate/storage/PresentedColumn"
import { Secrets } from "@tidegate/storage/Secrets"
import type { SourceConfig } from "@tidegate/resources/Source"
import { Certificates } from "./Certificates.ts"
import type { ProxySettings } from "./ProxyUpstream.ts"
import { acknowledgementOf, type ReplySettings } from "./Reply.ts"
import { ingressPath } from "./InboundRequest.ts"

/** One enabled connection to an enabled destination, ready to route by. */
export interface Route {
  readonly connectionId: string
  readonly destinationId: string
  /** The shard of the destination's actor, and of the connection's. */
  readonly destinationShard: number
  readonly connectionShard: number
  /** Null when the stored rules cannot be read: its requests wait as pending routes. Closed, and nothing is lost. */
  readonly rules: CompiledRules | null
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
  readonly allowedMethods: ReadonlyArray<string>
  readonly verifier: SourceVerifier
  /** Seals what a request of this source has presented, for the row of that request alone. */
  readonly seal: (requestId: string, presented: PresentedSecrets) => string
  readonly reply: ReplySettings
  /** Where the answer comes from when the source is in proxy mode, else null. */
  readonly proxy: ProxySettings | null
  readonly routes: ReadonlyArray<Route>
}

interface Row {
  readonly id: string
  readonly team_id: string
  readonly slug: string | null
  readonly version: bigint
  readonly disabled_at: Date | null
  readonly type: string
  readonly config: SourceConfig
  readonly auth: string | null
  readonly connections: ReadonlyArray<{
    readonly id: string
    readonly destination_id: string
    readonly rules: ReadonlyArray<Rule>
  }>
}

const mostCached = 20_000
/**
 * How long an id that names no source is remembered. Ids are never reused and not guessable, so nothing is missed. A slug
 * is never remembered so: it may be given to a source any moment, and whoever did so is told that it holds at once.
 */
const unknownForMs = 5_000

const parseJson = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Json))

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
>()("@tidegate/doors/SourceSnapshots") {
  static readonly layer: Layer.Layer<
    SourceSnapshots,
    never,
    HotSql | Secrets | Sharding.Sharding | Certificates | Ingress
  > = Layer.effect(
    SourceSnapshots,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const sql = yield* HotSql
  const secrets = yield* Secrets
  const sharding = yield* Sharding.Sharding
  const certificates = yield* Certificates
  const ingress = yield* Ingress
  const context = yield* Effect.context()
  const runPromise = Effect.runPromiseWith(context)

  const cached = new Map<string, SourceSnapshot>()
  /** Which source has had a slug. Believed only when the source's snapshot says so too. */
  const idsBySlug = new Map<string, string>()
  const unknown = new Map<string, number>()
  /** Reads under way, and those that have to follow because somebody asked while one was under way. */
  const reading = new Map<string, Promise<SourceSnapshot | null>>()
  const following = new Map<string, Promise<SourceSnapshot | null>>()

  const origin = ingress.baseUrl.slice(0, -ingressPath.length + 1)

  const verifierOf = (row: Row): Effect.Effect<SourceVerifier> => {
    const compile = (auth: unknown) =>
      compileSourceAuth({ type: row.type, auth_type: row.config.auth_type, auth }, certificates.get)
    if (row.auth === null) return Effect.succeed(compile({}))
    return secrets.decrypt({ team_id: row.team_id, table: "sources", column: "auth", id: row.id }, row.auth).pipe(
      Effect.flatMap(parseJson),
      Effect.map(compile),
      Effect.catch((error) =>
        Effect.as(
          Effect.logError("a source's verification settings cannot be read", { source_id: row.id, error }),
          verifyNobody
        )
      )
    )
  }

  /** How it answers. A custom response that cannot be read is left out: what comes in is worth more than its answer. */
  const replyOf = (row: Row): Effect.Effect<ReplySettings> => {
    const acknowledgement = acknowledgementOf(row.type, row.config.chat_defer_ephemeral)
    const written = row.config.custom_response
    if (written === null) return Effect.succeed({ customResponse: null, acknowledgement })
    const compiled = compileCustomResponse(written)
    return Result.isSuccess(compiled)
      ? Effect.succeed({ customResponse: compiled.success, acknowledgement })
      : Effect.as(
          Effect.logError("a source's custom response cannot be read", { source_id: row.id, error: compiled.failure }),
          { customResponse: null, acknowledgement }
        )
  }

  /** Keeps the newest; the oldest entry goes first when there are too many, as a Map iterates in insertion order. */
  const keep = <A>(entries: Map<string, A>, key: string, value: A): void => {
    entries.delete(key)
    if (entries.size >= mostCached) entries.delete(entries.keys().next().value!)
    entries.set(key, value)
  }

  const read = Effect.fnUntraced(function* (name: string): Effect.fn.Return<SourceSnapshot | null, SqlError.SqlError> {
    const [row] = yield* sql<Row>`
      select s.id, s.team_id, s.slug, s.version, s.disabled_at, s.type, s.config, s.auth, coalesce((
        select json_agg(json_build_object('id', c.id, 'destination_id', c.destination_id, 'rules', c.rules) order by c.id)
        from connections c
        where c.source_id = s.id and c.deleted_at is null and c.disabled_at is null
          and (select d.deleted_at is null and d.disabled_at is null from destinations d where d.id = c.destination_id)
      ), '[]') as connections
      from sources s where ${isSlug(name) ? sql`s.slug = ${name}` : sql`s.id = ${name}`} and s.deleted_at is null`
    if (row === undefined) {
      if (isSlug(name)) {
        idsBySlug.delete(name)
        return null
      }
      cached.delete(name)
      if (unknown.size >= mostCached) unknown.clear()
      unknown.set(name, performance.now() + unknownForMs)
      return null
    }
    const routes: Array<Route> = []
    // Patterns take long to compile, and a source may have any number of connections.
    let since = performance.now()
    for (const connection of row.connections) {
      routes.push({
        connectionId: connection.id,
        destinationId: connection.destination_id,
        destinationShard: shardOf(sharding, connection.destination_id),
        connectionShard: shardOf(sharding, connection.id),
        rules: Result.getOrNull(compileRules(connection.rules))
      })
      if (performance.now() - since > 1) {
        yield* takeTurn(since)
        since = performance.now()
      }
    }
    const snapshot: SourceSnapshot = {
      id: row.id,
      slug: row.slug,
      teamId: row.team_id,
      version: Number(row.version),
      origin,
      disabled: row.disabled_at !== null,
      allowedMethods: row.config.allowed_http_methods,
      verifier: yield* verifierOf(row),
      seal: (id, presented) => sealPresented(secrets, { team_id: row.team_id, id }, presented),
      reply: yield* replyOf(row),
      proxy: row.config.mode === "proxy" ? row.config.proxy : null,
      routes
    }
    const known = cached.get(row.id)
    if (known === undefined || known.version <= snapshot.version) keep(cached, row.id, snapshot)
    if (isSlug(name)) keep(idsBySlug, name, row.id)
    return snapshot
  })

  const start = (name: string): Promise<SourceSnapshot | null> => {
    const result = runPromise(read(name)).finally(() => reading.delete(name))
    reading.set(name, result)
    return result
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
    load: (name) => {
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
  })
})
