import { Fault } from "../engine/Fault.ts"
import { memo } from "../engine/Memo.ts"
import type { Call } from "../engine/Operation.ts"
import { inRange, outOfRange, resolved } from "./Zone.ts"

/** Maximum terms of an expression such as `+1 year -2 days 3 hours`; a sign applies until the next one. */

export const maxTerms = 20

type Unit = "months" | "days" | "business" | "seconds"

const units: Readonly<Record<string, readonly [Unit, number]>> = {
  y: ["months", 12],
  yr: ["months", 12],
  year: ["months", 12],
  q: ["months", 3],
  quarter: ["months", 3],
  mo: ["months", 1],
  month: ["months", 1],
  w: ["days", 7],
  wk: ["days", 7],
  week: ["days", 7],
  d: ["days", 1],
  day: ["days", 1],
  business_day: ["business", 1],
  h: ["seconds", 3600],
  hr: ["seconds", 3600],
  hour: ["seconds", 3600],
  m: ["seconds", 60],
  min: ["seconds", 60],
  minute: ["seconds", 60],
  s: ["seconds", 1],
  sec: ["seconds", 1],
  second: ["seconds", 1]
}

type Shift = Readonly<Record<Unit, number>>

const shiftOf = memo(200, (expression): { readonly shift: Shift | null } => {
  const term = /\s*([+-])?\s*(\d{1,9})\s*([a-z_]+?)(?:s)?(?=[\s+\-\d]|$)/giy
  const shift = { months: 0, days: 0, business: 0, seconds: 0 }
  let sign = 1
  let terms = 0
  const text = expression.trim()
  for (let at = 0; at < text.length;) {
    term.lastIndex = at
    const [whole, given, amount, name] = term.exec(text) ?? []
    const lower = name?.toLowerCase() ?? ""
    // A single s means seconds; without its plural s nothing would be left.
    const unit = Object.hasOwn(units, lower) ? units[lower] : undefined
    if (whole === undefined || unit === undefined || ++terms > maxTerms) return { shift: null }
    if (given !== undefined) sign = given === "-" ? -1 : 1
    shift[unit[0]] += sign * Number(amount) * unit[1]
    at += whole.length
  }
  return { shift }
})

/**
 * The day that is `count` business days later (or earlier, if negative). From a weekend it counts from the weekday before it, in both
 * directions.
 */
export const businessDays = (date: Temporal.PlainDateTime, count: number): Temporal.PlainDateTime => {
  if (count === 0) return date
  const step = Math.sign(count)
  const over = date.dayOfWeek - 5
  let at = over > 0 ? date.add({ days: step > 0 ? -over : 3 - over }) : date
  at = at.add({ days: Math.trunc(count / 5) * 7 })
  for (let left = Math.abs(count % 5); left > 0;) {
    at = at.add({ days: step })
    if (at.dayOfWeek < 6) left--
  }
  return at
}

/** Adds an expression to a time: first the calendar units, on the clock of its zone, then hours and smaller units. */
export const shifted = (from: Temporal.ZonedDateTime, expression: string, call: Call): Temporal.ZonedDateTime => {
  if (expression.trim() === "") return from
  const { shift } = expression.length > 512 ? { shift: null } : shiftOf(expression)
  if (shift === null) {
    throw new Fault("FORMATTER_DATE_EXPRESSION_INVALID", "the expression is not like +1 day -2 hours", {
      field: "expression",
      value_preview: expression.slice(0, 80),
      limit: maxTerms
    })
  }
  const { business, days, months, seconds } = shift
  try {
    let moment = from
    if (months !== 0 || days !== 0 || business !== 0) {
      const local = businessDays(from.toPlainDateTime().add({ months }).add({ days }), business)
      if (local.year < 1 || local.year > 9999) throw outOfRange("expression")
      moment = resolved(local, from.timeZoneId, "input", call)
    }
    return inRange(seconds === 0 ? moment : moment.add({ seconds }), "expression")
  } catch (cause) {
    if (cause instanceof Fault) throw cause
    throw outOfRange("expression")
  }
}
