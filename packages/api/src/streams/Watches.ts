import { Cause, Clock, Context, Deferred, Effect, FiberMap, Latch, Layer, Stream } from "effect"
import { Feed } from "@tidegate/coordination/Feed"
import { capturedChannel, type StreamFrame } from "@tidegate/model/CapturedRequest"
import type { Database } from "@tidegate/storage/Database"
import { captured, newestRequests, type Sighting, type WatchedSource } from "@tidegate/storage/reads/CapturedReads"

/** How often it is looked while somebody watches. */
const everyMs = 500
/** How often at the most, however often there is something new. */
const minMs = 50
/** How long it is not looked while the database does not answer. */
const pauseMs = 2_000
const patience = "5 seconds"
/**
 * How far back it is looked each time: a request is stored a moment after the time in its id, and doors' clocks differ, so one with
 * an earlier id may come after one with a later id.
 */
const lookBackMs = 30_000
/** Requests of one source that are looked at, and told, at a time: more is a flood, whose watchers are told that there was more. */
const maxSeen = 250
const maxTold = 100
/** Bodies up to 64 KiB each are read so many at once. */
const readAtOnce = 20
const sourcesAtOnce = 4

/** Who watches. */
export interface Watcher {
  readonly tell: (frame: Buffer) => void
  /** The source is not what it was when the watching began: it is gone, or another team's. */
  readonly gone: () => void
}

/** A source that is watched here, by at least one. */
interface Watch extends WatchedSource {
  readonly watchers: Set<Watcher>
  /** The requests that were seen when it was looked last, and what was told since; null: it was not looked yet. */
  known: Set<string> | null
  /** Done once it was looked: what is stored from then on is told. */
  readonly begun: Deferred.Deferred<void>
}

export const frameOf = (frame: StreamFrame): Buffer => Buffer.from(JSON.stringify(frame))

const skipped = frameOf({ type: "skipped" })

/** Which requests of a sighting are new, and whether there were more than are told; pure. */
export const news = (
  known: ReadonlySet<string>,
  ids: ReadonlyArray<string>
): { readonly told: ReadonlyArray<string>; readonly isCut: boolean } => {
  const fresh = ids.filter((id) => !known.has(id))
  // When even the oldest that was seen is new, there may have been others before it.
  const isCut = fresh.length > maxTold || (ids.length >= maxSeen && fresh.length === ids.length)
  return { told: fresh.slice(-maxTold), isCut }
}

/**
 * The sources that somebody watches at this process. While there are any, SQL is asked twice a second, in one statement, for what is new
 * of all of them, and as soon as the feed tells that there is something: so it does not matter which process took a request, whether there is a Redis, and whether that answers. While nobody
 * watches, nothing is asked, and nothing of this is on the way of a request.
 */
export class Watches extends Context.Service<
  Watches,
  {
    /** Tells of each request that is stored from when this completes on, once. It waits for the database. */
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

  /** Looks at once when something was stored, or may have been. Without it, it is seen half a second later. */
  const listen = (source: string) =>
    Effect.flatMap(
      feed.subscribe(capturedChannel(source)),
      Stream.runForEach(() => Effect.sync(() => wake.openUnsafe()))
    ).pipe(Effect.scoped, Effect.ignore)

  const tell = (watch: Watch, frame: Buffer): void => {
    for (const watcher of watch.watchers) watcher.tell(frame)
  }

  /** What was told is known even if the next read fails: nothing is told twice. */
  const show = Effect.fnUntraced(function* (watch: Watch, known: Set<string>, ids: ReadonlyArray<string>) {
    for (let from = 0; from < ids.length; from += readAtOnce) {
      const part = ids.slice(from, from + readAtOnce)
      const requests = yield* captured(watch.team, part)
      for (const request of requests) tell(watch, frameOf({ type: "request", request }))
      for (const id of part) known.add(id)
    }
  })

  const see = Effect.fnUntraced(function* (watch: Watch, { ids, present }: Sighting) {
    const { known } = watch
    if (!present) for (const watcher of watch.watchers) watcher.gone()
    else if (known !== null) {
      const { isCut, told } = news(known, ids)
      if (isCut) tell(watch, skipped)
      yield* show(watch, known, told)
    }
    watch.known = new Set(ids)
    yield* Deferred.succeed(watch.begun, undefined)
  })

  let since = 0

  const look = Effect.gen(function* () {
    const all = [...watches.values()]
    const now = yield* Clock.currentTimeMillis
    // A clock that was set back: who watches begins anew, so that nothing is told twice and nobody waits for the time to come again.
    if (since > now) {
      since = now - lookBackMs
      for (const watch of all) {
        watch.known = null
        tell(watch, skipped)
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
    // Whoever begins to watch opens it, and so does the feed.
    yield* watches.size === 0 ? wake.await : Effect.timeoutOption(wake.await, everyMs)
    wake.closeUnsafe()
    if (watches.size === 0) return
    const seen = yield* Effect.exit(Effect.timeout(Effect.provideContext(look, database), patience))
    // Nobody is told: what was not seen is seen the next time.
    if (seen._tag === "Failure" && Cause.hasDies(seen.cause))
      yield* Effect.logError("streams could not be told", seen.cause)
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
