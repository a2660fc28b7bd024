import { chrono } from "../engine/Libraries.ts"
import type { Call } from "../engine/Operation.ts"
import { noParts, type Parts } from "./Parts.ts"

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

/**
 * A date that stands in a sentence, relative to the anchor in the zone: the library knows offsets alone, so it is asked what the clocks show, and the zone is
 * ours to add.
 */
export const inWords = (text: string, anchor: Temporal.ZonedDateTime, call: Call): Parts | null => {
  call.spend(100 + text.length * 16)
  const reference = { instant: new Date(anchor.epochMilliseconds), timezone: anchor.offsetNanoseconds / 60e9 }
  const { casual } = chrono()
  const start = withoutClocks(() => casual.parse(text, reference, { forwardDate: false })[0]?.start)
  if (start === undefined) return null
  const hour = start.get("hour")
  const isTimed = start.isCertain("hour") || [...start.tags()].some((tag) => timesOfDay.has(tag))
  return {
    ...noParts,
    year: start.get("year"),
    month: start.get("month"),
    day: start.get("day"),
    hour: isTimed ? hour : null,
    minute: isTimed ? (start.get("minute") ?? 0) : 0,
    second: isTimed ? (start.get("second") ?? 0) : 0,
    nanosecond: isTimed ? (start.get("millisecond") ?? 0) * 1_000_000 : 0,
    offset: start.isCertain("timezoneOffset") ? start.get("timezoneOffset") : null
  }
}
