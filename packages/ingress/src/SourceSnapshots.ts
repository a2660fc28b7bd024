import { Context, Effect, Layer, Semaphore } from "effect"
import type { Sharding } from "effect/cluster"
import type { SqlError } from "effect/sql"
import { weighing } from "@tidegate/runtime/HeldBytes"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import { permitsByKey } from "@tidegate/runtime/FairSemaphore"
import { WeighedCache } from "@tidegate/runtime/WeighedCache"
import { type Ingress, isSlug } from "@tidegate/model/Ingress"
import type { Database } from "@tidegate/storage/Database"
import { readRoutedSource, type RoutedSource, weighRoutedSource } from "@tidegate/storage/delivery/RoutedSource"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import type { Certificates } from "./Certificates.ts"
import { IngestLimits } from "./IngestLimits.ts"
import { makeSnapshotCompiler, type SourceSnapshot } from "./SourceSnapshot.ts"

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
  const limits = yield* IngestLimits
  const compile = yield* makeSnapshotCompiler
  const context = yield* Effect.context<Database | Secrets>()
  const runPromise = Effect.runPromiseWith(context)

  const cached = new WeighedCache<string, SourceSnapshot>(maxCached)
  /** The source that had a slug when last read. Used only if the source's snapshot has the same slug. */
  const idsBySlug = new WeighedCache<string, string>(maxCached)
  const unknown = new Map<string, number>()
  /** Reads in progress, and reads that start after them, because a caller needs one that began after its call. */
  const reading = new Map<string, Promise<SourceSnapshot | null>>()
  const following = new Map<string, Promise<SourceSnapshot | null>>()

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
    // The closure captures only this, so the cache does not retain all that was read.
    const { id } = source
    const snapshot = yield* compile(source, {
      bin: cached.get(id)?.bin ?? null,
      isOld: () => void load(id).catch(() => null)
    })
    const known = cached.get(id)
    if (known === undefined || known.version <= snapshot.version) {
      cached.set(id, snapshot, { owner: snapshot.teamId, bytes })
    }
    if (isSlug(name)) idsBySlug.set(name, id, { owner: snapshot.teamId, bytes: 0 })
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
