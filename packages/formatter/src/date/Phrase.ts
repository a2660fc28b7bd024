import { businessDays } from "./Expression.ts"
import { fullYear, hourOf, nanoseconds, offsetOf } from "./Parts.ts"
import * as V from "./Vocabulary.ts"
import { written } from "./Written.ts"
import { isZone } from "./Zone.ts"

/**
 * The grammar of dates in words. Each form has a function, which reads only what it understands, from the reader's position. A text that
 * matches no form is no date; `Residue.ts` checks the words around a date.
 */

export interface Clock {
  readonly hour: number
  readonly minute: number
  readonly second: number
  readonly nanosecond: number
}

export interface Moment {
  /** Null: the anchor's date. */
  readonly date: Temporal.PlainDate | null
  readonly clock: Clock | null
  /** Minutes from UTC or a zone name, for `clock`. */
  readonly zone: number | string | null
  /** An exact time: if set, the other members are ignored. */
  readonly instant: Temporal.ZonedDateTime | null
  readonly isAmbiguous: boolean
  /** The text may also mean something else (`sun`, `may`, `1/2`): it counts as a date only if it is the whole text. */
  readonly isWeak: boolean
}

/** A date that does not exist or contradicts itself, whatever else the text contains. */
export class NoSuchDate extends Error {}

const nothing: Moment = { date: null, clock: null, zone: null, instant: null, isAmbiguous: false, isWeak: false }

const sticky = (source: string): RegExp => new RegExp(source, "iy")
const end = String.raw`(?![\p{L}\p{N}_])`
const word = (source: string): RegExp => new RegExp(`(?:${source})${end}`, "iuy")

/** Reads a text from a position. */
export class Reader {
  readonly text: string
  readonly anchor: Temporal.ZonedDateTime
  at = 0
  depth = 0
  constructor(text: string, anchor: Temporal.ZonedDateTime) {
    this.text = text
    this.anchor = anchor
  }
  get today(): Temporal.PlainDate {
    return this.anchor.toPlainDate()
  }
  take(pattern: RegExp): ReadonlyArray<string | undefined> | null {
    pattern.lastIndex = this.at
    const found = pattern.exec(this.text)
    if (found !== null) this.at = pattern.lastIndex
    return found
  }
  /** Tries a form; if it returns null, the position is restored. */
  attempt<A>(form: (reader: Reader) => A | null): A | null {
    const from = this.at
    const found = form(this)
    if (found === null) this.at = from
    return found
  }
}

/** The result of the first form that matches. */
const either =
  <A>(...forms: ReadonlyArray<(reader: Reader) => A | null>) =>
  (reader: Reader): A | null => {
    for (const form of forms) {
      const found = reader.attempt(form)
      if (found !== null) return found
    }
    return null
  }

/** A day of the calendar. Without a year it is in the anchor's year, unless a year follows. */
interface Day {
  readonly date: Temporal.PlainDate | null
  /** Month and day, if the year is missing. */
  readonly monthDay?: readonly [month: number, day: number]
  readonly weekday?: number | undefined
  readonly isAmbiguous?: boolean
  readonly isWeak?: boolean
  /** A month without a day: it cannot have a time. */
  readonly isMonth?: boolean
}

const dayOf = (year: number, month: number, day: number): Temporal.PlainDate => {
  try {
    return Temporal.PlainDate.from({ year, month, day }, { overflow: "reject" })
  } catch {
    throw new NoSuchDate()
  }
}

const ofDate = (date: Temporal.PlainDate): Day => ({ date })

