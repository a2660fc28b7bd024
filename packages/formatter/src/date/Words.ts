import { chrono } from "../engine/Libraries.ts"
import type { Call } from "../engine/Operation.ts"
import { noParts, type Parts } from "./Parts.ts"

/** The hour that the library takes where nothing is said. */
const assumed = 12

/**
 * A date that stands in a sentence, relative to the anchor in the zone: the library knows offsets alone, so it is asked what the clocks show, and the zone is
 * ours to add.
 */
export const inWords = (text: string, anchor: Temporal.ZonedDateTime, call: Call): Parts | null => {
  call.spend(100 + text.length * 16)
  const reference = { instant: new Date(anchor.epochMilliseconds), timezone: anchor.offsetNanoseconds / 60e9 }
  const start = chrono().casual.parse(text, reference, { forwardDate: false })[0]?.start
  if (start === undefined) return null
  const hour = start.get("hour")
  const isTimed = start.isCertain("hour") || hour !== assumed
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
