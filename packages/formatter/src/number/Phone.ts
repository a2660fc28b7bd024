import { flag, mapped, option, quantity, region, select } from "../engine/Fields.ts"
import { bool, nullable, operation, string } from "../engine/Operation.ts"
import { phoneFormats, phoneLibraries, phoneOf } from "./Phones.ts"

export const phone = operation({
  key: "number.phone",
  label: "Format a phone number",
  description: "A phone number as it is written nationally, internationally, or as a key",
  fields: {
    input: mapped(quantity("Phone number", { required: true })),
    format: option(
      select(
        "Format",
        {
          "0": "+18005551212 (E.164)",
          "1": "+1 800-555-1212 (international)",
          "2": "(800) 555-1212 (national)",
          "3": "+1-800-555-1212 (RFC 3966)",
          "4": "800-555-1212 (without country code)",
          "5": "+1 800 555 1212 (international, no hyphens)",
          "6": "800 555-1212 (national, no brackets)",
          "7": "8005551212 (national digits)",
          "8": "18005551212 (international digits)"
        },
        "0"
      )
    ),
    region: option(region("Country of what has no country code")),
    validate: option(flag("Only numbers that there can be", true))
  },
  lines: "map",
  output: { result: string, valid: bool, country: nullable(string), type: nullable(string) },
  empty: { result: "", valid: false, country: null, type: null },
  warnings: ["PHONE_INVALID"],
  errors: ["FORMATTER_CONFIG_INVALID"],
  limits: { characters: 250 },
  loads: phoneLibraries,
  cost: { call: 150, character: 4000 },
  sample: {
    inputs: { input: "8005551212" },
    options: { format: "2" },
    output: { result: "(800) 555-1212", valid: true, country: "US", type: "TOLL_FREE" }
  },
  run: ({ format, input, region, validate }, call) => {
    const number = phoneOf(input, region)
    const valid = number?.isValid() ?? false
    if (!valid) call.warn("PHONE_INVALID", "there is no such phone number", "input")
    if (number === null || (validate && !valid)) return { result: input, valid: false, country: null, type: null }
    return {
      result: phoneFormats[format]!(number),
      valid,
      country: number.country ?? null,
      type: number.getType() ?? null
    }
  }
})