/** A year after a day: four digits, or two with a mark. */
const yearBehind = new RegExp(
  String.raw`(?:,? ?(?:of )?((?:1[0-9]|2[0-9])\d\d)(?! ?(?:h|hrs|hours|am|pm)\b)|,? ?'(\d\d)|, (\d\d)(?! ?(?:am|pm|:|st|nd|rd|th)\b))(?![\p{L}\p{N}_]|[.:/-]\d)|,? ?(1[0-9]\d\d|2\d\d\d)(?=[.,;:]? |[.,;:]?$|:\d\d)`,
  "iuy"
)
const yearOf = (reader: Reader): number | null => {
  const found = reader.take(yearBehind)
  if (found === null) return null
  const text = found[1] ?? found[2] ?? found[3] ?? found[4]!
  return fullYear(text)
}

const weekdayBefore = sticky(String.raw`(${V.weekday}),? (?:the )?`)
const weekdayBehind = sticky(String.raw`,? ?\((${V.weekday})\)`)
const dayMonth = sticky(
  String.raw`(?:the )?(?:(\d{1,2})(?:st|nd|rd|th)?(?:[ -]?of[ -]|[ ./-]| day of )|(${V.ordinalWord}) (?:day )?(?:of )?)(?:the month of )?(${V.month})(?![a-z])`
)
const monthDay = sticky(
  String.raw`(${V.month})(?: the |[ ./-])(?:(\d{1,2})(?:st|nd|rd|th)?(?![a-z0-9_:])|(${V.ordinalWord})\b)`
)
const joinedYear = sticky(String.raw`[ ./-]?(\d{4}|\d\d)(?![\da-z])`)

/** `March 3rd, 2026`, `3 March`, `Tuesday the third of March`, `3-Mar-26`. */
const namedDay = (reader: Reader): Day | null => {
  const before = reader.take(weekdayBefore)
  const from = reader.at
  const first = reader.take(dayMonth)
  const second = first === null ? reader.take(monthDay) : null
  const found = first ?? second
  if (found === null) return null
  const [digits, named, month] = first === null ? [found[2], found[3], found[1]!] : [found[1], found[2], found[3]!]
  const day = digits === undefined ? V.ordinalOf(named!) : Number(digits)
  const joined = /^\d{1,2}[./-]|[./-]\d{1,2}$/.test(reader.text.slice(from, reader.at)) ? reader.take(joinedYear) : null
  const behind = reader.take(weekdayBehind)
  const year = joined === null ? yearOf(reader) : fullYear(joined[1]!)
  const weekday = (before ?? behind)?.[1]
  return {
    date: year === null ? null : dayOf(year, V.monthOf(month), day),
    monthDay: [V.monthOf(month), day],
    weekday: weekday === undefined ? undefined : V.weekdayOf(weekday)
  }
}

const wholeMonth = sticky(
  String.raw`(?:(in|of|by|this|until|for|mid) )?(${V.month})(?:,? (?:of )?((?:1[0-9]|2[0-9])\d\d))?(?![\w'-]| \d)`
)

/** `March 2026`, `in March`: the first day of the month. */
const namedMonth = (reader: Reader): Day | null => {
  const found = reader.take(wholeMonth)
  if (found === null || found[1] === "mid") return null
  const year = found[3] === undefined ? reader.today.year : Number(found[3])
  return {
    date: dayOf(year, V.monthOf(found[2]!), 1),
    isWeak: found[1] === undefined && found[3] === undefined,
    isMonth: true
  }
}

const numericDay = sticky(
  String.raw`(?:(${V.weekday}),? )?(\d{1,4}([./-])\d{1,2}\3\d{1,4}|\d{1,2}\/\d{1,2})(?![\d/]|[.-]\d)`
)

/** Dates in digits, read by the same rules as a text that consists of a date. */
const numbers = (reader: Reader): Day | null => {
  const found = reader.take(numericDay)
  if (found === null) return null
  const known = written(found[2]!)
  if (known === null || known === "invalid") throw new NoSuchDate()
  const { day, month, year } = known.parts
  return {
    date: dayOf(year ?? reader.today.year, month!, day!),
    weekday: found[1] === undefined ? undefined : V.weekdayOf(found[1]),
    isAmbiguous: known.isAmbiguous,
    // It may be a fraction (`1/2` cup) or a version (1.5.30).
    isWeak: year === null || /^\d{1,2}[.-]\d{1,2}[.-]\d{2}$/.test(found[2]!)
  }
}

