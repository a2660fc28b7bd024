import { tooMuch } from "../engine/Fault.ts"
import { mapped, option, selectOr, symbols, text } from "../engine/Fields.ts"
import { array, either, operation, string } from "../engine/Operation.ts"
import { maxSought } from "./Search.ts"
import { insideOf, spaces } from "./Space.ts"

const maxParts = 1000
const positions = { first: 0, second: 1, second_last: -2, last: -1 } as const

/** The parts, at most `most`. Without a separator, white space separates them. */
const partsOf = (input: string, separator: string, most?: number): ReadonlyArray<string> =>
  separator === "" ? input.slice(...insideOf(input)).split(spaces, most) : input.split(separator, most)

export const split = operation({
  key: "text.split",
  label: "Split text",
  description: "One part of a text, or all of them",
  fields: {
    input: mapped(text("Text", { required: true })),
    separator: symbols("Separator", { maximum: maxSought, help: "Empty: runs of white space" }),
    index: option(
      selectOr(
        "Which part",
        {
          first: "First",
          second: "Second",
          second_last: "Second to last",
          last: "Last",
          all: "All, as line items",
          fields: "All, as fields"
        },
        "first",
        {
          takes: "a whole number, negative from the end",
          read: (value) => {
            const read = typeof value === "string" && /^-?\d{1,6}$/.test(value) ? Number(value) : value
            return Number.isSafeInteger(read) ? (read as number) : null
          }
        }
      )
    )
  },
  lines: "map",
  linesFor: ({ index }) => (index === "all" || index === "fields" ? "reject" : "map"),
  output: { result: either(string, array(string)) },
  others: { "^item_\\d+$": string },
  optional: ["result"],
  empty: { result: "" },
  warnings: ["NO_MATCH"],
  errors: ["FORMATTER_CONFIG_INVALID"],
  limits: { parts: maxParts },
  cost: { character: 80 },
  sample: { inputs: { input: "a:b", separator: ":" }, options: { index: "last" }, output: { result: "b" } },
  run: ({ index, input, separator }, call) => {
    const parts = partsOf(input, separator, maxParts + 1)
    if (index === "all" || index === "fields") {
      if (parts.length > maxParts) throw tooMuch("the text has too many parts", maxParts, parts.length, "input")
      return index === "all" ? { result: parts } : Object.fromEntries(parts.map((part, at) => [`item_${at + 1}`, part]))
    }
    const position = typeof index === "number" ? index : positions[index]
    const counted = position < 0 && parts.length > maxParts ? partsOf(input, separator) : parts
    const part = counted.at(position)
    if (part === undefined) call.warn("NO_MATCH", "there is no such part", "input")
    return { result: part ?? "" }
  }
})
