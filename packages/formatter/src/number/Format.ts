import { decimal } from "../engine/Libraries.ts"
import { integer, mapped, option, quantity, select } from "../engine/Fields.ts"
import { operation, string } from "../engine/Operation.ts"
import { numberIn } from "./Numerals.ts"

/** Separators of groups and decimals, by the number of the format. */
const marks = { "0": [",", "."], "1": [".", ","], "2": [" ", "."], "3": [" ", ","] } as const

const grouped = (digits: string, separator: string, grouping: "3" | "indian" | "none"): string => {
  if (grouping === "none" || digits.length <= 3) return digits
  const size = grouping === "indian" ? 2 : 3
  const head = digits.slice(0, -3)
  const groups: Array<string> = []
  for (let end = head.length; end > 0; end -= size) groups.unshift(head.slice(Math.max(0, end - size), end))
  return [...groups, digits.slice(-3)].join(separator)
}

export const format = operation({
  key: "number.format",
  label: "Format a number",
  description: "With the marks that people of a country write",
  fields: {
    input: mapped(quantity("Number", { required: true })),
    decimals: integer("Decimals", {
      minimum: 0,
      maximum: 10,
      help: "Default: all digits; halves are rounded away from zero"
    }),
    input_decimal_mark: option(select("Decimal mark of the input", { ".": "Point", ",": "Comma" }, ".")),
    output_format: option(select("Format", { "0": "1,234.5", "1": "1.234,5", "2": "1 234.5", "3": "1 234,5" }, "0")),
    grouping: option(select("Groups", { "3": "Of three digits", indian: "Indian", none: "None" }, "3"))
  },
  lines: "map",
  output: { result: string },
  empty: { result: "" },
  warnings: ["UNPARSEABLE_UNCHANGED"],
  cost: { call: 10 },
  sample: { inputs: { input: "1234.567" }, options: {}, output: { result: "1,234.567" } },
  run: ({ decimals, grouping, input, input_decimal_mark, output_format }, call) => {
    const plain = numberIn(input, input_decimal_mark)
    if (plain === null) {
      call.warn("UNPARSEABLE_UNCHANGED", "the value is no number", "input")
      return { result: input }
    }
    const isPlain = decimals === null && !/e/i.test(plain)
    const shown = isPlain ? plain : new (decimal())(plain).toFixed(decimals ?? undefined)
    const [, sign = "", whole = "", fraction = ""] = /^([-+]?)0*(\d*)\.?(\d*)$/.exec(shown) ?? []
    const [group, mark] = marks[output_format]
    const isZero = !/[1-9]/.test(whole + fraction)
    const digits = `${grouped(whole === "" ? "0" : whole, group, grouping)}${fraction === "" ? "" : mark + fraction}`
    return { result: sign === "-" && !isZero ? `-${digits}` : digits }
  }
})
