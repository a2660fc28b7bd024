import { randomUUID } from "node:crypto"
import { Clock, Effect, Exit, Schedule, Scope } from "effect"
import type { SqlError } from "effect/sql"
import type { Pacer } from "@tidegate/coordination/limits/Pacer"
import type { Database } from "@tidegate/storage/Database"
import { readPermits, storePermits } from "@tidegate/storage/delivery/RatePermits"

/** Stored permits are valid for this time (ms); with long periods, for a part of the period. */
const minLifeMs = 5_000
const partOfPeriod = 1 / 32
const nobody = "-"

/** A number of stored permits, their owner, and until when they may be used (Unix ms). */
interface StoredPermits {
  readonly at: number
  readonly until: number
  readonly count: number
  readonly by: string
}

const textOf = (stored: ReadonlyArray<StoredPermits>): string =>
  stored.map(({ at, by, count, until }) => `${at} ${until} ${count} ${by}`).join("\n")

const permitsIn = (text: string | null): ReadonlyArray<StoredPermits> =>
  (text ?? "").split("\n").flatMap((line) => {
    const [at, until, count, by = ""] = line.split(" ")
    const stored = { at: Number(at), until: Number(until), count: Number(count), by }
    return line !== "" && [stored.at, stored.until, stored.count].every(Number.isSafeInteger) ? [stored] : []
  })

/** Starts, oldest first. A permit that may still be used counts as if it were used now. */
const startsOf = (
  stored: ReadonlyArray<StoredPermits>,
  now: number
): ReadonlyArray<readonly [at: number, count: number]> =>
  stored.map(({ count, until }) => [Math.min(until, now), count] as const).sort(([a], [b]) => a - b)

/** The permits of one rate that workflow steps use. */
export interface StepPermits {
  /** Whether a permit may be used now. If not, more are stored, and `changed` is called when there are some. */
  readonly ready: () => boolean
  /** Uses one permit. */
  readonly use: () => void
  /** Returns the stored permits that were not used. None can be used afterwards. */
  readonly close: Effect.Effect<void>
}

interface Rate {
  /** The id of the owner of the rate, and its team. */
  readonly id: string
  readonly team_id: string
  readonly pacer: Pacer
  readonly changed: () => void
}

/**
 * The permits of a rate that workflow steps use; no event shows these starts. Permits are stored before they are used, several at
 * once, so that the next owner of the rate knows about them: a permit that may have been used counts, at the last moment at which
 * it may have been. Fails closed: while permits cannot be stored, none is used. An owner that has been replaced can store nothing
 * before it has read what the new owner has stored.
 *
 * The permits of earlier owners are passed to the pacer, which counts them.
 */
export const makeRatePermits = Effect.fnUntraced(function* ({ changed, id, pacer, team_id }: Rate) {
  const clock = yield* Clock.Clock
  const services = yield* Effect.context<Database>()
  const scope = yield* Scope.make()
  const fork = Effect.runForkWith(services)
  const now = (): number => Math.floor(clock.currentTimeMillisUnsafe())
  const by = randomUUID().slice(0, 8)
  const { limit, period } = pacer
  const lifeMs = Math.max(minLifeMs, period * partOfPeriod)
  const maxAtOnce = Math.max(1, Math.floor((limit * lifeMs) / period))

  /** The value that SQL has. */
  let text: string | null = yield* readPermits(team_id, id)
  let others = permitsIn(text)
  /** Permits of this owner that were used, and those that are being used. */
  let own: ReadonlyArray<StoredPermits> = []
  let open: { readonly stored: StoredPermits; left: number; usedAt: number } | null = null
  let isStoring = false
  let isClosed = false
  let isLogged = false

  /**
   * Drops permits older than the period, and merges those of one lifetime, so that the list stays short however often owners
   * change.
   */
  const kept = (stored: ReadonlyArray<StoredPermits>): ReadonlyArray<StoredPermits> => {
    const few: Array<StoredPermits> = []
    for (const one of stored) {
      const last = few.at(-1)
      if (one.until <= now() - period) continue
      if (last === undefined || one.at - last.at >= lifeMs) few.push(one)
      else {
        // Merged permits of several owners belong to none of them. Counting them once more only makes the rate lower.
        const whose = last.by === one.by ? one.by : nobody
        const until = Math.max(last.until, one.until)
        few.splice(-1, 1, { at: last.at, until, count: last.count + one.count, by: whose })
      }
    }
    return few
  }

  /** Of the current permits, those that were used. */
  const used = (): ReadonlyArray<StoredPermits> =>
    open === null || open.left === open.stored.count
      ? []
      : [{ ...open.stored, count: open.stored.count - open.left, until: open.usedAt }]

  /** Stores the used permits and the next ones; false: another owner has written meanwhile. */
  const write = Effect.fnUntraced(function* (
    next: ReadonlyArray<StoredPermits>
  ): Effect.fn.Return<boolean, SqlError.SqlError, Database> {
    others = kept(others)
    own = kept([...own, ...used()])
    open = null
    const after = textOf([...others, ...own, ...next])
    const until = new Date(now() + lifeMs + 2 * period)
    if (yield* storePermits({ team_id, id, before: text, next: after, until })) {
      text = after
      return true
    }
    const known = new Set((text ?? "").split("\n"))
    text = yield* readPermits(team_id, id)
    // Permits that this owner stored without learning of it were not used.
    others = permitsIn(text).filter((one) => one.by !== by)
    pacer.remember(
      startsOf(
        others.filter((one) => !known.has(textOf([one]))),
        now()
      )
    )
    return false
  })

  const store = Effect.gen(function* () {
    // Twice as many as last time if those were used up within their lifetime: so a rate that is rarely used has few unused ones.
    const more = open?.left === 0 && now() < open.stored.until ? open.stored.count * 2 : 1
    const count = Math.min(more, maxAtOnce)
    for (;;) {
      const at = now()
      const stored = { at, until: at + lifeMs, count, by }
      if (!(yield* write([stored]))) continue
      isLogged = false
      open = { stored, left: count, usedAt: at }
      return
    }
  }).pipe(
    Effect.tapError((error) => {
      if (isLogged) return Effect.void
      isLogged = true
      return Effect.logWarning("rate permits for steps cannot be stored: the steps wait", { id, error })
    }),
    Effect.retry(Schedule.spaced("500 millis")),
    Effect.ignore,
    Effect.andThen(
      Effect.sync(() => {
        isStoring = false
        changed()
      })
    )
  )

  const permits: StepPermits = {
    ready: () => {
      if (isClosed) return false
      if (open !== null && open.left > 0 && now() < open.stored.until) return true
      if (!isStoring) {
        isStoring = true
        fork(Effect.forkIn(store, scope))
      }
      return false
    },
    use: () => {
      if (open === null) return
      open.left--
      open.usedAt = now()
    },
    close: Effect.gen(function* () {
      isClosed = true
      yield* Scope.close(scope, Exit.void)
      if (open !== null && open.left > 0) yield* Effect.ignore(Effect.timeout(write([]), "1 second"))
    }).pipe(Effect.provideContext(services))
  }
  return { permits, starts: startsOf(kept(others), now()) }
})
