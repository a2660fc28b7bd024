import { chrono } from "../engine/Libraries.ts"
import type { Call } from "../engine/Operation.ts"
import { businessDays } from "./Expression.ts"
import { noParts, type Parts } from "./Parts.ts"
import { isPartOnly, rewritten } from "./Rewriting.ts"

/** Words that say a time of day, which the library marks: it does not count their hour as said. */
const timesOfDay: ReadonlySet<string> = new Set(
  ["morning", "noon", "afternoon", "evening", "tonight", "midnight"].map((name) => `casualReference/${name}`)
)

/**
 * The library counts with the clocks of the process, on which a day of two or of no such hour would show: while it does, they are those of UTC. Nothing else
 * runs meanwhile.
 */
const withoutClocks = <A>(read: () => A): A => {
  const { TZ } = process.env
  if (TZ === "UTC") return read()
  process.env["TZ"] = "UTC"
  try {
    return read()
  } finally {
    if (TZ === undefined) delete process.env["TZ"]
    else process.env["TZ"] = TZ
  }
}

/** Microseconds that the library takes: of a short text some 100, and of a long one that repeats itself up to 16 a character. */
const costOf = (length: number): number => (length <= 64 ? 50 + length : 100 + length * 16)

/**
 * A date that stands in a sentence, relative to the anchor in the zone: the library knows offsets alone, so it is asked what the clocks show, and the zone is
 * ours to add. `part`: there is more of a date in the text than is understood, or there are several. Fails closed, because what is understood is
 * another date than what is meant.
 */
export const inWords = (text: string, anchor: Temporal.ZonedDateTime, call: Call): Parts | "part" | null => {
  call.spend(costOf(text.length))
  const plain = rewritten(text.replaceAll(/\s+/g, " ").trim(), anchor)
  if (plain === null) return "part"
  const reference = { instant: new Date(anchor.epochMilliseconds), timezone: anchor.offsetNanoseconds / 60e9 }
  const { casual } = chrono()
  const [found, ...others] = withoutClocks(() => casual.parse(plain.text, reference, { forwardDate: false }))
  if (found === undefined) return null
  const { end, index, start, text: words } = found
  const isTimed = start.isCertain("hour") || [...start.tags()].some((tag) => timesOfDay.has(tag))
  const isWhole = others.length === 0 && (end === null || end === undefined)
  if (!isWhole || isPartOnly(plain.text.slice(0, index), words, plain.text.slice(index + words.length), isTimed)) {
    return "part"
  }
  const hour = start.get("hour")
  const zone = start.isCertain("timezoneOffset") ? start.get("timezoneOffset") : null
  if (plain.zone !== null && (zone !== null || !isTimed)) return "part"
  // A day of a month without a year is one of the anchor's year, as in dates that are written in numbers.
  const year = start.isCertain("month") && !start.isCertain("year") ? anchor.year : start.get("year")
  const shifted = shiftedBy(plain.businessDays, year, start.get("month"), start.get("day"))
  if (shifted === null) return "part"
  return {
    ...noParts,
    ...shifted,
    hour: isTimed ? hour : null,
    minute: isTimed ? (start.get("minute") ?? 0) : 0,
    second: isTimed ? (start.get("second") ?? 0) : 0,
    nanosecond: isTimed ? (start.get("millisecond") ?? 0) * 1_000_000 : 0,
    offset: plain.zone ?? zone
  }
}

type Day = Pick<Parts, "year" | "month" | "day">

/** The day so many business days from another; null: there is no such day. */
const shiftedBy = (count: number, year: number | null, month: number | null, day: number | null): Day | null => {
  if (count === 0 || year === null || month === null || day === null) return { year, month, day }
  try {
    const date = Temporal.PlainDateTime.from({ year, month, day }, { overflow: "reject" })
    const moved = businessDays(date, count)
    return { year: moved.year, month: moved.month, day: moved.day }
  } catch {
    return null
  }
}
