import * as Characters from "@tidegate/model/Characters"
import { flag, integer, mapped, needed, option, symbols, text } from "../engine/Fields.ts"
import { int, operation } from "../engine/Operation.ts"
import { folded, maxSought, unitOf } from "./Search.ts"

export const find = operation({
  key: "text.find",
  label: "Find",
  description: "Where a text begins within another, counted from 0; -1 where it does not",
  fields: {
    input: mapped(text("Text", { required: true })),
    find: needed(symbols("Find", { maximum: maxSought })),
    offset: integer("Start at", { default: 0 }),
    case_sensitive: option(flag("Case matters", true))
  },
  lines: "map",
  output: { result: int },
  empty: { result: -1 },
  sample: { inputs: { input: "Ada Lovelace", find: "Love" }, options: {}, output: { result: 4 } },
  run: ({ case_sensitive, find, input, offset }) => {
    if (find === "") return { result: -1 }
    const from = unitOf(input, offset < 0 ? Math.max(Characters.count(input) + offset, 0) : offset)
    const place = case_sensitive ? input.indexOf(find, from) : folded(input).indexOf(folded(find), from)
    return { result: place < 0 ? -1 : Characters.count(input.slice(0, place)) }
  }
})