const casual: ReadonlyArray<readonly [RegExp, number]> = [
  [word("(?:the )?day after tomorrow"), 2],
  [word("(?:the )?day before yesterday"), -2],
  [word("today"), 0],
  [word("tomorrow|tmrw?|tomorow|tmw|the next day|the following day"), 1],
  [word("yesterday|the previous day"), -1]
]

const casualDay = (reader: Reader): Day | null => {
  for (const [pattern, days] of casual) if (reader.take(pattern) !== null) return ofDate(reader.today.add({ days }))
  return null
}

const businessDay = word("(?:the )?(next|following|last|previous) (?:business|working|week)[ _-]?day")

const besideBusinessDay = (reader: Reader): Day | null => {
  const found = reader.take(businessDay)
  if (found === null) return null
  return ofDate(businessDays(reader.today.toPlainDateTime(), isBefore(found[1]!) ? -1 : 1).toPlainDate())
}

const isBefore = (said: string): boolean => /^(?:last|previous|past)/i.test(said)

const which = "next|coming|following|this|current|last|previous|past"
const shiftedWhich = (said: string): number => (/^(?:this|current)/i.test(said) ? 0 : isBefore(said) ? -1 : 1)

const inWeek = word(String.raw`(?:the )?(${V.weekday}) (?:of |in )?(?:the )?(${which}) week`)
const weekFirst = word(String.raw`(?:the )?(${which}) week(?:'s|,)? (?:on )?(${V.weekday})`)
const relativeWeekday = word(String.raw`(?:(?:this |the )?(coming)|(${which})) (${V.weekday})`)
const loneWeekday = word(String.raw`(?:(on|by|until) )?(${V.weekday})(?: the (\d{1,2})(?:st|nd|rd|th))?`)

const dayOfWeek = (date: Temporal.PlainDate, weeks: number, weekday: number): Temporal.PlainDate =>
  date.add({ days: weeks * 7 + weekday - date.dayOfWeek })

/** Weeks begin on Monday. `next` is the day in the next week, `last` is before today, `this` is today or later. */
const namedWeekday = (reader: Reader): Day | null => {
  const { today } = reader
  const within = reader.take(inWeek)
  if (within !== null) return ofDate(dayOfWeek(today, shiftedWhich(within[2]!), V.weekdayOf(within[1]!)))
  const first = reader.take(weekFirst)
  if (first !== null) return ofDate(dayOfWeek(today, shiftedWhich(first[1]!), V.weekdayOf(first[2]!)))
  const relative = reader.take(relativeWeekday)
  if (relative !== null) {
    const weekday = V.weekdayOf(relative[3]!)
    // `this coming friday` is also today or later.
    const way = relative[1] === undefined ? shiftedWhich(relative[2]!) : 0
    const ahead = (weekday - today.dayOfWeek + 7) % 7
    return ofDate(way > 0 ? dayOfWeek(today, 1, weekday) : today.add({ days: way === 0 ? ahead : ahead - 7 }))
  }
  const lone = reader.take(loneWeekday)
  if (lone === null) return null
  const weekday = V.weekdayOf(lone[2]!)
  const ahead = (weekday - today.dayOfWeek + 7) % 7
  const isShort = /^[a-z]{3,5}\.?$/.test(lone[2]!)
  // The nearest such day.
  if (lone[3] === undefined) {
    return { date: today.add({ days: ahead < 4 ? ahead : ahead - 7 }), isWeak: isShort && lone[1] === undefined }
  }
  return { date: dayOf(today.year, today.month, Number(lone[3])), weekday }
}

const relativePeriod = word("(?:the )?(next|coming|following|last|previous|past) (week|month|quarter|year)")
const currentPeriod = word("this (month|year)")

