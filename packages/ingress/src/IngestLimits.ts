import { randomUUID } from "node:crypto"
import { Clock, Context, Effect, Exit, Layer } from "effect"
import type { Sharding } from "effect/cluster"
import { againMs, type Asked, IngestLease } from "@tidegate/coordination/limits/IngestLease"
import type { RatePeriod } from "@tidegate/model/Destination"
import { SourceEntity } from "@tidegate/entities/Source/SourceProtocol"
import type { Database } from "@tidegate/storage/Database"
import { countLimited, type Limited } from "@tidegate/storage/delivery/SourcePeriods"
import { metrics } from "@tidegate/telemetry/Metrics"

/** Timeout of a lease request; requests are accepted meanwhile. */
const patience = "1 second"
/** Leases that are kept, of the most recently added sources. A dropped one starts again without a lease. */
const maxKept = 20_000
/** Interval at which refused requests are counted in SQL, for all sources together. */
const countEvery = "1 second"

/** The settings of a source that determine its limit. */
export interface Limiting {
  readonly id: string
  readonly teamId: string
  readonly version: number
  readonly limit: number
  readonly period: RatePeriod
  /** Called if the source's actor has a later version. */
  readonly isOld: () => void
}

/** The limit of a source in this process. */
export interface IngestLimit {
  /** Milliseconds until a request may be accepted again; 0: now. */
  readonly wait: () => number
  /** Takes one request from the limit; false: none is left. */
  readonly take: () => boolean
  /** Returns one request that was taken but not stored. */
  readonly giveBack: () => void
  /** Counts a refused request; nothing else of it is stored. */
  readonly refused: () => void
}

interface Kept {
  /** Name under which this entry reports. A new entry counts from zero, so it gets a new name. */
  readonly door: string
  readonly lease: IngestLease
  readonly limit: IngestLimit
  limiting: Limiting
}

/** How much this process may accept of the sources with a limit. Leases are requested in the background. */
export class IngestLimits extends Context.Service<
  IngestLimits,
  {
    /** The limit of a source, by the settings of a version. */
    readonly of: (limiting: Limiting) => IngestLimit
    /** The source has no limit any more. */
    readonly drop: (sourceId: string) => void
  }
>()("@tidegate/ingress/IngestLimits") {
  static readonly layer: Layer.Layer<IngestLimits, never, Sharding.Sharding | Database> = Layer.effect(
    IngestLimits,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const client = yield* SourceEntity.client
  const clock = yield* Clock.Clock
  const run = Effect.runForkWith(yield* Effect.context<Database>())
  const kept = new Map<string, Kept>()
  const refusals = yield* countRefusals

  const send = (entry: Kept, asked: Asked | null): void => {
    const { door, lease, limiting } = entry
    if (asked === null) return
    const { id, teamId, version } = limiting
    const answer = client(id)
      .Lease({ team_id: teamId, version, door, ...asked })
      .pipe(Effect.timeout(patience), Effect.exit)
    run(
      Effect.flatMap(answer, (exit) => {
        const wasUnheard = lease.isUnheard
        if (Exit.isFailure(exit)) {
          lease.unanswered(asked, performance.now())
          metrics.leases.at("unanswered").add()
          const told =
            wasUnheard || !lease.isUnheard
              ? Effect.void
              : Effect.logWarning("a source's limit is not answered for: going on with the last lease", {
                  source_id: id
                })
          return Effect.andThen(told, again(entry))
        }
        const given = exit.value
        const isOld = given === null || given.version > entry.limiting.version
        if (isOld) entry.limiting.isOld()
        if (given === null) {
          // The limit was removed, and this entry will be dropped; if not, the next answer corrects it.
          lease.unanswered(asked, performance.now())
          return Effect.void
        }
        const { budget, lease_ms, reach, remaining_ms, share } = given
        lease.answered(asked, { budget, reach, share, remainingMs: remaining_ms, leaseMs: lease_ms }, performance.now())
        metrics.leases.at(budget === 0 ? "spent" : "leased").add()
        return wasUnheard ? Effect.logInfo("a source's limit is answered for again", { source_id: id }) : Effect.void
      })
    )
  }

  /** Reports accepted requests after a missing answer, even if no further request arrives, so that the next actor knows the count. */
  const again = (entry: Kept): Effect.Effect<void> =>
    Effect.andThen(
      Effect.sleep(againMs),
      Effect.sync(() => {
        if (entry.lease.isUnreported) send(entry, entry.lease.ask(performance.now()))
      })
    )

  const keep = (limiting: Limiting): Kept => {
    const lease = new IngestLease()
    const entry: Kept = {
      door: randomUUID(),
      lease,
      limiting,
      limit: {
        wait: () => {
          send(entry, lease.request(performance.now()))
          return lease.wait(performance.now())
        },
        take: () => lease.take(),
        giveBack: () => lease.giveBack(),
        refused: () => refusals.count(entry.limiting, clock.currentTimeMillisUnsafe())
      }
    }
    if (kept.size >= maxKept) kept.delete(kept.keys().next().value!)
    kept.set(limiting.id, entry)
    return entry
  }

  return IngestLimits.of({
    of: (limiting) => {
      const entry = kept.get(limiting.id) ?? keep(limiting)
      // Snapshots that were read at the same time arrive in any order.
      if (limiting.version >= entry.limiting.version) {
        entry.limiting = limiting
        entry.lease.limitTo(limiting.limit, limiting.period)
      }
      return entry.limit
    },
    drop: (sourceId) => kept.delete(sourceId)
  })
})

/** Collects refused requests and counts them in SQL at intervals. Counts that are not written yet are lost if the process dies. */
const countRefusals = Effect.gen(function* () {
  const database = yield* Effect.context<Database>()
  const waiting = new Map<string, { -readonly [Member in keyof Limited]: Limited[Member] }>()

  const write = Effect.suspend(() => {
    if (waiting.size === 0) return Effect.void
    const rows = [...waiting.values()]
    waiting.clear()
    return Effect.catch(countLimited(rows), (error) => {
      for (const { count, minute, source_id, team_id } of rows) add(source_id, team_id, minute, count)
      return Effect.logWarning("requests over a source's limit could not be counted yet", error)
    })
  }).pipe(Effect.provideContext(database))

  const add = (source_id: string, team_id: string, minute: number, count: number): void => {
    const name = `${source_id}/${minute}`
    const row = waiting.get(name)
    if (row !== undefined) row.count += count
    else waiting.set(name, { source_id, team_id, minute, count })
  }

  yield* Effect.addFinalizer(() => write)
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(countEvery), write)))

  return {
    count: ({ id, teamId }: Limiting, at: number): void => add(id, teamId, at - (at % 60_000), 1)
  }
})
