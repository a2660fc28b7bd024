/** What a text says of a date; what it leaves out is null. */
export interface Parts {
  readonly year: number | null
  readonly month: number | null
  readonly day: number | null
  readonly hour: number | null
  readonly minute: number
  readonly second: number
  readonly nanosecond: number
  /** Minutes from UTC, or the name of a zone. */
  readonly offset: number | string | null
  /** Milliseconds since 1970: then nothing else counts. */
  readonly instant: number | null
}

export const noParts: Parts = {
  year: null,
  month: null,
  day: null,
  hour: null,
  minute: 0,
  second: 0,
  nanosecond: 0,
  offset: null,
  instant: null
}

/** Years of two digits are those from 1969 to 2068. */
export const fullYear = (digits: string): number => {
  const year = Number(digits)
  return digits.length > 2 ? year : year + (year < 69 ? 2000 : 1900)
}

export const nanoseconds = (digits: string | undefined): number => Number((digits ?? "").slice(0, 9).padEnd(9, "0"))

/** Abbreviations that people write behind a time. As names of zones they are not taken: many mean two. */
const abbreviations: Readonly<Record<string, number>> = {
  Z: 0,
  UT: 0,
  UTC: 0,
  GMT: 0,
  EST: -300,
  EDT: -240,
  CST: -360,
  CDT: -300,
  MST: -420,
  MDT: -360,
  PST: -480,
  PDT: -420,
  CET: 60,
  CEST: 120
}

/** Minutes from UTC of `+02:00`, `-0700` or an abbreviation; null where it is none. */
export const offsetOf = (text: string): number | null => {
  const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)?$/.exec(text) ?? []
  if (hours === undefined) return abbreviations[text.toUpperCase()] ?? null
  const total = Number(hours) * 60 + Number(minutes ?? 0)
  return total > 14 * 60 || Number(minutes ?? 0) > 59 ? null : sign === "-" ? -total : total
}

/** The hour of a clock with twelve of them; null where there is none. */
export const hourOf = (hour: number, period: string | undefined): number | null => {
  if (period === undefined) return hour
  if (hour < 1 || hour > 12) return null
  return (hour % 12) + (/^p/i.test(period) ? 12 : 0)
}