/** `next month`: the same day in it. */
const period = (reader: Reader): Day | null => {
  const found = reader.take(relativePeriod)
  if (found !== null) {
    const sign = shiftedWhich(found[1]!)
    const [of, times] = V.unitOf(found[2]!)
    return ofDate(reader.today.add({ [of]: sign * times }))
  }
  const current = reader.take(currentPeriod)
  if (current === null) return null
  return ofDate(reader.today.with(/^m/i.test(current[1]!) ? { day: 1 } : { month: 1, day: 1 }))
}

const aMonth = String.raw`(?:(?:the )?(${which}) month|(?:the )?(month)|(${V.month})(?:,? (?:of )?(\d{4}))?(?! \d))`
const nth = String.raw`(\d{1,2}(?:st|nd|rd|th)|${V.ordinalWord}|last)`
const nthOfMonth = word(
  String.raw`(?:the )?${nth}(?: (day|(?:business|working|week)[ _-]?day|${V.weekday}))? (?:of|in) ${aMonth}`
)
const edgeOfMonth = word(String.raw`(?:the )?(beginning|start|end) of ${aMonth}`)
const edgeOfYear = word(String.raw`(?:the )?(beginning|start|end|first day|last day) of (?:the )?(?:(${which}) )?year`)

const monthMeant = (
  { today }: Reader,
  [relative, own, name, year]: ReadonlyArray<string | undefined>
): Temporal.PlainYearMonth => {
  if (name !== undefined)
    return dayOf(year === undefined ? today.year : Number(year), V.monthOf(name), 1).toPlainYearMonth()
  return today.toPlainYearMonth().add({ months: own === undefined ? shiftedWhich(relative!) : 0 })
}

/** The day with this number in a month; -1: the last. */
const dayOfMonth = (month: Temporal.PlainYearMonth, day: number): Temporal.PlainDate =>
  dayOf(month.year, month.month, day === -1 ? month.daysInMonth : day)

/** `3rd of next month`, `last monday of march`, `first business day of february`, `end of the month`. */
const within = (reader: Reader): Day | null => {
  const found = reader.take(nthOfMonth)
  if (found !== null) {
    const [, number, what = "day", ...month] = found
    const whole = monthMeant(reader, month)
    const ordinal = /^last$/i.test(number!) ? -1 : V.ordinalOf(number!)
    if (/^day$/i.test(what)) return ofDate(dayOfMonth(whole, ordinal))
    const isBusiness = !new RegExp(`^(?:${V.weekday})$`, "i").test(what)
    return ofDate(isBusiness ? nthBusiness(whole, ordinal) : nthWeekday(whole, ordinal, V.weekdayOf(what)))
  }
  const edge = reader.take(edgeOfMonth)
  if (edge !== null) {
    const [, which, ...month] = edge
    return ofDate(dayOfMonth(monthMeant(reader, month), /^e/i.test(which!) ? -1 : 1))
  }
  const year = reader.take(edgeOfYear)
  if (year === null) return null
  const first = reader.today
    .with({ month: 1, day: 1 })
    .add({ years: year[2] === undefined ? 0 : shiftedWhich(year[2]) })
  return ofDate(/^(?:end|last)/i.test(year[1]!) ? first.with({ month: 12, day: 31 }) : first)
}

const nthWeekday = (month: Temporal.PlainYearMonth, ordinal: number, weekday: number): Temporal.PlainDate => {
  const first = 1 + ((weekday - month.toPlainDate({ day: 1 }).dayOfWeek + 7) % 7)
  const day = ordinal === -1 ? first + 7 * Math.floor((month.daysInMonth - first) / 7) : first + 7 * (ordinal - 1)
  return dayOfMonth(month, day)
}

