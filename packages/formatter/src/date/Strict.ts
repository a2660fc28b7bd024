import { Fault } from "../engine/Fault.ts"
import { memo } from "../engine/Memo.ts"
import { namesOf } from "./Names.ts"
import { fullYear, hourOf, nanoseconds, noParts, offsetOf, type Parts } from "./Parts.ts"
import { piecesOf } from "./Tokens.ts"

/** Dates of which it is said how they are written: the text has to be exactly that. */

type Draft = { -readonly [Name in keyof Parts]: Parts[Name] } & { period: string | undefined; dayOfYear: number | null }
type Take = (draft: Draft, text: string, locale: string) => boolean | void

const escape = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`)

const digits = (source: string, name: "year" | "month" | "day" | "hour" | "minute" | "second") =>
  [source, (draft: Draft, text: string) => void (draft[name] = Number(text))] as const

const placeIn = (lists: ReadonlyArray<ReadonlyArray<string>>, text: string): number => {
  for (const list of lists) {
    const at = list.findIndex((name) => name.toLowerCase() === text.toLowerCase())
    if (at >= 0) return at
  }
  return -1
}

const word = String.raw`([\p{L}\p{M}.]{1,24})`
const month = [
  word,
  (draft: Draft, text: string, locale: string) => {
    const english = namesOf("en")
    const own = namesOf(locale)
    const at = placeIn([own.months, own.shortMonths, english.months, english.shortMonths], text)
    draft.month = at + 1
    return at >= 0
  }
] as const
const period = [
  String.raw`([\p{L}.]{1,4})`,
  (draft: Draft, text: string) => ((draft.period = text), /^[ap]/i.test(text))
] as const
const offset = [
  String.raw`([Zz]|[+-]\d\d:?\d\d)`,
  (draft: Draft, text: string) => (draft.offset = offsetOf(text)) !== null
] as const
const dayOfYear = (draft: Draft, text: string): void => void (draft.dayOfYear = Number(text))
const ignored: Take = () => true

const tokens: Readonly<Record<string, readonly [source: string, take: Take]>> = {
  YYYY: digits(String.raw`(\d{4})`, "year"),
  YY: [String.raw`(\d\d)`, (draft, text) => void (draft.year = fullYear(text))],
  MMMM: month,
  MMM: month,
  MM: digits(String.raw`(\d\d)`, "month"),
  M: digits(String.raw`(\d\d?)`, "month"),
  DDDD: [String.raw`(\d{3})`, dayOfYear],
  DDD: [String.raw`(\d{1,3})`, dayOfYear],
  DD: digits(String.raw`(\d\d)`, "day"),
  Do: digits(String.raw`(\d\d?)(?:st|nd|rd|th|\.)?`, "day"),
  D: digits(String.raw`(\d\d?)`, "day"),
  dddd: [word, ignored],
  ddd: [word, ignored],
  d: ["([1-7])", ignored],
  HH: digits(String.raw`(\d\d)`, "hour"),
  H: digits(String.raw`(\d\d?)`, "hour"),
  hh: digits(String.raw`(\d\d)`, "hour"),
  h: digits(String.raw`(\d\d?)`, "hour"),
  mm: digits(String.raw`(\d\d)`, "minute"),
  m: digits(String.raw`(\d\d?)`, "minute"),
  ss: digits(String.raw`(\d\d)`, "second"),
  s: digits(String.raw`(\d\d?)`, "second"),
  A: period,
  a: period,
  Z: offset,
  ZZ: offset,
  ZZZ: [
    String.raw`([A-Za-z][\w/+-]{0,63}|[+-]\d\d:?\d\d)`,
    (draft, text) => void (draft.offset = offsetOf(text) ?? text)
  ],
  W: [
    String.raw`(\d{4}-W\d\d-[1-7])`,
    (draft, text) => {
      const fourth = new Temporal.PlainDate(Number(text.slice(0, 4)), 1, 4)
      const found = fourth.add({ days: (Number(text.slice(6, 8)) - 1) * 7 + Number(text[9]) - fourth.dayOfWeek })
      ;[draft.year, draft.month, draft.day] = [found.year, found.month, found.day]
    }
  ],
  X: [String.raw`([+-]?\d{1,12}(?:\.\d{1,9})?)`, (draft, text) => void (draft.instant = Number(text) * 1000)],
  x: [String.raw`([+-]?\d{1,15})`, (draft, text) => void (draft.instant = Number(text))]
}

interface Compiled {
  readonly pattern: RegExp
  readonly takes: ReadonlyArray<Take>
}

const compiled = memo(200, (format): Compiled => {
  const takes: Array<Take> = []
  const sources = piecesOf(format, "from_format").map((piece) => {
    if ("literal" in piece) return escape(piece.literal).replaceAll(/\s+/g, String.raw`\s+`)
    if (piece.token.startsWith("S")) {
      takes.push((draft, text) => void (draft.nanosecond = nanoseconds(text)))
      return String.raw`(\d{1,9})`
    }
    const token = tokens[piece.token]
    if (token === undefined) {
      throw new Fault("FORMATTER_DATE_FORMAT_INVALID", `${piece.token} cannot be read from a date`, {
        field: "from_format"
      })
    }
    takes.push(token[1])
    return token[0]
  })
  return { pattern: new RegExp(`^${sources.join("")}$`, "iu"), takes }
})

/** What the text says by that format; null when it is not written so. */
export const strictly = (text: string, format: string, locale: string): Parts | null => {
  const { pattern, takes } = compiled(format)
  const found = pattern.exec(text.trim())
  if (found === null) return null
  const draft: Draft = { ...noParts, period: undefined, dayOfYear: null }
  for (const [at, take] of takes.entries()) if (take(draft, found[at + 1] ?? "", locale) === false) return null
  const { dayOfYear, period, ...parts } = draft
  if (parts.hour !== null && period !== undefined) {
    const hour = hourOf(parts.hour, period)
    if (hour === null) return null
    parts.hour = hour
  }
  if (dayOfYear === null || parts.year === null) return parts
  const day = new Temporal.PlainDate(parts.year, 1, 1).add({ days: dayOfYear - 1 })
  return dayOfYear < 1 || day.year !== parts.year ? null : { ...parts, month: day.month, day: day.day }
}
