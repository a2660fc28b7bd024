import { mapped, text } from "../engine/Fields.ts"
import { anyAscii } from "../engine/Libraries.ts"
import { operation, string } from "../engine/Operation.ts"

export const toAscii = operation({
  key: "text.to_ascii",
  label: "To ASCII",
  description: "Letters of all scripts in those of ASCII, by their sound",
  fields: { input: mapped(text("Text", { required: true })) },
  lines: "map",
  output: { result: string },
  cost: { call: 5, character: 250 },
  sample: { inputs: { input: "Ærøskøbing" }, options: {}, output: { result: "Aeroskobing" } },
  run: ({ input }) => ({ result: anyAscii()(input) })
})
