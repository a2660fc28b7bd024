import { mapped, option, region, select, text } from "../engine/Fields.ts"
import { array, either, operation, string } from "../engine/Operation.ts"
import { type FoundPhone, maxStretch, maxTries, phoneLibraries, phonesIn } from "../number/Phones.ts"
import { chosen, maxMatches } from "./Matches.ts"
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
  limits: { stretch: maxStretch, tries: maxTries, matches: 1000 },
  loads: phoneLibraries,
  cost: { call: 50, character: 60, apart: 2048 },
  sample: { inputs: { input: "Call (800) 555-1212 today" }, options: {}, output: { result: "(800) 555-1212" } },
  run: function* ({ format, input, output, region, which }, call) {
    const wanted = ({ number, text }: FoundPhone): boolean =>
      format === "any" ||
      (format === "north_america" ? number.countryCallingCode === "1" : text.trimStart().startsWith("+"))
    const found = yield* phonesIn(
      input,
      region,
      wanted,
      which === "first" ? 1 : which === "all" ? maxMatches + 1 : Infinity,
      call
    )
    return chosen(
      found.map(({ number, text }) => (output === "e164" ? number.number : text)),
      which,
      call
    )
  }
})
