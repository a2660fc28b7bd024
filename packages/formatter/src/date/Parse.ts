import { Fault, previewOf, tooMuch } from "../engine/Fault.ts"
import * as Characters from "@tidegate/model/Characters"
import type { Call } from "../engine/Operation.ts"
import { noParts, type Parts } from "./Parts.ts"
import { strictly } from "./Strict.ts"
import { inWords } from "./Words.ts"
import { written } from "./Written.ts"
import { checkZone, inRange, outOfRange, resolved, zonedAt } from "./Zone.ts"

/** The input field of a date, and how to read it. */
export interface Origin {
  readonly field: string
  /** The format; empty: it is detected. */
  readonly format: string
  /** The default zone. */
  readonly zone: string
  readonly locale: string
}

export const maxInput = 512

const unparseable = (
  value: unknown,
  { field, format }: Origin,
  hint = format === "" ? "say how it is written with from_format" : `it is not written as ${format}`
): Fault =>
  new Fault("FORMATTER_DATE_UNPARSEABLE", "the value is not a recognisable date", {
    field,
    value_preview: previewOf(value),
    hint
  })

/** Seconds since 1970. Numbers too large for that are milliseconds. */
const ofNumber = (value: number): Parts => ({
  ...noParts,
  instant: Math.abs(value) >= 2 ** 32 - 1 ? value : value * 1000
})

const isDayInDigits = /^(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])$/

const ambiguous = "day and month could be either; the month was taken to come first"

const partsOf = (value: string | number, origin: Origin, call: Call): Parts => {
  if (origin.format !== "") {
    const parts = strictly(String(value), origin.format, origin.locale)
    if (parts === null) throw unparseable(value, origin)
    return parts
  }
  if (typeof value === "number") return ofNumber(value)
  const text = value.trim()
  // Eight digits that form a present-day date (`20260131`) are a date: as seconds all of them would be in the summer of 1970.
  if (/^[+-]?\d+(?:\.\d+)?$/.test(text) && !isDayInDigits.test(text)) return ofNumber(Number(text))
  const found = written(text)
  if (found === "invalid") throw unparseable(value, origin)
  if (found !== null) {
    if (found.isAmbiguous) call.warn("DATE_AMBIGUOUS", ambiguous, origin.field)
    return found.parts
  }
  const said = inWords(text, zonedAt(call.anchor, origin.zone, origin.field), call)
  if (said === null) throw unparseable(value, origin)
  if (said === "part")
    throw unparseable(value, origin, "only a part of it is understood: write one date, or say from_format")
  if (said.isAmbiguous) call.warn("DATE_AMBIGUOUS", ambiguous, origin.field)
  call.warn("DATE_FUZZY", "the date was found in words", origin.field)
  return said.parts
}

/** The time of the date, in the origin's zone. */
export const parseDate = (value: string | number, origin: Origin, call: Call): Temporal.ZonedDateTime => {
  const { field, zone } = origin
  if (typeof value === "string" && !Characters.isUpTo(value, maxInput))
    throw tooMuch(`${field} is too long for a date`, maxInput, Characters.count(value), field)
  const parts = partsOf(value, origin, call)
  if (parts.instant !== null) return zonedAt(parts.instant, zone, field)
  if (parts.hour === null) call.warn("DATE_TIME_ASSUMED", "the date has no time; midnight was taken", field)
  const today = zonedAt(call.anchor, zone, field)
  const local = localOf(parts, today)
  if (local === null) throw unparseable(value, origin)
  if (local.year < 1 || local.year > 9999) throw outOfRange(field)
  if (typeof parts.offset === "string")
    return resolved(local, checkZone(parts.offset, field), field, call).withTimeZone(zone)
  if (parts.offset === null) return resolved(local, zone, field, call)
  return inRange(local.toZonedDateTime("UTC").subtract({ minutes: parts.offset }).withTimeZone(zone), field)
}

/** The local date and time. Missing larger parts are today's, missing smaller ones are the first. Null if the date or time does not exist. */
const localOf = (
  { day, hour, minute, month, nanosecond, second, year }: Parts,
  today: Temporal.ZonedDateTime
): Temporal.PlainDateTime | null => {
  try {
    // The end of a day, in the form of ISO 8601.
    const isEnd = hour === 24 && minute === 0 && second === 0 && nanosecond === 0
    const local = Temporal.PlainDateTime.from(
      {
        year: year ?? today.year,
        month: month ?? (year === null ? today.month : 1),
        day: day ?? (year === null && month === null ? today.day : 1),
        hour: isEnd ? 0 : (hour ?? 0),
        minute,
        // A leap second becomes the second before it.
        second: second === 60 ? 59 : second,
        millisecond: Math.floor(nanosecond / 1e6),
        microsecond: Math.floor(nanosecond / 1e3) % 1000,
        nanosecond: nanosecond % 1000
      },
      { overflow: "reject" }
    )
    return isEnd ? local.add({ days: 1 }) : local
  } catch {
    return null
  }
}
