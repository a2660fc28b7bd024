import { namesOf, zoneName } from "./Names.ts"
import { piecesOf } from "./Tokens.ts"

const pad = (value: number, length: number): string => String(value).padStart(length, "0")

const ordinal = (day: number): string => {
  const tens = day % 100
  return `${day}${tens > 10 && tens < 14 ? "th" : (["th", "st", "nd", "rd"][day % 10] ?? "th")}`
}

const fraction = (moment: Temporal.ZonedDateTime, digits: number): string =>
  (pad(moment.millisecond, 3) + pad(moment.microsecond, 3)).slice(0, digits)

const isEnglish = (locale: string): boolean => locale === "en" || locale.startsWith("en-")

const tokens: Readonly<Record<string, (moment: Temporal.ZonedDateTime, locale: string) => string>> = {
  YYYY: ({ year }) => pad(year, 4),
  YY: ({ year }) => pad(year % 100, 2),
  MMMM: ({ month }, locale) => namesOf(locale).months[month - 1]!,
  MMM: ({ month }, locale) => namesOf(locale).shortMonths[month - 1]!,
  MM: ({ month }) => pad(month, 2),
  M: ({ month }) => String(month),
  DDDD: ({ dayOfYear }) => pad(dayOfYear, 3),
  DDD: ({ dayOfYear }) => String(dayOfYear),
  DD: ({ day }) => pad(day, 2),
  Do: ({ day }, locale) => (isEnglish(locale) ? ordinal(day) : String(day)),
  D: ({ day }) => String(day),
  dddd: ({ dayOfWeek }, locale) => namesOf(locale).days[dayOfWeek - 1]!,
  ddd: ({ dayOfWeek }, locale) => namesOf(locale).shortDays[dayOfWeek - 1]!,
  d: ({ dayOfWeek }) => String(dayOfWeek),
  HH: ({ hour }) => pad(hour, 2),
  H: ({ hour }) => String(hour),
  hh: ({ hour }) => pad(hour % 12 || 12, 2),
  h: ({ hour }) => String(hour % 12 || 12),
  mm: ({ minute }) => pad(minute, 2),
  m: ({ minute }) => String(minute),
  ss: ({ second }) => pad(second, 2),
  s: ({ second }) => String(second),
  A: ({ hour }, locale) => namesOf(locale).periods[hour < 12 ? 0 : 1].toUpperCase(),
  a: ({ hour }, locale) => namesOf(locale).periods[hour < 12 ? 0 : 1].toLowerCase(),
  ZZZ: zoneName,
  ZZ: ({ offset }) => offset,
  Z: ({ offset }) => offset.replace(":", ""),
  W: ({ dayOfWeek, weekOfYear, yearOfWeek }) => `${pad(yearOfWeek ?? 0, 4)}-W${pad(weekOfYear ?? 0, 2)}-${dayOfWeek}`,
  Q: ({ month }) => String(Math.ceil(month / 3)),
  X: ({ epochMilliseconds }) => String(Math.floor(epochMilliseconds / 1000)),
  x: ({ epochMilliseconds }) => String(epochMilliseconds)
}

/** Writes a date in a format. */
export const formatted = (moment: Temporal.ZonedDateTime, format: string, locale: string): string => {
  let text = ""
  for (const piece of piecesOf(format, "to_format")) {
    if ("literal" in piece) text += piece.literal
    else
      text += piece.token.startsWith("S") ? fraction(moment, piece.token.length) : tokens[piece.token]!(moment, locale)
  }
  return text
}
