import { mapped, option, region, select, text } from "../engine/Fields.ts"
import { array, either, operation, string } from "../engine/Operation.ts"
import { phoneLibraries, phonesIn } from "../number/Phones.ts"
import { chosen } from "./Matches.ts"
import { whichOf } from "./Search.ts"

export const extractPhone = operation({
  key: "text.extract_phone",
  label: "Extract a phone number",
  description: "The phone numbers in a text",
  fields: {
    input: mapped(text("Text", { required: true, long: true })),
    format: option(
      select("Kind", { any: "Any", north_america: "North America", international: "International" }, "any")
    ),
    region: option(region("Country of what has no country code")),
    which: option(select("Which", whichOf, "first")),
    output: option(select("As", { as_found: "As it is written", e164: "E.164" }, "as_found"))
  },
  lines: "map",
  linesFor: ({ which }) => (which === "all" ? "reject" : "map"),
  output: { result: either(string, array(string)) },
  warnings: ["NO_MATCH", "OUTPUT_CAPPED"],
  // The library tries every stretch of digits in every way: 3 µs a character of digits and spaces.
  limits: { characters: 8192, matches: 1000 },
  loads: phoneLibraries,
  cost: { call: 50, character: 4000 },
  sample: { inputs: { input: "Call (800) 555-1212 today" }, options: {}, output: { result: "(800) 555-1212" } },
  run: ({ format, input, output, region, which }, call) =>
    chosen(
      phonesIn(input, region)
        .filter(
          ({ number, text }) =>
            format === "any" ||
            (format === "north_america" ? number.countryCallingCode === "1" : text.trimStart().startsWith("+"))
        )
        .map(({ number, text }) => (output === "e164" ? number.number : text)),
      which,
      call
    )
})
