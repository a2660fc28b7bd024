import { fullYear, hourOf, nanoseconds, noParts, offsetOf, type Parts } from "./Parts.ts"

/** Dates in written forms: ISO 8601, RFC 2822 and numeric forms. Each pattern is limited in length and is tried once. */

const clock = String.raw`(\d{1,2}):?(\d\d)(?::?(\d\d)(?:[.,](\d{1,9}))?)?`
const isoTime = String.raw`(?:[Tt ]\s?(?:${clock}|(\d\d)))?\s?(Z|z|[+-]\d\d(?::?\d\d)?)?(?:\[([\w/+-]{1,64})\])?`
const isoDate = new RegExp(String.raw`^(\d{4})-(\d\d)(?:-(\d\d))?${isoTime}$`)
const isoBasic = new RegExp(String.raw`^(\d{4})(\d\d)(\d\d)(?=[Tt]|$)${isoTime}$`)
const isoWeek = new RegExp(String.raw`^(\d{4})-?[Ww](\d\d)(?:-?([1-7]))?${isoTime}$`)
const isoOrdinal = new RegExp(String.raw`^(\d{4})-(\d{3})${isoTime}$`)
const mail =
  /^(?:[A-Za-z]{3,9},?\s{1,4})?(\d{1,2})\s([A-Za-z]{3})[a-z]{0,6}\s(\d{4})\s(\d\d):(\d\d)(?::(\d\d))?(?:\s?([+-]\d{4}|[A-Z]{1,4}))?(?:\s\([^()]{0,40}\))?$/
const numeric = new RegExp(
  String.raw`^(\d{1,4})([/.-])(\d{1,2})\2(\d{1,4})(?:[T,]?\s?(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s?([AaPp]\.?[Mm]\.?)?\s?(Z|[+-]\d\d:?\d\d|[A-Za-z]{2,4})?)?$`
)

const months = "jan feb mar apr may jun jul aug sep oct nov dec".split(" ")

export interface Found {
  readonly parts: Parts
  readonly isAmbiguous: boolean
}

/** `invalid`: it looks like a date, but does not exist. */
type Written = Found | "invalid" | null

const isoClock = (
  groups: ReadonlyArray<string | undefined>
): Pick<Parts, "hour" | "minute" | "second" | "nanosecond" | "offset"> | null => {
  const [hour, minute, second, fraction, lone, zone, name] = groups
  const offset = zone === undefined ? null : offsetOf(zone)
  if (zone !== undefined && offset === null) return null
  return {
    hour: hour === undefined ? (lone === undefined ? null : Number(lone)) : Number(hour),
    minute: Number(minute ?? 0),
    second: Number(second ?? 0),
    nanosecond: nanoseconds(fraction),
    offset: offset ?? name ?? null
  }
}

const withClock = (date: Pick<Parts, "year" | "month" | "day">, groups: ReadonlyArray<string | undefined>): Written => {
  const time = isoClock(groups)
  return time === null ? "invalid" : { parts: { ...noParts, ...date, ...time }, isAmbiguous: false }
}

const iso = (text: string): Written => {
  const date = isoDate.exec(text) ?? isoBasic.exec(text)
  if (date !== null) {
    const [, year, month, day, ...time] = date
    return withClock({ year: Number(year), month: Number(month), day: Number(day ?? 1) }, time)
  }
  const week = isoWeek.exec(text)
  if (week !== null) {
    const [, year, number, day = "1", ...time] = week
    // Week 1 is the week that contains 4 January.
    const fourth = new Temporal.PlainDate(Number(year), 1, 4)
    const found = fourth.add({ days: (Number(number) - 1) * 7 + Number(day) - fourth.dayOfWeek })
    if (Number(number) < 1 || found.yearOfWeek !== Number(year)) return "invalid"
    return withClock({ year: found.year, month: found.month, day: found.day }, time)
  }
  const ordinal = isoOrdinal.exec(text)
  if (ordinal === null) return null
  const [, year, day, ...time] = ordinal
  const found = new Temporal.PlainDate(Number(year), 1, 1).add({ days: Number(day) - 1 })
  if (Number(day) < 1 || found.year !== Number(year)) return "invalid"
  return withClock({ year: found.year, month: found.month, day: found.day }, time)
}

const ofMail = (text: string): Written => {
  const found = mail.exec(text)
  if (found === null) return null
  const [, day, name = "", year, hour, minute, second, zone] = found
  const month = months.indexOf(name.toLowerCase())
  const offset = zone === undefined ? null : offsetOf(zone)
  if (month < 0 || (zone !== undefined && offset === null)) return null
  const parts = {
    year: Number(year),
    month: month + 1,
    day: Number(day),
    hour: Number(hour),
    minute: Number(minute),
    second: Number(second ?? 0),
    offset
  }
  return { parts: { ...noParts, ...parts }, isAmbiguous: false }
}

const ofNumbers = (text: string): Written => {
  const found = numeric.exec(text)
  if (found === null) return null
  const [, first = "", , second = "", third = "", hour, minute, seconds, fraction, period, zone] = found
  const [a, b] = [Number(first), Number(second)]
  const yearFirst = first.length > 2
  if (yearFirst ? first.length !== 4 || third.length > 2 : third.length !== 4 && third.length !== 2) return "invalid"
  const dayFirst = !yearFirst && a > 12
  const offset = zone === undefined ? null : offsetOf(zone)
  const clocked = hour === undefined ? null : hourOf(Number(hour), period)
  if ((zone !== undefined && offset === null) || (hour !== undefined && clocked === null)) return "invalid"
  return {
    parts: {
      ...noParts,
      year: yearFirst ? a : fullYear(third),
      month: yearFirst ? b : dayFirst ? b : a,
      day: yearFirst ? Number(third) : dayFirst ? a : b,
      hour: clocked,
      minute: Number(minute ?? 0),
      second: Number(seconds ?? 0),
      nanosecond: nanoseconds(fraction),
      offset
    },
    isAmbiguous: !yearFirst && a <= 12 && b <= 12 && a !== b
  }
}

/** `12/25`: month and day in the anchor's year. */
const ofTwo = (text: string): Written => {
  const found = /^(\d{1,2})\/(\d{1,2})$/.exec(text)
  if (found === null) return null
  const [a, b] = [Number(found[1]), Number(found[2])]
  if (a < 1 || b < 1 || (a > 12 && b > 12)) return "invalid"
  const [month, day] = a > 12 ? [b, a] : [a, b]
  return { parts: { ...noParts, month, day }, isAmbiguous: a <= 12 && b <= 12 && a !== b }
}

export const written = (text: string): Written => iso(text) ?? ofMail(text) ?? ofNumbers(text) ?? ofTwo(text)
