import { tooMuch } from "../engine/Fault.ts"
import { flag, option, symbols, text } from "../engine/Fields.ts"
import { limits } from "../engine/Limits.ts"
import { array, int, operation, string } from "../engine/Operation.ts"
import { maxSought } from "../text/Search.ts"

export const textToLineItems = operation({
  key: "utility.text_to_line_items",
  label: "Text to line items",
  description: "A list of the parts of a text",
  fields: {
    input: text("Text", { required: true, long: true }),
    separator: symbols("Separator", { default: ",", maximum: maxSought }),
    trim: option(flag("Trim white space")),
    skip_empty: option(flag("Leave out empty parts"))
  },
  lines: "reject",
  output: { items: array(string), count: int },
  cost: { character: 60 },
  sample: { inputs: { input: "a,b,c" }, options: {}, output: { items: ["a", "b", "c"], count: 3 } },
  run: ({ input, separator, skip_empty, trim }) => {
    const parts = input === "" ? [] : separator === "" ? [input] : input.split(separator)
    const items = parts.map((part) => (trim ? part.trim() : part)).filter((part) => !skip_empty || part !== "")
    if (items.length > limits.line_items)
      throw tooMuch("there are too many parts", limits.line_items, items.length, "input")
    return { items, count: items.length }
  }
})
