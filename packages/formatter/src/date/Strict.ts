import { Fault } from "../engine/Fault.ts"
import { memo } from "../engine/Memo.ts"
import { namesOf } from "./Names.ts"
import { fullYear, hourOf, nanoseconds, noParts, offsetOf, type Parts } from "./Parts.ts"
import { piecesOf } from "./Tokens.ts"

/** Parses dates in a given format, which the text must match exactly. */

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
      const week = Number(text.slice(6, 8))
      const found = fourth.add({ days: (week - 1) * 7 + Number(text[9]) - fourth.dayOfWeek })
      if (found.weekOfYear !== week) return false
      ;[draft.year, draft.month, draft.day] = [found.year, found.month, found.day]
      return true
    }
  ],
  X: [String.raw`([+-]?\d{1,12}(?:\.\d{1,9})?)`, (draft, text) => void (draft.instant = Number(text) * 1000)],
  x: [String.raw`([+-]?\d{1,15})`, (draft, text) => void (draft.instant = Number(text))]
}

interface Slot {
  /** Matches the longest text that the slot may take at a position. */
  readonly longest: RegExp
  /** Matches a complete text for the slot. */
  readonly whole: RegExp
  readonly take: Take | null
}

const slot = (source: string, take: Take | null): Slot => ({
  longest: new RegExp(source, "iuy"),
  whole: new RegExp(`^(?:${source})$`, "iu"),
  take
})

const compiled = memo(200, (format): ReadonlyArray<Slot> => {
  const slots: Array<Slot> = []
  let literal = ""
  const endLiteral = (): void => {
    if (literal !== "") slots.push(slot(escape(literal).replaceAll(/\s+/g, String.raw`\s+`), null))
    literal = ""
  }
  for (const piece of piecesOf(format, "from_format")) {
    if ("literal" in piece) {
      literal += piece.literal
      continue
    }
    endLiteral()
    if (piece.token.startsWith("S")) {
      slots.push(slot(String.raw`(\d{1,9})`, (draft, text) => void (draft.nanosecond = nanoseconds(text))))
      continue
    }
    const token = tokens[piece.token]
    if (token === undefined) {
      throw new Fault("FORMATTER_DATE_FORMAT_INVALID", `${piece.token} cannot be read from a date`, {
        field: "from_format"
      })
    }
    slots.push(slot(token[0], token[1]))
  }
  endLiteral()
  return slots
})

/** Maximum number of attempts to match a slot. Real dates need as many as they have tokens. */
const maxTries = 2000

/**
 * The part of the text that each slot takes; null if the text does not match. A single pattern could take exponential time, because
 * adjacent tokens can divide their digits in many ways. Here no slot is tried twice at a position, and the attempts are counted.
 */
const shared = (text: string, slots: ReadonlyArray<Slot>): ReadonlyArray<string> | null => {
  const failed = new Set<number>()
  const taken: Array<string> = []
  let tries = 0
  const fits = (index: number, at: number): boolean => {
    const slot = slots[index]
    if (slot === undefined) return at === text.length
    const place = index * (text.length + 1) + at
    if (failed.has(place)) return false
    slot.longest.lastIndex = at
    const longest = slot.longest.exec(text)?.[0].length ?? 0
    // A literal always takes its longest match, because no token begins with white space.
    for (let length = longest; length > 0 && (slot.take !== null || length === longest); length--) {
      if (++tries > maxTries) {
        throw new Fault("FORMATTER_LIMIT_EXCEEDED", "the format can be read in too many ways", {
          field: "from_format",
          limit: maxTries
        })
      }
      const found = slot.whole.exec(text.slice(at, at + length))
      if (found === null) continue
      taken[index] = found[1] ?? ""
      if (fits(index + 1, at + length)) return true
    }
    failed.add(place)
    return false
  }
  return fits(0, 0) ? taken : null
}

/** Parses the text by the format; null if it does not match. */
export const strictly = (text: string, format: string, locale: string): Parts | null => {
  const slots = compiled(format)
  const taken = shared(text.trim(), slots)
  if (taken === null) return null
  const draft: Draft = { ...noParts, period: undefined, dayOfYear: null }
  for (const [at, { take }] of slots.entries()) if (take?.(draft, taken[at]!, locale) === false) return null
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
