import { locale, mapped, moment, option, zone } from "../engine/Fields.ts"
import { operation, string } from "../engine/Operation.ts"
import { dateErrors, dateLimits, dateWarnings } from "./Row.ts"
import { formatted } from "./Format.ts"
import { parseDate } from "./Parse.ts"
import { fromFormat, toFormat } from "./Tokens.ts"
import { checkZone } from "./Zone.ts"

export const formatDate = operation({
  key: "date.format",
  label: "Format a date",
  description: "A date as you write it, in the zone that you name",
  fields: {
    input: mapped(moment("Date", { required: true })),
    to_timezone: zone("Time zone of the result"),
    from_timezone: zone("Time zone of the input, where it names none"),
    to_format: toFormat(),
    from_format: fromFormat("Format of the input"),
    locale: option(locale("en"))
  },
  lines: "map",
  output: { result: string },
  empty: { result: "" },
  warnings: dateWarnings,
  errors: [...dateErrors, "FORMATTER_LOCALE_UNKNOWN"],
  limits: dateLimits,
  cost: { call: 120, character: 400 },
  sample: {
    inputs: { input: "2026-01-31T17:05:00Z", to_timezone: "Europe/Berlin" },
    options: { to_format: "DD/MM/YYYY" },
    output: { result: "31/01/2026" }
  },
  run: ({ from_format, from_timezone, input, locale, to_format, to_timezone }, call) => {
    const to = checkZone(to_timezone, "to_timezone")
    const origin = { field: "input", format: from_format, zone: checkZone(from_timezone, "from_timezone"), locale }
    return { result: formatted(parseDate(input ?? "", origin, call).withTimeZone(to), to_format, locale) }
  }
})
