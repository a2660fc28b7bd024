import { readNumber } from "@tidegate/json/ExactNumber"
import { mapped, option, select, text } from "../engine/Fields.ts"
import { array, either, num, operation, string } from "../engine/Operation.ts"
import { numberIn } from "../number/Numerals.ts"
import { chosen } from "./Matches.ts"
import { whichOf } from "./Search.ts"

/** A decimal mark begins a number only if nothing but a sign precedes it: in `apples,3` it belongs to the sentence. */
const writtenBy = (mark: string): RegExp =>
  new RegExp(String.raw`[+\-\u2212]?(?:\d(?:[\d.,]*\d)?|(?<![\p{L}\p{N}][+\-\u2212]?)[${mark}]\d+)`, "gu")
const written = { ".": writtenBy("."), ",": writtenBy(",") } as const

export const extractNumber = operation({
  key: "text.extract_number",
  label: "Extract a number",
  description: "The numbers in a text, as they are written",
  fields: {
    input: mapped(text("Text", { required: true, long: true })),
    which: option(select("Which", whichOf, "first")),
    as: option(select("As", { text: "Text", number: "Number" }, "text")),
    decimal_mark: option(select("Decimal mark", { ".": "Point", ",": "Comma" }, "."))
  },
  lines: "map",
  linesFor: ({ which }) => (which === "all" ? "reject" : "map"),
  output: { result: either(string, num, array(either(string, num))) },
  warnings: ["NO_MATCH", "NUMBER_AS_TEXT", "OUTPUT_CAPPED"],
  cost: { character: 150 },
  sample: { inputs: { input: "I have 3,124 dogs" }, options: {}, output: { result: "3,124" } },
  run: ({ as, decimal_mark, input, which }, call) => {
    const found = input.match(written[decimal_mark]) ?? []
    if (as === "text") return chosen(found, which, call)
    const read = found.flatMap((one): ReadonlyArray<string | number> => {
      const plain = numberIn(one, decimal_mark)
      if (plain === null) return []
      const value = readNumber(plain)
      if (typeof value === "number" && (!Number.isInteger(value) || Number.isSafeInteger(value))) return [value]
      call.warn("NUMBER_AS_TEXT", "a number has more digits than a number keeps, and is given as text", "input")
      return [plain]
    })
    return chosen(read, which, call)
  }
})
