import { Fault } from "../engine/Fault.ts"
import { flag, mapped, needed, option, select, symbols, text } from "../engine/Fields.ts"
import { limits } from "../engine/Limits.ts"
import { operation, string } from "../engine/Operation.ts"
import { maxSought, placesOf } from "./Search.ts"

export const replace = operation({
  key: "text.replace",
  label: "Replace",
  description: "Another text in place of one, taken literally",
  fields: {
    input: mapped(text("Text", { required: true })),
    find: needed(
      symbols("Find", {
        maximum: maxSought,
        help: "[:space:], [:tab:], [:newline:] and [:return:] stand for what they say"
      })
    ),
    replace: symbols("Replace with", { default: "" }),
    case_sensitive: option(flag("Case matters", true)),
    occurrences: option(select("Which", { all: "All", first: "First", last: "Last" }, "all"))
  },
  lines: "map",
  output: { result: string },
  warnings: ["NO_MATCH"],
  cost: { character: 150 },
  sample: {
    inputs: { input: "ada-lovelace", find: "-", replace: " " },
    options: {},
    output: { result: "ada lovelace" }
  },
  run: ({ case_sensitive, find, input, occurrences, replace }, call) => {
    if (find === "") return { result: input }
    const found = placesOf(input, find, case_sensitive)
    if (found.length === 0) call.warn("NO_MATCH", "the text was not found", "input")
    const places = occurrences === "all" ? found : occurrences === "first" ? found.slice(0, 1) : found.slice(-1)
    // Checked before the text is built, because a short text can become very long.
    const length = input.length + places.length * (replace.length - find.length)
    if (length > limits.output_bytes) {
      throw new Fault("FORMATTER_OUTPUT_TOO_LARGE", "the output is too large", {
        limit: limits.output_bytes,
        actual: length
      })
    }
    let result = ""
    let from = 0
    for (const place of places) {
      result += input.slice(from, place) + replace
      from = place + find.length
    }
    return { result: result + input.slice(from) }
  }
})
