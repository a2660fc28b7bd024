import { randomUUID } from "node:crypto"
import { Clock, Effect, Exit, Schedule, Scope } from "effect"
import type { SqlError } from "effect/sql"
import type { Pacer } from "@tidegate/coordination/limits/Pacer"
import type { Database } from "@tidegate/storage/Database"
import { noteTurns, readTurns } from "@tidegate/storage/delivery/RatePermits"

/** What is noted is used within this time (ms), or not at all; of long periods within a part of them. */
const minLifeMs = 5_000
const partOfPeriod = 1 / 32
const nobody = "-"

/** So many turns that were noted, by whom, and until when they may be used (Unix ms). */
interface Noted {
  readonly at: number
  readonly until: number
  readonly count: number
  readonly by: string
}

const textOf = (noted: ReadonlyArray<Noted>): string =>
  noted.map(({ at, by, count, until }) => `${at} ${until} ${count} ${by}`).join("\n")

const notedIn = (text: string | null): ReadonlyArray<Noted> =>
  (text ?? "").split("\n").flatMap((line) => {
    const [at, until, count, by = ""] = line.split(" ")
    const noted = { at: Number(at), until: Number(until), count: Number(count), by }
    return line !== "" && [noted.at, noted.until, noted.count].every(Number.isSafeInteger) ? [noted] : []
  })

/** Starts, oldest first. What may still be used counts as if it was used now. */
const startsOf = (noted: ReadonlyArray<Noted>, now: number): ReadonlyArray<readonly [at: number, count: number]> =>
  noted.map(({ count, until }) => [Math.min(until, now), count] as const).sort(([a], [b]) => a - b)

/** The turns of one rate that steps take. */
export interface Turns {
  /** Whether one may be used now. If not, more are noted, and `changed` is called when there are some. */
  readonly ready: () => boolean
  /** Uses one. */
  readonly use: () => void
  /** Gives back what is noted and was not used. None can be used any more. */
  readonly close: Effect.Effect<void>
}

interface Rate {
  /** Of what has the rate, and whose that is. */
  readonly id: string
  readonly team_id: string
  readonly pacer: Pacer
  readonly changed: () => void
}

/**
 * What steps use of a rate, which nothing else tells. It is in SQL before it is used, some at once, so that whoever owns the rate next knows
 * of it: what may have been used counts, at the last moment at which it may have been. Fails closed: while nothing can be noted no turn is
 * used. Who has been overtaken can note nothing before it has read what the other one has.
 *
 * Answers with what owners before have used, for the pacer to remember.
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

  /** As it is in SQL. */
  let text: string | null = yield* readTurns(team_id, id)
  let others = notedIn(text)
  /** Those of this owner as they were used, and those that are being used. */
  let own: ReadonlyArray<Noted> = []
  let open: { readonly noted: Noted; left: number; usedAt: number } | null = null
  let isNoting = false
  let isClosed = false
  let isTold = false

  /** Of the last period, and what was noted in one life as one: however often owners change, there are not many. */
  const kept = (noted: ReadonlyArray<Noted>): ReadonlyArray<Noted> => {
    const few: Array<Noted> = []
    for (const one of noted) {
      const last = few.at(-1)
      if (one.until <= now() - period) continue
      if (last === undefined || one.at - last.at >= lifeMs) few.push(one)
      else {
        // Of several owners it is nobody's: what counts it once more errs on the side of the target.
        const whose = last.by === one.by ? one.by : nobody
        const until = Math.max(last.until, one.until)
        few.splice(-1, 1, { at: last.at, until, count: last.count + one.count, by: whose })
      }
    }
    return few
  }

  /** What is being used, as far as it was. */
  const used = (): ReadonlyArray<Noted> =>
    open === null || open.left === open.noted.count
      ? []
      : [{ ...open.noted, count: open.noted.count - open.left, until: open.usedAt }]

  /** Writes what was used, and what may be beside; false: somebody else has written meanwhile. */
  const write = Effect.fnUntraced(function* (
    next: ReadonlyArray<Noted>
  ): Effect.fn.Return<boolean, SqlError.SqlError, Database> {
    others = kept(others)
    own = kept([...own, ...used()])
    open = null
    const after = textOf([...others, ...own, ...next])
    const until = new Date(now() + lifeMs + 2 * period)
    if (yield* noteTurns({ team_id, id, before: text, next: after, until })) {
      text = after
      return true
    }
    const known = new Set((text ?? "").split("\n"))
    text = yield* readTurns(team_id, id)
    // What could have been noted by this owner without its knowing was not used.
    others = notedIn(text).filter((one) => one.by !== by)
    pacer.remember(
      startsOf(
        others.filter((one) => !known.has(textOf([one]))),
        now()
      )
    )
    return false
  })

  const note = Effect.gen(function* () {
    // Twice as many as were used up in time: a rate that is used rarely has few that are not.
    const more = open?.left === 0 && now() < open.noted.until ? open.noted.count * 2 : 1
    const count = Math.min(more, maxAtOnce)
    for (;;) {
      const at = now()
      const noted = { at, until: at + lifeMs, count, by }
      if (!(yield* write([noted]))) continue
      isTold = false
      open = { noted, left: count, usedAt: at }
      return
    }
  }).pipe(
    Effect.tapError((error) => {
      if (isTold) return Effect.void
      isTold = true
      return Effect.logWarning("what steps use of a rate cannot be noted: they wait", { id, error })
    }),
    Effect.retry(Schedule.spaced("500 millis")),
    Effect.ignore,
    Effect.andThen(
      Effect.sync(() => {
        isNoting = false
        changed()
      })
    )
  )

  const turns: Turns = {
    ready: () => {
      if (isClosed) return false
      if (open !== null && open.left > 0 && now() < open.noted.until) return true
      if (!isNoting) {
        isNoting = true
        fork(Effect.forkIn(note, scope))
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
  return { turns, starts: startsOf(kept(others), now()) }
})