const nthBusiness = (month: Temporal.PlainYearMonth, ordinal: number): Temporal.PlainDate => {
  const from = ordinal === -1 ? month.add({ months: 1 }) : month
  const outside = from.toPlainDate({ day: 1 }).toPlainDateTime()
  // Counted from the day before the month, or from the day after it.
  const found = businessDays(ordinal === -1 ? outside : outside.subtract({ days: 1 }), ordinal).toPlainDate()
  if (found.month !== month.month) throw new NoSuchDate()
  return found
}

const day = either(within, besideBusinessDay, namedDay, numbers, casualDay, namedWeekday, period, namedMonth)

const partOfDay = "morning|afternoon|evening|night"
const clockTime = new RegExp(
  String.raw`(\d{1,2})(?:[:.h](\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?)?(?: ?(am|pm|a\.m\.?|p\.m\.?)(?![\p{L}\p{N}_])| o'?clock${end}|h${end}| ?hrs?${end}| ?hours${end})?(?:(?=Z${end})|(?![\p{L}\p{N}_:]|[.,]\d))(?: (?:in the (morning|afternoon|evening)|(at night)))?`,
  "iuy"
)
const namedTime = word(String.raw`(?:12(?::00)? )?(noon|midday)|(midnight)`)
const daytime = word(String.raw`(?:in the |this |(?=night))?(${partOfDay})`)
const hoursOf: Readonly<Record<string, number>> = { morning: 6, afternoon: 15, evening: 20, night: 22 }

const exact = (hour: number): Clock => ({ hour, minute: 0, second: 0, nanosecond: 0 })

/** Converts an hour of a 12-hour clock by the part of the day; null if it does not fit. */
const hourIn = (hour: number, part: string): number | null => {
  if (part === "morning") return hour < 12 ? hour : null
  if (part === "afternoon")
    return hour === 12 || (hour > 12 && hour < 18) ? hour : hour >= 1 && hour < 7 ? hour + 12 : null
  if (part === "evening") return hour >= 16 && hour < 24 ? hour : hour >= 4 && hour < 12 ? hour + 12 : null
  return hour >= 18 && hour < 24 ? hour : hour >= 6 && hour < 12 ? hour + 12 : null
}

/** A time in digits. `isMarked`: a word before it marks it as a time, so an hour alone is enough. `part`: the part of the day. */
const timeInNumbers = (reader: Reader, isMarked: boolean, part: string | null): Clock | null => {
  const from = reader.at
  const found = reader.take(clockTime)
  if (found === null) return null
  const [whole = "", hours, minutes, seconds, fraction, half, inThe, night] = found
  const isPlain = minutes === undefined && half === undefined && !/[a-z]/i.test(whole)
  // `2 hours` is a duration, not a time.
  const isAmount = minutes === undefined && /h(?:ou)?rs?$/i.test(whole)
  if ((isPlain && !isMarked) || isAmount || (whole[hours!.length] === "." && !isMarked)) return null
  if (/^\d{1,2}[:.h]\d\d/i.test(whole) && /^\d{3}/.test(reader.text.slice(from))) return null
  const hour = half === undefined ? Number(hours) : hourOf(Number(hours), half)
  const of = inThe?.toLowerCase() ?? (night === undefined ? part : "night")
  const meant =
    hour === null || of === null
      ? hour
      : half === undefined
        ? hourIn(hour, of)
        : hourIn(hour, of) === hour
          ? hour
          : null
  const clock = { minute: Number(minutes ?? 0), second: Number(seconds ?? 0), nanosecond: nanoseconds(fraction) }
  const isEnd = meant === 24 && clock.minute === 0 && clock.second === 0
  if (meant === null || (meant > 23 && !isEnd) || clock.minute > 59 || clock.second > 59) throw new NoSuchDate()
  return { hour: meant, ...clock }
}

const at = sticky("(?:at|@|by|around) ?")
const commaOrSpace = sticky(",? ")

interface Time {
  readonly clock: Clock
  readonly zone: number | string | null
  readonly isMidnight: boolean
}

