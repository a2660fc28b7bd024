import { businessDays } from "./Expression.ts"
import { isZone } from "./Zone.ts"

/** Expressions that the library of dates in words does not know, or half knows: each is replaced by the date that it means. */

const dayNames = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"] as const
const monthNames = "january february march april may june july august september october november december".split(" ")
const counts = "zero one two three four five six seven eight nine ten".split(" ")
const ordinals: Readonly<Record<string, number>> = { first: 1, second: 2, third: 3, fourth: 4, fifth: 5, last: -1 }

const count = String.raw`(\d{1,4}|an?|${counts.slice(1).join("|")})`
const ordinal = String.raw`(\d{1,2}(?:st|nd|rd|th)?|first|second|third|fourth|fifth|last)`
const aMonth = String.raw`(?:(next|this|last|previous|the (?:next|current|last|previous|coming|following)) month|(${monthNames.join("|")})(?:,? (\d{4}))?)`
const workingDays = String.raw`${count} (?:business|working|week)[ _-]?days?`

const afterTomorrow = /\b(?:the )?day after tomorrow\b/gi
const beforeYesterday = /\b(?:the )?day before yesterday\b/gi
const workingDaysFromNow = new RegExp(
  String.raw`\b(?:in ${workingDays}|${workingDays} (from (?:now|today)|later|hence|ago|earlier|before (?:now|today)))(?![\w-])`,
  "gi"
)
const workingDaysFrom = new RegExp(String.raw`^${workingDays} (after|from|following|before|prior to) (.+)$`, "is")
const dayOfMonth = new RegExp(String.raw`\b(?:the )?${ordinal}(?: day)? (?:of|in) ${aMonth}(?! \d)\b`, "gi")
const dayInMonth = new RegExp(
  String.raw`\b(?:the )?${ordinal} (${dayNames.join("|")}) (?:of|in) ${aMonth}(?! \d)\b`,
  "gi"
)
const zoneName = /(^|[\s(])([A-Z][A-Za-z]{1,30}(?:\/[A-Z][A-Za-z_+\-0-9]{1,30}){1,2})(?=$|[\s),.;])/g
const zulu = /(\d{1,2}:\d\d(?::\d\d)?)\s?Z\b/g

const countOf = (text: string): number => {
  const named = counts.indexOf(text.toLowerCase())
  return named >= 0 ? named : /^an?$/i.test(text) ? 1 : Number(text)
}

const ordinalOf = (text: string): number => ordinals[text.toLowerCase()] ?? Number.parseInt(text, 10)

/** The month that is meant. What names no year is of the anchor's. */
const monthOf = (
  today: Temporal.PlainDate,
  relative: string | undefined,
  name: string | undefined,
  year: string | undefined
): Temporal.PlainYearMonth => {
  if (name !== undefined) {
    return new Temporal.PlainYearMonth(
      year === undefined ? today.year : Number(year),
      monthNames.indexOf(name.toLowerCase()) + 1
    )
  }
  const shift = /last|previous/i.test(relative!) ? -1 : /this|current/i.test(relative!) ? 0 : 1
  return today.toPlainYearMonth().add({ months: shift })
}

/** Of a month the day of that number, -1 the last. Null: it has none. */
const dayOf = (month: Temporal.PlainYearMonth, day: number): Temporal.PlainDate | null => {
  const number = day === -1 ? month.daysInMonth : day
  return number >= 1 && number <= month.daysInMonth ? month.toPlainDate({ day: number }) : null
}

/** Of a month the nth day of the week of that name, -1 the last. Null: it has none. */
const nthOf = (month: Temporal.PlainYearMonth, nth: number, name: string): Temporal.PlainDate | null => {
  const weekday = dayNames.indexOf(name.toLowerCase() as (typeof dayNames)[number]) + 1
  const first = 1 + ((weekday - month.toPlainDate({ day: 1 }).dayOfWeek + 7) % 7)
  if (nth === -1) return dayOf(month, first + 7 * Math.floor((month.daysInMonth - first) / 7))
  return nth >= 1 ? dayOf(month, first + 7 * (nth - 1)) : null
}

export interface Rewritten {
  readonly text: string
  /** The name of a zone that was in it. */
  readonly zone: string | null
  /** Business days, before (less than 0) or after what the text says. */
  readonly businessDays: number
}

