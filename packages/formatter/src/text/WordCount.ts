import { mapped, text } from "../engine/Fields.ts"
import { int, operation } from "../engine/Operation.ts"
import { words } from "./Space.ts"

export const wordCount = operation({
  key: "text.word_count",
  label: "Word count",
  description: "How many words a text has: what stands between white space",
  fields: { input: mapped(text("Text")) },
  lines: "map",
  output: { result: int },
  cost: { character: 100 },
  sample: { inputs: { input: "to be or not" }, options: {}, output: { result: 4 } },
  run: ({ input }) => {
    let count = 0
    for (const _ of input.matchAll(words)) count++
    return { result: count }
  }
})
