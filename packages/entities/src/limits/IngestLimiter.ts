import { Clock, Effect, Semaphore } from "effect"
import type { SqlError } from "effect/sql"
import { IngestBudget, type Lease, type Report } from "@tidegate/coordination/limits/IngestBudget"
import { ratePeriodMs } from "@tidegate/model/Destination"
import type { Database } from "@tidegate/storage/Database"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import {
  type IngestSettings,
  noteLeased,
  readIngestSettings,
  takePeriod
} from "@tidegate/storage/delivery/SourcePeriods"

interface Asked extends Report {
  readonly team_id: string
  /** The version of the source that the ingress process uses. */
  readonly version: number
}

interface Answer extends Lease {
  readonly version: number
  readonly remaining_ms: number
  readonly lease_ms: number
}

/** The state of a limit. Members about the period are null while none is under way. */
export interface LimitStatus {
  readonly limit: number | null
  readonly period: IngestSettings["period"] | null
  readonly current: { readonly leased: number; readonly processes: number; readonly remainingMs: number } | null
}

const monotonic = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos) / 1e6)

/**
 * How much is stored beyond what is leased, so that not every lease needs a statement. When the process dies, this part of its
 * period is lost.
 */
const aheadOf = (limit: number, period: IngestSettings["period"]): number =>
  period === "second" ? limit : Math.ceil(limit / 32)

const overtaken = fail("QUEUE_UNAVAILABLE", "the source has just changed its owner")

/**
 * Gives the limit of one source to its ingress processes in leases. A lease is stored before an ingress process gets it, so the
 * next owner of the source continues from SQL. An owner that has been replaced cannot store any more.
 */
export const makeIngestLimiter = Effect.fnUntraced(function* (source_id: string) {
  const database = yield* Effect.context<Database>()
  const oneAtATime = Semaphore.withPermit(Semaphore.makeUnsafe(1))
  let settings: IngestSettings | null = null
  let budget: IngestBudget | null = null
  /** The revision (fence) of the period, and how much SQL has as leased. */
  let revision = 0n
  let stored = 0

  const settingsAt = Effect.fnUntraced(function* (version: number) {
    if (settings === null || settings.version < version) settings = yield* readIngestSettings(source_id)
    return settings
  })

  const budgetOf = (limit: number, period: IngestSettings["period"]): IngestBudget => {
    const periodMs = ratePeriodMs[period]
    if (budget?.periodMs !== periodMs) budget = new IngestBudget(limit, periodMs)
    budget.limit = limit
    return budget
  }

  const begin = Effect.fnUntraced(function* ({ period, team_id }: IngestSettings, to: IngestBudget) {
    const ahead = aheadOf(to.limit, period)
    const taken = yield* takePeriod({ source_id, team_id, periodMs: to.periodMs, ahead })
    revision = taken.revision
    stored = taken.leased
    const now = yield* monotonic
    if (taken.isNew) to.begin(now + taken.remainingMs)
    else to.takeOver(now + taken.remainingMs, taken.leased, now)
  })

  const store = Effect.fnUntraced(function* (
    { period }: IngestSettings,
    limit: number,
    leased: number
  ): Effect.fn.Return<void, GatewayError | SqlError.SqlError, Database> {
    if (leased <= stored) return
    const next = Math.max(leased, Math.min(limit, leased + aheadOf(limit, period)))
    if (!(yield* noteLeased(source_id, revision, next))) {
      // Another process owns this period: everything that this one knows about it is outdated.
      budget = null
      yield* overtaken
    }
    stored = next
  })

  /**
   * Counts one request that does not come through an ingress process. Returns 0, or the milliseconds until it may be accepted.
   */
  const take = Effect.fnUntraced(function* (
    team_id: string
  ): Effect.fn.Return<number, GatewayError | SqlError.SqlError, Database> {
    const known = yield* settingsAt(0)
    if (known === null || known.limit === null || known.team_id !== team_id) return 0
    const from = budgetOf(known.limit, known.period)
    if (from.remaining(yield* monotonic) <= 0) yield* begin(known, from)
    const now = yield* monotonic
    if (!from.take(now)) return Math.max(1, Math.ceil(from.remaining(now)))
    yield* store(known, known.limit, from.leased(now))
    return 0
  })

  const lease = Effect.fnUntraced(function* (
    asked: Asked
  ): Effect.fn.Return<Answer | null, GatewayError | SqlError.SqlError, Database> {
    const known = yield* settingsAt(asked.version)
    if (known === null || known.limit === null || known.team_id !== asked.team_id) return null
    const { limit, period, version } = known
    const from = budgetOf(limit, period)
    if (from.remaining(yield* monotonic) <= 0) yield* begin(known, from)
    const now = yield* monotonic
    const given = from.lease(asked, now)
    yield* store(known, limit, from.leased(now))
    return { ...given, version, remaining_ms: from.remaining(yield* monotonic), lease_ms: from.leaseMs }
  })

  const status = Effect.gen(function* () {
    const known = yield* settingsAt(0)
    if (known?.limit == null) return { limit: null, period: null, current: null }
    const { limit, period } = known
    const now = yield* monotonic
    const remainingMs = budget?.remaining(now) ?? 0
    if (budget === null || remainingMs <= 0) return { limit, period, current: null }
    return { limit, period, current: { leased: budget.leased(now), processes: budget.reporters(now), remainingMs } }
  })

  /** What is stored but not leased is free again for the next owner. */
  const leave = Effect.gen(function* () {
    const leased = budget?.leased(yield* monotonic) ?? stored
    if (leased < stored) yield* noteLeased(source_id, revision, leased)
  })
  yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(Effect.provideContext(leave, database), "1 second")))

  return {
    lease: (asked: Asked) => oneAtATime(lease(asked)),
    take: (team_id: string) => oneAtATime(take(team_id)),
    status: oneAtATime(status) as Effect.Effect<LimitStatus, SqlError.SqlError, Database>,
    /** The source has changed: its settings are read again. */
    changed: (): void => {
      settings = null
    }
  }
})
