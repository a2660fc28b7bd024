/** The parts of a date in a text; null if missing. */
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
  /** Milliseconds since 1970: if set, the other parts are ignored. */
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

/** Two-digit years are between 1969 and 2068. */
export const fullYear = (digits: string): number => {
  const year = Number(digits)
  return digits.length > 2 ? year : year + (year < 69 ? 2000 : 1900)
}

export const nanoseconds = (digits: string | undefined): number => Number((digits ?? "").slice(0, 9).padEnd(9, "0"))

/** Zone abbreviations that may follow a time. They are not accepted as zone names, because many are ambiguous. */
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

/** Further abbreviations after a time in words; the ambiguous ones (IST, AST, SST) are missing. */
const others: Readonly<Record<string, number>> = {
  AKST: -540,
  AKDT: -480,
  HST: -600,
  NST: -210,
  NDT: -150,
  BRT: -180,
  ART: -180,
  WET: 0,
  WEST: 60,
  BST: 60,
  EET: 120,
  EEST: 180,
  MSK: 180,
  SGT: 480,
  HKT: 480,
  AWST: 480,
  JST: 540,
  KST: 540,
  ACST: 570,
  ACDT: 630,
  AEST: 600,
  AEDT: 660,
  NZST: 720,
  NZDT: 780
}

/** Minutes from UTC; null if it is no abbreviation. In lower case only those that are not also words. */
export const zoneOfAbbreviation = (text: string): number | null => {
  const upper = text.toUpperCase()
  if (text !== upper && (text !== text.toLowerCase() || text.length < 3)) return null
  return abbreviations[upper] ?? (text === upper ? others[upper] : undefined) ?? null
}

/** Minutes from UTC of `+02:00`, `-0700` or an abbreviation; null if it is none. */
export const offsetOf = (text: string): number | null => {
  const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)?$/.exec(text) ?? []
  if (hours === undefined) return abbreviations[text.toUpperCase()] ?? null
  const total = Number(hours) * 60 + Number(minutes ?? 0)
  return total > 14 * 60 || Number(minutes ?? 0) > 59 ? null : sign === "-" ? -total : total
}

/** The hour of a 12-hour clock; null if it is invalid. */
export const hourOf = (hour: number, period: string | undefined): number | null => {
  if (period === undefined) return hour
  if (hour < 1 || hour > 12) return null
  return (hour % 12) + (/^p/i.test(period) ? 12 : 0)
}
