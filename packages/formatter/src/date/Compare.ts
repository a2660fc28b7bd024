import { mapped, moment, option, select, zone } from "../engine/Fields.ts"
import { bool, type Call, int, num, operation } from "../engine/Operation.ts"
import { type Origin, parseDate } from "./Parse.ts"
import { dateErrors, dateLimits, dateWarnings } from "./Row.ts"
import { fromFormat } from "./Tokens.ts"
import { checkZone, zonedAt } from "./Zone.ts"

const dateOf = (value: string | number | null, origin: Origin, call: Call): Temporal.ZonedDateTime =>
  value === null || value === "" ? zonedAt(call.anchor, origin.zone, origin.field) : parseDate(value, origin, call)

const lengths = [
  ["days", 86_400],
  ["hours", 3600],
  ["minutes", 60],
  ["seconds", 1]
] as const

export const compare = operation({
  key: "date.compare",
  label: "Compare dates",
  description: "How long it is from one date to another. Days are of 24 hours",
  fields: {
    start_date: mapped(moment("Start", { help: "Default: now" })),
    end_date: mapped(moment("End", { help: "Default: now" })),
    from_timezone: zone("Time zone of what names none"),
    start_format: fromFormat("Format of the start"),
    end_format: fromFormat("Format of the end"),
    unit: option(
      select(
        "In",
        {
          all: "Days, hours, minutes and seconds",
          days: "Days",
          hours: "Hours",
          minutes: "Minutes",
          seconds: "Seconds"
        },
        "all"
      )
    )
  },
  lines: "map",
  output: {
    days: int,
    hours: int,
    minutes: int,
    seconds: int,
    total_seconds: num,
    dates_swapped: bool,
    same_dates: bool
  },
  warnings: dateWarnings,
  errors: dateErrors,
  limits: dateLimits,
  cost: { call: 150, character: 400 },
  sample: {
    inputs: { start_date: "2026-01-01T00:00:00Z", end_date: "2026-01-02T03:04:05Z" },
    options: {},
    output: {
      days: 1,
      hours: 3,
      minutes: 4,
      seconds: 5,
      total_seconds: 97_445,
      dates_swapped: false,
      same_dates: false
    }
  },
  run: ({ end_date, end_format, from_timezone, start_date, start_format, unit }, call) => {
    const zone = checkZone(from_timezone, "from_timezone")
    const start = dateOf(start_date, { field: "start_date", format: start_format, zone, locale: "en" }, call)
    const end = dateOf(end_date, { field: "end_date", format: end_format, zone, locale: "en" }, call)
    const millis = end.epochMilliseconds - start.epochMilliseconds
    const total = Math.abs(millis) / 1000
    // Either the whole difference in one unit, or each unit holds the remainder of the larger one.
    let left = Math.floor(total)
    const parts: Record<string, number> = {}
    for (const [name, length] of lengths) {
      const taken = unit === "all" || unit === name
      parts[name] = taken ? Math.floor(left / length) : 0
      if (taken) left -= Math.floor(left / length) * length
    }
    return {
      ...parts,
      total_seconds: total,
      dates_swapped: millis < 0,
      same_dates: start.toPlainDate().equals(end.toPlainDate())
    }
  }
})
