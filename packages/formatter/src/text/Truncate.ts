import * as Characters from "@tidegate/model/Characters"
import { flag, integer, mapped, needed, option, text } from "../engine/Fields.ts"
import { operation, string } from "../engine/Operation.ts"
import { unitOf } from "./Search.ts"

export const truncate = operation({
  key: "text.truncate",
  label: "Truncate",
  description: "At most so many characters of a text",
  fields: {
    input: mapped(text("Text", { required: true })),
    max_length: needed(integer("Max length", { minimum: 0, maximum: 100_000 })),
    offset: integer("Start at", { default: 0, help: "Negative: counted from the end" }),
    append_ellipsis: option(flag("Add ellipsis", false, "Three dots, which count, where something was cut off"))
  },
  lines: "map",
  output: { result: string },
  empty: { result: "" },
  sample: {
    inputs: { input: "abcdefgh", max_length: 6 },
    options: { append_ellipsis: true },
    output: { result: "abc..." }
  },
  run: ({ append_ellipsis, input, max_length, offset }) => {
    const most = max_length ?? 0
    const rest = input.slice(unitOf(input, offset < 0 ? Math.max(Characters.count(input) + offset, 0) : offset))
    const end = unitOf(rest, most)
    if (end >= rest.length || !append_ellipsis) return { result: rest.slice(0, end) }
    return {
      result: (rest.slice(0, unitOf(rest, Math.max(most - 3, 0))) + "...").slice(0, most < 3 ? most : undefined)
    }
  }
})
