import { mapped, moment, needed, symbols, zone } from "../engine/Fields.ts"
import { operation, string } from "../engine/Operation.ts"
import { maxTerms, shifted } from "./Expression.ts"
import { formatted } from "./Format.ts"
import { parseDate } from "./Parse.ts"
import { dateErrors, dateLimits, dateWarnings } from "./Row.ts"
import { fromFormat, toFormat } from "./Tokens.ts"
import { checkZone } from "./Zone.ts"

export const addSubtract = operation({
  key: "date.add_subtract",
  label: "Add or subtract time",
  description:
    "A date some time later or earlier: `+1 month -1 day`. Calendar units go by the clocks of the input's zone",
  fields: {
    input: mapped(moment("Date", { required: true })),
    expression: needed(
      symbols("Expression", {
        help: "Like +2 days -3 hours; years, quarters, months, weeks, days, business_days, hours, minutes, seconds"
      })
    ),
    to_timezone: zone("Time zone of the result"),
    from_timezone: zone("Time zone of the input, where it names none"),
    to_format: toFormat("YYYY-MM-DDTHH:mm:ssZ"),
    from_format: fromFormat("Format of the input")
  },
  lines: "map",
  output: { result: string },
  empty: { result: "" },
  warnings: dateWarnings,
  errors: [...dateErrors, "FORMATTER_DATE_EXPRESSION_INVALID"],
  limits: { ...dateLimits, terms: maxTerms },
  cost: { call: 150, character: 400 },
  sample: {
    inputs: { input: "2016-01-01", expression: "+1 month -1 day" },
    options: { to_format: "YYYY-MM-DD" },
    output: { result: "2016-01-31" }
  },
  run: ({ expression, from_format, from_timezone, input, to_format, to_timezone }, call) => {
    const to = checkZone(to_timezone, "to_timezone")
    const origin = {
      field: "input",
      format: from_format,
      zone: checkZone(from_timezone, "from_timezone"),
      locale: "en"
    }
    const moment = shifted(parseDate(input ?? "", origin, call), expression, call)
    return { result: formatted(moment.withTimeZone(to), to_format, "en") }
  }
})
