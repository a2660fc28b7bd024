import { tooMuch } from "../engine/Fault.ts"
import { flag, isEmpty, list, mapped, option } from "../engine/Fields.ts"
import { limits } from "../engine/Limits.ts"
import { anything, array, int, operation } from "../engine/Operation.ts"

const maxLists = 10

export const appendLineItems = operation({
  key: "utility.append_line_items",
  label: "Append line items",
  description: "One list of several, one after the other",
  fields: {
    lists: mapped(list("Lists", { required: true, minimum: 2, maximum: maxLists, help: "Lists or single values" })),
    skip_empty: option(flag("Leave out empty elements"))
  },
  lines: "aggregate",
  output: { items: array(anything), count: int },
  limits: { lists: maxLists },
  cost: { call: 20 },
  sample: { inputs: { lists: [["a"], ["b", "c"]] }, options: {}, output: { items: ["a", "b", "c"], count: 3 } },
  run: ({ lists, skip_empty }) => {
    const items = lists.flatMap((one) => one).filter((one) => !skip_empty || !isEmpty(one))
    if (items.length > limits.line_items)
      throw tooMuch("there are too many elements", limits.line_items, items.length, "lists")
    return { items, count: items.length }
  }
})
