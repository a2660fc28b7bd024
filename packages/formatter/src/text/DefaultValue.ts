import { any, isEmpty, mapped, needed, symbols } from "../engine/Fields.ts"
import { tooMuch } from "../engine/Fault.ts"
import { limits } from "../engine/Limits.ts"
import { anything, operation } from "../engine/Operation.ts"

export const defaultValue = operation({
  key: "text.default_value",
  label: "Default value",
  description: "Another value where there is none; 0 and false are values",
  fields: { input: mapped(any("Value")), default_value: needed(symbols("Default")) },
  lines: "aggregate",
  output: { result: anything },
  sample: { inputs: { input: ["a", ""], default_value: "n/a" }, options: {}, output: { result: ["a", "n/a"] } },
  run: ({ default_value, input }) => {
    if (Array.isArray(input) && input.length > limits.line_items)
      throw tooMuch("input has too many elements", limits.line_items, input.length, "input")
    if (!Array.isArray(input)) return { result: isEmpty(input) ? default_value : input }
    return { result: input.length === 0 ? [default_value] : input.map((one) => (isEmpty(one) ? default_value : one)) }
  }
})