/** Null: a day that there is not. `text` has single spaces. */
export const rewritten = (text: string, anchor: Temporal.ZonedDateTime): Rewritten | null => {
  const today = anchor.toPlainDate()
  let isPossible = true
  const shown = (date: Temporal.PlainDate | null): string => {
    isPossible &&= date !== null
    return date?.toString() ?? ""
  }
  let zone: string | null = null
  let rest = text
    .replaceAll(zoneName, (whole, before: string, name: string) => {
      if (!isZone(name)) return whole
      isPossible &&= zone === null
      zone = name
      return before
    })
    .replaceAll(zulu, "$1 UTC")
    .replaceAll(afterTomorrow, () => shown(today.add({ days: 2 })))
    .replaceAll(beforeYesterday, () => shown(today.subtract({ days: 2 })))
    .replaceAll(
      workingDaysFromNow,
      (_, ahead: string | undefined, days: string | undefined, way: string | undefined) => {
        const number = countOf(ahead ?? days!)
        const sign = /^(?:ago|earlier|before)/i.test(way ?? "") ? -1 : 1
        return shown(businessDays(today.toPlainDateTime(), sign * number).toPlainDate())
      }
    )
    .replaceAll(dayInMonth, (_, nth: string, day: string, ...month: ReadonlyArray<string | undefined>) =>
      shown(nthOf(monthOf(today, month[0], month[1], month[2]), ordinalOf(nth), day))
    )
    .replaceAll(dayOfMonth, (_, nth: string, ...month: ReadonlyArray<string | undefined>) =>
      shown(dayOf(monthOf(today, month[0], month[1], month[2]), ordinalOf(nth)))
    )
  let business = 0
  const from = workingDaysFrom.exec(rest)
  if (from !== null) {
    const [, days, way, base] = from
    business = countOf(days!) * (/^(?:before|prior)/i.test(way!) ? -1 : 1)
    rest = base!
  }
  return isPossible ? { text: rest.trim(), zone, businessDays: business } : null
}

/** What says of a text that it has more of a date than was found in it: wherever it stands. */
const another = new RegExp(
  [
    String.raw`\d{1,2}[:h]\d\d`,
    String.raw`\d ?(?:am|pm|a\.m|p\.m)\b`,
    String.raw`[+-]\d\d:?\d\d\b`,
    String.raw`\d(?:st|nd|rd|th)\b`,
    String.raw`\d{1,4}[/-]\d{1,2}[/-]\d{1,4}`,
    String.raw`\b(?:\d+|an?|${counts.join("|")}) (?:days?|weeks?|months?|years?|hours?|hrs?|minutes?|mins?|seconds?|secs?|quarters?|decades?)\b`,
    String.raw`\b(?:business|working|week)[ _-]?days?\b`,
    String.raw`\b(?:today|tomorrow|yesterday|tonight|noon|midnight|o'clock|fortnights?|weekends?|ago|hence|christmas|easter|q[1-4])\b`,
    String.raw`\b(?:${[...dayNames, ...monthNames.filter((name) => name !== "may" && name !== "march")].join("|")})\b`
  ].join("|"),
  "i"
)

/** Words that mean something else elsewhere, and beside a date belong to it. */
const beside =
  /^(?:after|before|next|last|previous|coming|following|first|second|third|fourth|fifth|half|quarter|mid|middle|early|late|end|ends|start|starts|beginning|past|eve|mornings?|evenings?|afternoons?|nights?|days?|weeks?|months?|years?|hours?|minutes?|may|march|mar|jan|feb|apr|jun|jul|aug|sept?|oct|nov|dec|mon|tues?|wed|thu|thurs?|fri|sat|sun|am|pm|bce?|ad|\d{1,2}|(?:19|20)\d\d)$/i

/** What may stand between a date and what belongs to it. */
const joins = new Set("the on at of in by for to and a an".split(" "))

const nearest = (words: ReadonlyArray<string>): string => words.find((word) => !joins.has(word.toLowerCase())) ?? ""

const wordsOf = (text: string): ReadonlyArray<string> => text.match(/[\p{L}\p{N}_']+/gu) ?? []

/**
 * Whether what stands before and behind a date in a text belongs to a date, too: then only a part was understood, and what was
 * understood is another date.
 */
export const isPartOnly = (before: string, found: string, after: string, isTimed: boolean): boolean =>
  another.test(before) ||
  another.test(after) ||
  beside.test(nearest(wordsOf(before).toReversed())) ||
  beside.test(nearest(wordsOf(after))) ||
  // `3 days before christmas` is not three days ago.
  (/\b(?:before|after|from|since)$/i.test(found) && wordsOf(after).length > 0) ||
  // The zone of a time that nobody knows.
  (isTimed && /^ ?\(?(?!(?:OK|AM|PM)\b)[A-Z]{2,5}\b/.test(after))
