import { mapped, option, select, text } from "../engine/Fields.ts"
import { array, either, operation, string } from "../engine/Operation.ts"
import { maxStretch, urlsIn } from "./Addresses.ts"
import { chosen } from "./Matches.ts"
import { whichOf } from "./Search.ts"

export const extractUrl = operation({
  key: "text.extract_url",
  label: "Extract a URL",
  description: "The URLs in a text, as they are written",
  fields: {
    input: mapped(text("Text", { required: true, long: true })),
    which: option(select("Which", whichOf, "first"))
  },
  lines: "map",
  linesFor: ({ which }) => (which === "all" ? "reject" : "map"),
  output: { result: either(string, array(string)) },
  warnings: ["NO_MATCH", "OUTPUT_CAPPED"],
  limits: { stretch: maxStretch, matches: 1000 },
  cost: { apart: 8192 },
  sample: { inputs: { input: "See www.example.com/a." }, options: {}, output: { result: "www.example.com/a" } },
  run: function* ({ input, which }, call) {
    return chosen(yield* urlsIn(input, call), which, call)
  }
})
