import { flag, mapped, option, select, text } from "../engine/Fields.ts"
import { operation, string } from "../engine/Operation.ts"
import { insideOf, spaces } from "./Space.ts"

export const trim = operation({
  key: "text.trim",
  label: "Trim white space",
  description: "Without the white space at its ends",
  fields: {
    input: mapped(text("Text", { required: true })),
    side: option(select("Side", { both: "Both", start: "Start", end: "End" }, "both")),
    collapse_inner: option(flag("One space within", false, "Runs of white space become one space"))
  },
  lines: "map",
  output: { result: string },
  cost: { character: 100 },
  sample: { inputs: { input: "  a  b " }, options: { collapse_inner: true }, output: { result: "a b" } },
  run: ({ collapse_inner, input, side }) => {
    const kept = input.slice(...insideOf(input, side))
    if (!collapse_inner) return { result: kept }
    // Characters at an end that is not trimmed are not counted as inner ones.
    const [from, to] = insideOf(kept)
    return { result: kept.slice(0, from) + kept.slice(from, to).replaceAll(spaces, " ") + kept.slice(to) }
  }
})
