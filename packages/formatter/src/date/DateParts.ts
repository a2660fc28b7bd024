import { mapped, moment, zone } from "../engine/Fields.ts"
import { int, nullable, operation, string } from "../engine/Operation.ts"
import { formatted } from "./Format.ts"
import { parseDate } from "./Parse.ts"
import { dateErrors, dateLimits, dateWarnings } from "./Row.ts"
import { fromFormat, isoFormat } from "./Tokens.ts"
import { checkZone } from "./Zone.ts"

export const dateParts = operation({
  key: "date.parts",
  label: "Parts of a date",
  description: "Year, month, day and the rest, each by itself",
  fields: {
    input: mapped(moment("Date", { required: true })),
    timezone: zone("Time zone"),
    from_format: fromFormat("Format of the input")
  },
  lines: "map",
  empty: {
    year: null,
    month: null,
    day: null,
    weekday: null,
    iso_week: null,
    hour: null,
    minute: null,
    second: null,
    unix: null,
    iso: "",
    timezone: "",
    offset: ""
  },
  output: {
    year: nullable(int),
    month: nullable(int),
    day: nullable(int),
    weekday: nullable({ type: "integer", minimum: 1, maximum: 7 }),
    iso_week: nullable(int),
    hour: nullable(int),
    minute: nullable(int),
    second: nullable(int),
    unix: nullable(int),
    iso: string,
    timezone: string,
    offset: string
  },
  warnings: dateWarnings,
  errors: dateErrors,
  limits: dateLimits,
  cost: { call: 100, character: 400 },
  sample: {
    inputs: { input: "2026-01-31T17:05:09Z" },
    options: {},
    output: {
      year: 2026,
      month: 1,
      day: 31,
      weekday: 6,
      iso_week: 5,
      hour: 17,
      minute: 5,
      second: 9,
      unix: 1_769_879_109,
      iso: "2026-01-31T17:05:09.000+00:00",
      timezone: "UTC",
      offset: "+00:00"
    }
  },
  run: ({ from_format, input, timezone }, call) => {
    const zone = checkZone(timezone, "timezone")
    const moment = parseDate(input ?? "", { field: "input", format: from_format, zone, locale: "en" }, call)
    const { day, dayOfWeek, epochMilliseconds, hour, minute, month, offset, second, weekOfYear, year } = moment
    return {
      year,
      month,
      day,
      weekday: dayOfWeek,
      iso_week: weekOfYear ?? 0,
      hour,
      minute,
      second,
      unix: Math.floor(epochMilliseconds / 1000),
      iso: formatted(moment, isoFormat.replace("DT", "D[T]"), "en"),
      timezone: moment.timeZoneId,
      offset
    }
  }
})
