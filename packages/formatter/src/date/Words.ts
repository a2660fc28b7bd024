import type { Call } from "../engine/Operation.ts"
import { noParts, type Parts } from "./Parts.ts"
import { moment, type Moment, NoSuchDate, Reader } from "./Phrase.ts"
import { isPartOfMore } from "./Residue.ts"

/** Microseconds to read a date, and to look for one at a position without one. */
const microsOfDate = 20
const microsOfPlace = 4

export interface InWords {
  readonly parts: Parts
  readonly isAmbiguous: boolean
}

/**
 * Finds the date in a sentence, relative to the anchor in its zone. `part`: the text contains more of a date than was understood, or several
 * dates. Fails closed, because the understood date would not be the intended one.
 */
export const inWords = (text: string, anchor: Temporal.ZonedDateTime, call: Call): InWords | "part" | null => {
  const plain = text
    .replaceAll(/\s+/g, " ")
    .replaceAll("\u2019", "'")
    .replaceAll(/[\u2010\u2011\u2212]/g, "-")
    .trim()
  const reader = new Reader(plain, anchor)
  call.spend(microsOfDate)
  let found: Found | null = null
  try {
    for (const { index } of plain.matchAll(/(?<![\p{L}\p{N}_])[\p{L}\p{N}@]/gu)) {
      if (found !== null && index < found.to) continue
      call.spend(microsOfPlace)
      reader.at = index
      const one = moment(reader)
      if (one === null || (one.isWeak && /[\p{L}\p{N}]/u.test(plain.slice(0, index) + plain.slice(reader.at)))) continue
      if (found !== null) return "part"
      found = { moment: one, from: index, to: reader.at }
    }
  } catch (cause) {
    if (cause instanceof NoSuchDate) return "part"
    throw cause
  }
  if (found === null) return null
  const { from, moment: meant, to } = found
  if (isPartOfMore(plain.slice(0, from), plain.slice(from, to), plain.slice(to), meant.clock !== null)) return "part"
  return { parts: partsOf(meant), isAmbiguous: meant.isAmbiguous }
}

interface Found {
  readonly moment: Moment
  readonly from: number
  readonly to: number
}

const partsOf = ({ clock, date, instant, zone }: Moment): Parts => {
  if (instant !== null) return { ...noParts, instant: instant.epochMilliseconds }
  const day = date === null ? {} : { year: date.year, month: date.month, day: date.day }
  return { ...noParts, ...day, ...clock, offset: zone }
}
