import { zoneOfAbbreviation } from "./Parts.ts"

/** The English words of dates: as sources of patterns (which ignore case), and their meaning. */

const ones =
  "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split(
    " "
  )
const tens = "twenty thirty forty fifty sixty seventy eighty ninety".split(" ")
const ordinals =
  "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth".split(
    " "
  )

const shortNumber = `(?:${tens.join("|")})(?:[ -](?:${ones.slice(1, 10).join("|")}))?|${ones.toReversed().join("|")}`
/** A number below a thousand, in words. */
export const numberWord = `(?:an?|${ones.slice(1, 10).join("|")}) hundred(?: and)?(?: (?:${shortNumber}))?|${shortNumber}`
export const ordinalWord = `(?:twenty[ -])?(?:${ordinals.toReversed().join("|")})|twentieth|thirtieth|thirty[ -]first`

/** The value of a number in digits, with or without a fraction, or in words. */
export const numberOf = (text: string): number => {
  const lower = text.toLowerCase()
  if (/^\d/.test(lower)) return Number(lower.replace(",", "."))
  if (lower.startsWith("half")) return 0.5
  if (lower.includes("couple")) return 2
  let number = 0
  for (const word of lower.split(/[ -]/)) {
    if (word === "hundred") number = Math.max(1, number) * 100
    else if (word === "a" || word === "an") number = 1
    else number += Math.max(0, ones.indexOf(word), (tens.indexOf(word) + 2) * (tens.includes(word) ? 10 : 0))
  }
  return number
}

/** `3rd`, `third`, `twenty-third`. */
export const ordinalOf = (text: string): number => {
  const lower = text.toLowerCase()
  if (/^\d/.test(lower)) return Number.parseInt(lower, 10)
  if (lower === "twentieth") return 20
  if (lower === "thirtieth") return 30
  return lower
    .split(/[ -]/)
    .reduce((sum, word) => sum + (word === "twenty" ? 20 : word === "thirty" ? 30 : ordinals.indexOf(word) + 1), 0)
}

const placeOf = (names: ReadonlyArray<string>, text: string): number =>
  names.indexOf(text.toLowerCase().replace(".", "").slice(0, 3)) + 1

const monthStarts = "jan feb mar apr may jun jul aug sep oct nov dec".split(" ")
const dayStarts = "mon tue wed thu fri sat sun".split(" ")
export const month =
  "january|february|march|april|may|june|july|august|september|october|november|december|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\\b\\.?"
export const weekday =
  "monday|tuesday|wednesday|thursday|friday|saturday|sunday|(?:mon|tues?|wed|thurs?|thu|fri|sat|sun)\\b\\.?"
/** January is 1. */
export const monthOf = (text: string): number => placeOf(monthStarts, text)
/** Monday is 1. */
export const weekdayOf = (text: string): number => placeOf(dayStarts, text)

export interface Shift {
  months: number
  days: number
  business: number
  seconds: number
}

const units: ReadonlyArray<readonly [source: string, of: keyof Shift, times: number]> = [
  ["(?:business|working|week)[ _-]?days?", "business", 1],
  ["seconds?|secs?|s", "seconds", 1],
  ["minutes?|mins?|m", "seconds", 60],
  ["hours?|hrs?|h", "seconds", 3600],
  ["days?|d", "days", 1],
  ["fortnights?", "days", 14],
  ["weeks?|wks?|w", "days", 7],
  ["months?|mo", "months", 1],
  ["quarters?", "months", 3],
  ["years?|yrs?|y", "months", 12],
  ["decades?", "months", 120]
]
export const unit = units.map(([source]) => source).join("|")
export const unitOf = (text: string): readonly [of: keyof Shift, times: number] => {
  const [, of, times] = units.find(([source]) => new RegExp(`^(?:${source})$`, "i").test(text))!
  return [of, times]
}

const regions: Readonly<Record<string, string>> = {
  eastern: "America/New_York",
  central: "America/Chicago",
  mountain: "America/Denver",
  pacific: "America/Los_Angeles",
  et: "America/New_York",
  ct: "America/Chicago",
  mt: "America/Denver",
  pt: "America/Los_Angeles"
}
const seasons: Readonly<Record<string, number>> = {
  eastern: -300,
  central: -360,
  mountain: -420,
  pacific: -480
}

/** The zone of `Eastern Time`, `Eastern Standard Time`, `ET`; or minutes from UTC. Null if it is none. */
export const zoneOfWords = (text: string): string | number | null => {
  const [, region = "", season] = /^(\w+)(?: (standard|daylight))? time$/i.exec(text) ?? []
  if (season !== undefined) {
    const minutes = seasons[region.toLowerCase()]
    return minutes === undefined ? null : minutes + (/^d/i.test(season) ? 60 : 0)
  }
  if (region !== "") return (region.length > 2 ? regions[region.toLowerCase()] : undefined) ?? null
  return (/^[ECMP]T$/.test(text) ? regions[text.toLowerCase()] : undefined) ?? zoneOfAbbreviation(text)
}