/** A time of the day, with its zone. `isBeside`: next to a date, so that `at 9` or `morning` is enough. */
const time = (reader: Reader, isBeside: boolean): Time | null => {
  const part = isBeside ? reader.take(daytime) : null
  const name = part === null ? null : part[1]!.toLowerCase()
  if (name !== null) {
    const hour = reader.attempt((rest) => {
      if (rest.take(commaOrSpace) === null) return null
      return timeInNumbers(rest, rest.take(at) !== null, name)
    })
    return { clock: hour ?? exact(hoursOf[name]!), zone: hour === null ? null : zone(reader, hour), isMidnight: false }
  }
  const isMarked = reader.take(at) !== null
  const named = reader.take(namedTime)
  if (named !== null) {
    const isMidnight = named[2] !== undefined
    const clock = exact(isMidnight ? 0 : 12)
    return { clock, zone: zone(reader, clock), isMidnight }
  }
  const clock = timeInNumbers(reader, isMarked && isBeside, null)
  return clock === null ? null : { clock, zone: zone(reader, clock), isMidnight: false }
}

const offset = new RegExp(
  String.raw` ?\(?((?:UTC|GMT) ?)?([+-])(\d{1,2})(?::?([0-5]\d))?(?![\p{L}\p{N}_:]|[.,/-]\d)\)?(?: \([^()]{0,40}\))?`,
  "iuy"
)
const ianaName = / ?[[(]?([A-Z][A-Za-z]{1,30}(?:\/[A-Z][A-Za-z_+\-0-9]{1,30}){1,2})[\])]?(?![\w/])/y
const zoneWords =
  /,? ?[[(]?((?:eastern|central|mountain|pacific)(?: standard| daylight)? time|[a-z]{1,5})[\])]?(?![\w/+-])/iy

/** Minutes from UTC after a time. `10:00-11:00` is probably a range: then the text is no date. */
const offsetBehind = (reader: Reader, { hour, minute }: Clock): number | null => {
  const from = reader.at
  const found = reader.take(offset)
  if (found === null) return null
  const [whole = "", prefix, sign, hours = "", minutes = "00"] = found
  const total = offsetOf(`${sign}${hours.padStart(2, "0")}:${minutes}`)
  const isBare = prefix === undefined && !whole.startsWith(" ")
  const isRange = sign === "-" && Number(hours) * 60 + Number(minutes) > hour * 60 + minute
  const isClock = /\d[:h.]\d\d(?:[.,]\d+)?(?: ?[ap]\.?m\.?)?$/i.test(reader.text.slice(0, from))
  if (total === null || (prefix === undefined && hours.length < 2) || (isBare && (isRange || !isClock))) {
    throw new NoSuchDate()
  }
  // `+0000 UTC`, as Go writes it: the second part repeats the first.
  const again = reader.attempt((rest) => {
    const words = rest.take(/ \(?([A-Z]{3,5})\)?(?!\w)/y)
    return words === null ? null : V.zoneOfWords(words[1]!)
  })
  if (again !== null && again !== total) throw new NoSuchDate()
  return total
}

/** The zone of a time. */
const zone = (reader: Reader, clock: Clock): number | string | null =>
  reader.attempt((rest) => {
    const name = rest.take(ianaName)
    if (name !== null) {
      if (!isZone(name[1]!)) throw new NoSuchDate()
      return name[1]!
    }
    const minutes = offsetBehind(rest, clock)
    if (minutes !== null) return minutes
    const words = rest.take(zoneWords)
    return words === null ? null : V.zoneOfWords(words[1]!)
  })

const betweenDayAndTime = sticky(String.raw`(?: - |T(?=\d)|,? ?(?=[a-z0-9@])|:(?=\d\d:))`)
const betweenTimeAndDay = sticky(String.raw`,? (?:on |of )?`)
const yearLast = sticky(String.raw`,? (\d{4})(?![\w:-])`)

const tonight = word("tonight")
const lastNight = word("last night")

