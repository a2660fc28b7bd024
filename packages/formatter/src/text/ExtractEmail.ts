import { mapped, option, select, text } from "../engine/Fields.ts"
import { array, either, operation, string } from "../engine/Operation.ts"
import { chosen } from "./Matches.ts"
import { emailsIn } from "./Addresses.ts"
import { whichOf } from "./Search.ts"

export const extractEmail = operation({
  key: "text.extract_email",
  label: "Extract an e-mail address",
  description: "The addresses in a text",
  fields: {
    input: mapped(text("Text", { required: true, long: true })),
    which: option(select("Which", whichOf, "first"))
  },
  lines: "map",
  linesFor: ({ which }) => (which === "all" ? "reject" : "map"),
  output: { result: either(string, array(string)) },
  warnings: ["NO_MATCH"],
  limits: { matches: 1000 },
  cost: { character: 250 },
  sample: { inputs: { input: "Write to ada@example.com." }, options: {}, output: { result: "ada@example.com" } },
  run: ({ input, which }, call) =>
    chosen(
      emailsIn(input).map(({ text }) => text),
      which,
      call
    )
})
