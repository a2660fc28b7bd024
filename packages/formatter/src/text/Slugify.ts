import { integer, mapped, option, select, text } from "../engine/Fields.ts"
import { anyAscii } from "../engine/Libraries.ts"
import { operation, string } from "../engine/Operation.ts"

export const slugify = operation({
  key: "text.slugify",
  label: "Slugify",
  description: "A name for a URL: small letters and digits, and a separator between them",
  fields: {
    input: mapped(text("Text", { required: true })),
    separator: option(select("Separator", { "-": "-", _: "_", ".": "." }, "-")),
    max_length: option(integer("Max length", { default: 100, minimum: 1, maximum: 255 }))
  },
  lines: "map",
  output: { result: string },
  cost: { call: 5, character: 300 },
  sample: { inputs: { input: "Crème brûlée, twice!" }, options: {}, output: { result: "creme-brulee-twice" } },
  run: ({ input, max_length, separator }) => {
    const words =
      anyAscii()(input)
        .toLowerCase()
        .match(/[a-z0-9]+/g) ?? []
    const slug = words.join(separator).slice(0, max_length)
    return { result: slug.endsWith(separator) ? slug.slice(0, -1) : slug }
  }
})
