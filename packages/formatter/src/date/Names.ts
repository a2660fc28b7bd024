import { memo } from "../engine/Memo.ts"

export interface Names {
  readonly months: ReadonlyArray<string>
  readonly shortMonths: ReadonlyArray<string>
  /** Monday first. */
  readonly days: ReadonlyArray<string>
  readonly shortDays: ReadonlyArray<string>
  readonly periods: readonly [am: string, pm: string]
}

const part = (format: Intl.DateTimeFormat, type: Intl.DateTimeFormatPartTypes, date: number): string =>
  format.formatToParts(date).find((one) => one.type === type)?.value ?? ""

/** The names of months and days in a locale, in the form used within a date. */
export const namesOf = memo(50, (locale): Names => {
  const named = (options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat =>
    new Intl.DateTimeFormat(locale, { ...options, calendar: "gregory", numberingSystem: "latn", timeZone: "UTC" })
  const months = (month: "long" | "short") => {
    const format = named({ month, day: "numeric" })
    return Array.from({ length: 12 }, (_, at) => part(format, "month", Date.UTC(2024, at, 1)))
  }
  const days = (weekday: "long" | "short") => {
    const format = named({ weekday })
    // 1 January 2024 was a Monday.
    return Array.from({ length: 7 }, (_, at) => part(format, "weekday", Date.UTC(2024, 0, 1 + at)))
  }
  const period = named({ hour: "numeric", hour12: true })
  const at = (hour: number, preset: string): string => part(period, "dayPeriod", Date.UTC(2024, 0, 1, hour)) || preset
  return {
    months: months("long"),
    shortMonths: months("short"),
    days: days("long"),
    shortDays: days("short"),
    periods: [at(9, "AM"), at(15, "PM")]
  }
})

const zoneNames = memo(200, (key) => {
  const [locale, timeZone] = key.split(" ")
  return new Intl.DateTimeFormat(locale, { timeZone: timeZone!, timeZoneName: "short", hour: "numeric" })
})

/** The name of a zone at a time: `CST`. An offset is its own name. */
export const zoneName = (moment: Temporal.ZonedDateTime, locale: string): string =>
  /^[+-]/.test(moment.timeZoneId)
    ? moment.offset
    : part(zoneNames(`${locale} ${moment.timeZoneId}`), "timeZoneName", moment.epochMilliseconds)
