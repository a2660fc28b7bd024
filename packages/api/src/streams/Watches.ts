import { Cause, Clock, Context, Deferred, Effect, FiberMap, Latch, Layer, Stream } from "effect"
import { Feed } from "@tidegate/coordination/Feed"
import { capturedChannel, type StreamFrame } from "@tidegate/model/CapturedRequest"
import type { Database } from "@tidegate/storage/Database"
import { captured, newestRequests, type Sighting, type WatchedSource } from "@tidegate/storage/reads/CapturedReads"

/** How often the database is read while somebody watches. */
const everyMs = 500
/** The shortest time between two reads, however often there is something new. */
const minMs = 50
/** The pause while the database does not answer. */
const pauseMs = 2_000
const patience = "5 seconds"
/**
 * How far back each read looks. A request is stored a moment after the time in its id, and clocks of ingress processes differ, so
 * a request with an earlier id may be stored after one with a later id.
 */
const lookBackMs = 30_000
/**
 * Requests of one source that are read, and shown, at a time. More is a flood; then watchers are notified that there was more.
 */
const maxSeen = 250
const maxShown = 100
/** Bodies of up to 64 KiB each that are read at once. */
const readAtOnce = 20
const sourcesAtOnce = 4

/** One watcher. */
export interface Watcher {
  readonly send: (frame: Buffer) => void
  /** The source has changed since the watch began: it is gone, or belongs to another team. */
  readonly gone: () => void
}

/** A source with at least one watcher in this process. */
interface Watch extends WatchedSource {
  readonly watchers: Set<Watcher>
  /** The requests of the last read, and those shown since; null: not read yet. */
  known: Set<string> | null
  /** Completed after the first read: everything stored from then on is shown. */
  readonly begun: Deferred.Deferred<void>
}

export const frameOf = (frame: StreamFrame): Buffer => Buffer.from(JSON.stringify(frame))

const skipped = frameOf({ type: "skipped" })

/** The new requests of a read, and whether there were more than are shown; pure. */
export const newOf = (
  known: ReadonlySet<string>,
  ids: ReadonlyArray<string>
): { readonly shown: ReadonlyArray<string>; readonly isCut: boolean } => {
  const fresh = ids.filter((id) => !known.has(id))
  // When even the oldest one read is new, there may have been others before it.
  const isCut = fresh.length > maxShown || (ids.length >= maxSeen && fresh.length === ids.length)
  return { shown: fresh.slice(-maxShown), isCut }
}

/**
 * The sources that are watched in this process. While there are any, one statement reads what is new for all of them, twice a
 * second and as soon as the feed announces something. So it does not matter which process received a request, or whether Redis
 * exists and answers. While nobody watches nothing is read, and requests are never delayed by it.
 */
export class Watches extends Context.Service<
  Watches,
  {
    /** Shows each request that is stored after this completes, exactly once. It waits for the database. */
    readonly watch: (source: WatchedSource, watcher: Watcher) => Effect.Effect<void>
    readonly unwatch: (source: WatchedSource, watcher: Watcher) => void
  }
>()("@tidegate/api/Watches") {
  static readonly layer: Layer.Layer<Watches, never, Database | Feed> = Layer.effect(
    Watches,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const database = yield* Effect.context<Database>()
  const watches = new Map<string, Watch>()
  const feed = yield* Feed
  const listening = yield* FiberMap.make<string>()
  const wake = Latch.makeUnsafe(false)
  const keyOf = ({ source, team }: WatchedSource): string => `${team}/${source}`

  /** Reads at once when something was stored, or may have been. Without this signal it is read half a second later. */
  const listen = (source: string) =>
    Effect.flatMap(
      feed.subscribe(capturedChannel(source)),
      Stream.runForEach(() => Effect.sync(() => wake.openUnsafe()))
    ).pipe(Effect.scoped, Effect.ignore)

  const sendTo = (watch: Watch, frame: Buffer): void => {
    for (const watcher of watch.watchers) watcher.send(frame)
  }

  /** Requests that were shown count as known even if the next read fails: nothing is shown twice. */
  const show = Effect.fnUntraced(function* (watch: Watch, known: Set<string>, ids: ReadonlyArray<string>) {
    for (let from = 0; from < ids.length; from += readAtOnce) {
      const part = ids.slice(from, from + readAtOnce)
      const requests = yield* captured(watch.team, part)
      for (const request of requests) sendTo(watch, frameOf({ type: "request", request }))
      for (const id of part) known.add(id)
    }
  })

  const see = Effect.fnUntraced(function* (watch: Watch, { ids, present }: Sighting) {
    const { known } = watch
    if (!present) for (const watcher of watch.watchers) watcher.gone()
    else if (known !== null) {
      const { isCut, shown } = newOf(known, ids)
      if (isCut) sendTo(watch, skipped)
      yield* show(watch, known, shown)
    }
    watch.known = new Set(ids)
    yield* Deferred.succeed(watch.begun, undefined)
  })

  let since = 0

  const look = Effect.gen(function* () {
    const all = [...watches.values()]
    const now = yield* Clock.currentTimeMillis
    // The clock was set back: watchers begin anew, so that nothing is shown twice and nobody waits for the old time to come
    // again.
    if (since > now) {
      since = now - lookBackMs
      for (const watch of all) {
        watch.known = null
        sendTo(watch, skipped)
      }
    }
    since = Math.max(since, now - lookBackMs)
    const sightings = yield* newestRequests(all, since, maxSeen)
    yield* Effect.forEach(all, (watch, place) => see(watch, sightings[place]!), {
      concurrency: sourcesAtOnce,
      discard: true
    })
  })

  yield* Effect.gen(function* () {
    if (watches.size === 0) wake.closeUnsafe()
    // A new watcher opens the latch, and so does the feed.
    yield* watches.size === 0 ? wake.await : Effect.timeoutOption(wake.await, everyMs)
    wake.closeUnsafe()
    if (watches.size === 0) return
    const seen = yield* Effect.exit(Effect.timeout(Effect.provideContext(look, database), patience))
    // Nobody is notified: the next read finds what this one missed.
    if (seen._tag === "Failure" && Cause.hasDies(seen.cause))
      yield* Effect.logError("streams could not be read", seen.cause)
    yield* Effect.sleep(seen._tag === "Success" ? minMs : pauseMs)
  }).pipe(Effect.forever, Effect.forkScoped)

  return Watches.of({
    watch: Effect.fnUntraced(function* (source, watcher) {
      const key = keyOf(source)
      const watch: Watch = watches.get(key) ?? {
        ...source,
        watchers: new Set(),
        known: null,
        begun: Deferred.makeUnsafe<void>()
      }
      watches.set(key, watch)
      watch.watchers.add(watcher)
      yield* FiberMap.run(listening, key, listen(source.source), { onlyIfMissing: true })
      if (watch.known === null) wake.openUnsafe()
      yield* Deferred.await(watch.begun)
    }),
    unwatch: (source, watcher) => {
      const watch = watches.get(keyOf(source))
      if (watch === undefined || !watch.watchers.delete(watcher)) return
      if (watch.watchers.size > 0) return
      watches.delete(keyOf(source))
      Effect.runFork(FiberMap.remove(listening, keyOf(source)))
    }
  })
})
