import { flag, mapped, number, option, text } from "../engine/Fields.ts"
import { pluralize as library } from "../engine/Libraries.ts"
import { operation, string } from "../engine/Operation.ts"

export const pluralize = operation({
  key: "text.pluralize",
  label: "Pluralize",
  description: "The plural of an English word; of one thing, its singular",
  fields: {
    input: mapped(text("Word", { required: true })),
    count: number("How many"),
    include_count: option(flag("With the number"))
  },
  lines: "map",
  output: { result: string },
  limits: { characters: 200 },
  cost: { call: 20, character: 100 },
  sample: { inputs: { input: "child" }, options: {}, output: { result: "children" } },
  run: ({ count, include_count, input }) => {
    if (input.trim() === "") return { result: input }
    // Of several words the last is changed: `square foot`.
    const [before, last] = /^(.*\s)?(\S+)$/s.exec(input)?.slice(1) ?? [undefined, input]
    const word = (before ?? "") + library()(last!, count ?? 2)
    return { result: include_count && count !== null ? `${count} ${word}` : word }
  }
})