/** Combines a day and a time. */
const joined = (
  reader: Reader,
  { date, isAmbiguous = false, isWeak = false, monthDay, weekday }: Day,
  at: Time | null
): Moment => {
  const year = date === null ? reader.take(yearLast)?.[1] : undefined
  const whole = date ?? dayOf(year === undefined ? reader.today.year : Number(year), ...monthDay!)
  if (weekday !== undefined && whole.dayOfWeek !== weekday) throw new NoSuchDate()
  return {
    date: whole,
    clock: at?.clock ?? null,
    zone: at?.zone ?? null,
    instant: null,
    isAmbiguous,
    isWeak: isWeak && at === null
  }
}

const timeBehind = (reader: Reader): Time | null =>
  reader.attempt((rest) => (rest.take(betweenDayAndTime) === null ? null : time(rest, true)))

const dayThenTime = (reader: Reader): Moment | null => {
  const found = day(reader)
  if (found === null) return null
  const behind = timeBehind(reader)
  if (behind !== null && found.isMonth === true) throw new NoSuchDate()
  return joined(reader, found, behind)
}

const timeThenDay = (reader: Reader): Moment | null => {
  const found = reader.attempt((rest) => time(rest, false)) ?? reader.attempt((rest) => time(rest, true))
  if (found === null) return null
  const behind = reader.attempt((rest) => (rest.take(betweenTimeAndDay) === null ? null : day(rest)))
  return behind === null || behind.isMonth === true ? null : joined(reader, behind, found)
}

const timeAlone = (reader: Reader): Moment | null => {
  const found = time(reader, false)
  if (found === null) return null
  // Midnight without a day is the coming one.
  const date = found.isMidnight ? reader.today.add({ days: 1 }) : null
  return { ...nothing, date, clock: found.clock, zone: found.zone }
}

const thisPart = word(`this (morning|afternoon|evening)`)

/** `tonight at 8`, `last night`, `this morning`. */
const night = (reader: Reader): Moment | null => {
  const isLast = reader.take(lastNight) !== null
  const part = isLast ? null : reader.take(thisPart)
  if (!isLast && part === null && reader.take(tonight) === null) return null
  const name = part?.[1]?.toLowerCase() ?? "night"
  const date = isLast ? reader.today.subtract({ days: 1 }) : reader.today
  const hour = reader.attempt((rest) => {
    if (rest.take(commaOrSpace) === null) return null
    return timeInNumbers(rest, rest.take(at) !== null, name)
  })
  return { ...nothing, date, clock: hour ?? exact(hoursOf[name]!), zone: hour === null ? null : zone(reader, hour) }
}

const now = word("(?:right |just )?now")
const ofNow = (reader: Reader): Moment | null =>
  reader.take(now) === null ? null : { ...nothing, instant: reader.anchor }

const amount = String.raw`(\d{1,5}(?:[.,]\d{1,2})?|(?:a )?couple(?: of)?|half an?|${V.numberWord}|an?) ?`
const unitEnd = String.raw`(?![\p{L}_])`
const term = new RegExp(`${amount}(${V.unit})${unitEnd}`, "iuy")
const termBehind = new RegExp(`(?:,? and |, ?| ?)${amount}(${V.unit})${unitEnd}`, "iuy")

/** Number of units that may follow each other. */
const maxTerms = 7

/** `2 days and 3 hours`. */
const duration = (reader: Reader): V.Shift | null => {
  const shift = { months: 0, days: 0, business: 0, seconds: 0 }
  let found = reader.take(term)
  if (found === null) return null
  for (let terms = 1; found !== null; terms++) {
    if (terms > maxTerms) throw new NoSuchDate()
    const [of, times] = V.unitOf(found[2]!)
    const count = V.numberOf(found[1]!)
    if (Number.isInteger(count)) shift[of] += count * times
    // Fractions of days become hours. Fractions of months have no defined meaning.
    else if (of === "seconds") shift.seconds += Math.round(count * times)
    else if (of === "days" && times === 1) shift.seconds += Math.round(count * 86_400)
    else throw new NoSuchDate()
    found = reader.take(termBehind)
  }
  return shift
}

