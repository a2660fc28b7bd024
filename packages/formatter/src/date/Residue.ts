import { month, numberWord, unit, weekday, zoneOfWords } from "./Vocabulary.ts"

/** Checks the text around a date. If it belongs to the date, only a part of the date was understood, and the result would be another date. */

const longMonths = "january|february|april|june|july|august|september|october|november|december"

/** Patterns that show this anywhere in the text. */
const anywhere = new RegExp(
  [
    String.raw`\d{1,2}[:h]\d\d`,
    String.raw`\d ?(?:am|pm|a\.m|p\.m)`,
    String.raw`[+-]\d\d:?\d\d\b`,
    String.raw`(?:\bat|@) ?\d`,
    String.raw`\d(?:st|nd|rd|th)\b`,
    String.raw`\d{1,4}[/-]\d{1,2}[/-]\d{1,4}`,
    String.raw`\b(?:\d+|an?|couple(?: of)?|few|several|some|many|${numberWord}) (?:more |other )?(?:(?:business|working|bank|week|calendar)[ _-]?)?(?:days?|weeks?|months?|years?|hours?|hrs?|minutes?|mins?|seconds?|secs?|quarters?|decades?)\b`,
    String.raw`\b(?:business|working|bank|calendar|week)[ _-]?(?:days?|hours?)\b`,
    String.raw`\b(?:same|this|that|the other|next|last|previous|following|each|every) (?:time|day|date|hour|week|month|quarter|year)\b`,
    String.raw`\b(?:today|tomorrow|yesterday|tonight|noon|midday|midnight|o'clock|fortnights?|weekends?|ago|hence|christmas|xmas|easter|thanksgiving|halloween|q[1-4]|eod|eow|eom|cob|never)\b`,
    String.raw`\b(?:every|each|hourly|daily|nightly|weekly|fortnightly|monthly|quarterly|yearly|annually|recurring)\b`,
    String.raw`\b(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)s?\b`,
    String.raw`\b(?:${longMonths})\b`
  ].join("|"),
  "i"
)

/** Words that belong to a date only if they stand next to it. */
const beside = new RegExp(
  `^(?:after|before|since|between|within|during|plus|minus|not|no|every|each|next|last|previous|coming|following|past|first|second|third|fourth|fifth|penultimate|half|quarter|mid|middle|early|late|later|earlier|end|start|beginning|eve|mornings?|evenings?|afternoons?|nights?|business|working|bank|calendar|couple|few|several|some|than|ides|${unit}|${month}|${weekday}|(?:mon|tues?|wednes|thurs?|fri|satur|sun)days|am|pm|bce?|ad|be|ce|${numberWord}|\\d{1,2}[a-z]{0,4}|(?:19|20)\\d\\d)$`,
  "i"
)

/** Words that may stand between a date and such a word. */
const joins = new Set("the on at of in by for from to and or a an".split(" "))

const wordsOf = (text: string): ReadonlyArray<string> => text.match(/[\p{L}\p{N}_']+/gu) ?? []

const nearest = (words: ReadonlyArray<string>): string => words.find((word) => !joins.has(word.toLowerCase())) ?? ""

/** City names of time zones, with spaces instead of underscores. */
let named: ReadonlySet<string> | null = null
const cities = (): ReadonlySet<string> =>
  (named ??= new Set(
    Intl.supportedValuesOf("timeZone").map((zone) => zone.split("/").at(-1)!.replaceAll("_", " ").toLowerCase())
  ))

/** Whether the text after a time names the place of its clock. */
const saysWhere = (after: string): boolean => {
  const [, first = "", second = ""] = /^,? ?\(?(?:in )?(\p{L}+)(?: (\p{L}+))?/u.exec(after) ?? []
  return (
    /^,? in \p{Lu}/u.test(after) ||
    (/^,? ?\(?(?:\p{L}+ ){0,3}time\b/iu.test(after) && !/^,? local time\b/i.test(after)) ||
    /^,? ?\(?(?:eastern|central|mountain|pacific|zulu|utc|gmt)\b/i.test(after) ||
    cities().has(first.toLowerCase()) ||
    cities().has(`${first} ${second}`.toLowerCase())
  )
}

/** Characters next to a date that change its meaning: `-3 days`, `v1.2.3`, `2026-03-03-17`, `5pmm`. */
const touchesBefore = /[\p{L}\p{N}_.+\-\\/@#~<>=$%*^&]$|\p{N}:$|\p{N} ?[-+\u2013\u2014] ?$|(?:^| )[-+] ?$/u
const touchesAfter = /^[\p{L}\p{N}_+\-\\/@#~<>=$%*^&]|^[.,:]\p{N}|^ ?[-+\u2013\u2014] ?\p{N}/u

/** Words that change an amount. */
const inexact =
  /\b(?:at (?:least|most)|up to|over|under|almost|nearly|roughly|approximately|approx\.?|(?:more|less|fewer|later|earlier) than) $/i
const unreadTime = new RegExp(`^,? ?(?:at|@) ?(?:\\d|${numberWord}\\b)`, "i")

/** Whether the text after a date begins with the name of a zone. */
const beginsWithZone = (after: string): boolean => {
  const [, name] = /^,? ?[[(]?([A-Z]{1,5})(?![A-Za-z])/.exec(after) ?? []
  return (name !== undefined && zoneOfWords(name) !== null) || /^,? ?[[(]?[A-Z][a-z]+\/[A-Z]/.test(after)
}

export const isPartOfMore = (before: string, found: string, after: string, isTimed: boolean): boolean =>
  anywhere.test(before) ||
  anywhere.test(after) ||
  beside.test(nearest(wordsOf(before).toReversed())) ||
  beside.test(nearest(wordsOf(after))) ||
  (touchesBefore.test(before) && !/^\s*[-*] $/.test(before)) ||
  touchesAfter.test(after) ||
  /\bfirst thing $/i.test(before) ||
  (inexact.test(before) && /^(?:\d|[a-z]+ )/i.test(found)) ||
  unreadTime.test(after) ||
  beginsWithZone(after) ||
  // `in 1h30`, and unknown zone names after a time.
  (isTimed &&
    (/\bin $/i.test(before) || /^,? ?[[(]?(?!(?:OK|AM|PM)\b)[A-Z]{2,5}(?![a-z])/.test(after) || saysWhere(after)))
