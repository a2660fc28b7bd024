import { Fault } from "../engine/Fault.ts"
import { list, mapped, symbols } from "../engine/Fields.ts"
import { limits } from "../engine/Limits.ts"
import { int, operation, string } from "../engine/Operation.ts"
import { textOfItem } from "./Items.ts"

const maxShown = 100

export const lineItemsToText = operation({
  key: "utility.line_items_to_text",
  label: "Line items to text",
  description: "The elements of a list in one text, and each by itself",
  fields: { list: mapped(list("List", { required: true })), separator: symbols("Separator", { default: "," }) },
  lines: "aggregate",
  output: { text: string, item_1: string, item_last: string, count: int },
  others: { "^item_\\d+$": string },
  warnings: ["OUTPUT_CAPPED"],
  limits: { fields: maxShown },
  cost: { call: 20 },
  sample: {
    inputs: { list: ["a", "b"] },
    options: {},
    output: { text: "a,b", item_1: "a", item_2: "b", item_last: "b", count: 2 }
  },
  run: ({ list, separator }, call) => {
    const items = list.map(textOfItem)
    // Checked before the text is built, because a long separator is repeated between all items.
    const length = items.reduce((sum, item) => sum + item.length, 0) + separator.length * Math.max(0, items.length - 1)
    if (length > limits.output_bytes) {
      throw new Fault("FORMATTER_OUTPUT_TOO_LARGE", "the output is too large", {
        limit: limits.output_bytes,
        actual: length
      })
    }
    if (items.length > maxShown) call.warn("OUTPUT_CAPPED", `only the first ${maxShown} have a field`, "list")
    const fields = Object.fromEntries(items.slice(0, maxShown).map((item, at) => [`item_${at + 1}`, item]))
    return { text: items.join(separator), item_1: "", ...fields, item_last: items.at(-1) ?? "", count: items.length }
  }
})
