import { Cron, DateTime, Option, Result } from "effect"

/**
 * When a schedule begins runs: a cron expression in a time zone. Pure: the caller provides the time.
 *
 * - A local time that a change to summer time leaves out occurs as much later as the clock is moved: 02:30 becomes 03:30.
 * - A local time that occurs twice when summer time ends is one occurrence, the first. With `*` as its hour an expression means
 *   a distance of time, and occurs both times: otherwise an hour would be left out.
 */

/** What becomes of occurrences that nobody carried out in time, because no process ran or the workflow was paused. */
export type Missed = "skip" | "once" | "all"

export interface Schedule {
  /** The first occurrence after this time (Unix ms). Null: there is none within some years. */
  readonly after: (ms: number) => number | null
}

/** The longest expression, in characters. */
export const longestCron = 100
/** With `all`, this many of the latest missed occurrences begin runs. */
export const maxMissed = 100
/** An occurrence that is carried out this much later (ms) has been missed. */
export const inTimeMs = 60_000

const minute = 60_000
/** No change to or from summer time moves the clock by more than this (ms). */
const longestMove = 3 * 60 * minute

const nextMinute = (ms: number): number => (Math.floor(ms / minute) + 1) * minute

/** Compiles an expression of five fields. Fails with a message for whoever wrote it. */
export const compileSchedule = (cron: string, timezone: string): Result.Result<Schedule, string> => {
  if (cron.length > longestCron) return Result.fail(`must be at most ${longestCron} characters`)
  const fields = cron.trim().split(/\s+/u)
  if (fields.length !== 5) return Result.fail("must have five fields: minute, hour, day of month, month, day of week")
  const zone = DateTime.zoneMakeNamed(timezone)
  if (Option.isNone(zone)) return Result.fail("is in an unknown time zone")
  const parsed = Cron.parse(fields.join(" "), zone.value)
  if (Result.isFailure(parsed)) return Result.fail("must be a cron expression, like 0 9 * * 1-5")
  const compiled = parsed.success
  const occursTwice = fields[1]!.startsWith("*")
  const offsetAt = (ms: number): number => DateTime.zonedOffset(DateTime.makeZonedUnsafe(ms, { timeZone: zone.value }))

  /** The first occurrence after `ms` in a time that the clock repeats, if it is before `until`. */
  const repeated = (ms: number, until: number): number | null => {
    const end = Math.min(until, ms + longestMove)
    if (!occursTwice || offsetAt(ms - longestMove) <= offsetAt(end)) return null
    for (let at = nextMinute(ms); at < end; at += minute) {
      if (Cron.match(compiled, at)) return at
    }
    return null
  }

  /**
   * The first occurrence after `ms`, if it is before `until`, of a local time that the clock has just left out. The library gives only the first
   * such time.
   */
  const leftOut = (ms: number, until: number): number | null => {
    const [before, offset] = [offsetAt(ms - longestMove), offsetAt(ms)]
    if (offset <= before) return null
    let moved = nextMinute(ms) - minute
    while (offsetAt(moved - minute) === offset) moved -= minute
    const end = Math.min(until, moved + offset - before)
    // The same expression for local times that are written as if they were UTC.
    const local = Result.getOrThrow(Cron.parse(fields.join(" "), "UTC"))
    for (let at = nextMinute(ms); at < end; at += minute) {
      if (Cron.match(local, at + before)) return at
    }
    return null
  }

  const after = (ms: number): number | null => {
    const next = Result.try(() => Cron.next(compiled, ms).getTime())
    if (Result.isFailure(next)) return null
    return repeated(ms, next.success) ?? leftOut(ms, next.success) ?? next.success
  }
  return Result.succeed({ after })
}

/** The occurrences that begin runs, and the next one; null: there is none. */
export interface Ticks {
  readonly begin: ReadonlyArray<number>
  readonly next: number | null
}

/** What is due of a schedule at `now`, when its next occurrence was `due` (Unix ms). */
export const ticksOf = (schedule: Schedule, missed: Missed, due: number, now: number): Ticks => {
  if (due > now) return { begin: [], next: due }
  const most = missed === "all" ? maxMissed : 1
  // Only the latest are wanted: the time in which they are looked for is doubled until it has enough, or reaches back to the
  // first. So a schedule that nobody looked at for a year costs some hundred steps.
  for (let span = most * minute; ; span *= 2) {
    const from = Math.max(due, now - span)
    const past = from === due ? [due] : []
    let at = schedule.after(from)
    for (; at !== null && at <= now; at = schedule.after(at)) past.push(at)
    if (past.length < most && from > due) continue
    const latest = past.slice(-most)
    return { begin: missed === "skip" ? latest.filter((one) => now - one <= inTimeMs) : latest, next: at }
  }
}