const fromNow = word("(?:from|after) now|from today|later|hence")
const beforeNow = word("ago|earlier|before (?:now|today)")
const relation = sticky(String.raw`(?:(before|prior to)|after|from|following)(?: the)? `)
const inSpace = sticky("in (?:about )?(?=[a-z0-9])")

const moved = (reader: Reader, base: Moment, by: V.Shift, sign: number): Moment => {
  const { business, days, months, seconds } = by
  const shifted = (local: Temporal.PlainDateTime): Temporal.PlainDateTime =>
    businessDays(local.add({ months: sign * months }).add({ days: sign * days }), sign * business)
  try {
    if (base.instant !== null) {
      const local = base.instant.toPlainDateTime()
      const calendar =
        months + days + business === 0 ? base.instant : shifted(local).toZonedDateTime(base.instant.timeZoneId)
      return { ...base, instant: calendar.add({ seconds: sign * seconds }) }
    }
    const date = base.date ?? reader.today
    const { clock } = base
    if (seconds !== 0 && clock === null) throw new NoSuchDate()
    if (seconds === 0) return { ...base, date: shifted(date.toPlainDateTime()).toPlainDate() }
    const { hour, minute, nanosecond, second } = clock!
    const local = shifted(date.toPlainDateTime({ hour: hour % 24, minute, second })).add({ days: hour === 24 ? 1 : 0 })
    const name = typeof base.zone === "number" ? "UTC" : (base.zone ?? reader.anchor.timeZoneId)
    const shift = typeof base.zone === "number" ? base.zone : 0
    const instant = local
      .toZonedDateTime(name)
      .subtract({ minutes: shift })
      .add({ seconds: sign * seconds, nanoseconds: nanosecond })
    return { ...base, instant }
  } catch {
    throw new NoSuchDate()
  }
}

/** `in 3 days at 17:00`, `3 days ago`, `2 weeks after next monday`. */
const relative = (reader: Reader): Moment | null => {
  if (++reader.depth > 3) return null
  try {
    const isIn = reader.take(inSpace) !== null
    const by = duration(reader)
    if (by === null) return null
    const isLater = isIn || reader.attempt((rest) => rest.take(/ /y) && rest.take(fromNow)) !== null
    const isEarlier = !isIn && !isLater && reader.attempt((rest) => rest.take(/ /y) && rest.take(beforeNow)) !== null
    if (isLater || isEarlier) {
      const sign = isLater ? 1 : -1
      if (by.seconds !== 0) return moved(reader, { ...nothing, instant: reader.anchor }, by, sign)
      const { date } = moved(reader, { ...nothing, date: reader.today }, by, sign)
      return joined(reader, { date }, timeBehind(reader))
    }
    const related = reader.take(/ /y) === null ? null : reader.take(relation)
    const base = related === null ? null : moment(reader)
    return base === null ? null : moved(reader, base, by, related![1] === undefined ? 1 : -1)
  } finally {
    reader.depth--
  }
}

const dayBeside = sticky("(?:the )?day (?:(before)|after) (?=\\S)")

/** `the day after March 3`. */
const besideAnother = (reader: Reader): Moment | null => {
  const found = reader.take(dayBeside)
  if (found === null || ++reader.depth > 3) return null
  const base = moment(reader)
  reader.depth--
  if (base === null || base.instant !== null) return null
  return moved(reader, base, { months: 0, days: 1, business: 0, seconds: 0 }, found[1] === undefined ? 1 : -1)
}

/** The date at the reader's position; null if there is none. Throws if the date does not exist. */
export const moment: (reader: Reader) => Moment | null = either(
  relative,
  night,
  dayThenTime,
  timeThenDay,
  timeAlone,
  besideAnother,
  ofNow
)
