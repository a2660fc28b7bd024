import * as Characters from "@tidegate/model/Characters"
import { flag, mapped, option, text } from "../engine/Fields.ts"
import { int, operation } from "../engine/Operation.ts"
import { spaces } from "./Space.ts"

export const length = operation({
  key: "text.length",
  label: "Length",
  description: "How many characters a text has",
  fields: { input: mapped(text("Text")), ignore_whitespace: option(flag("Without white space")) },
  lines: "map",
  output: { result: int },
  sample: { inputs: { input: "héllo 👋" }, options: {}, output: { result: 7 } },
  run: ({ ignore_whitespace, input }) => ({
    result: Characters.count(ignore_whitespace ? input.replaceAll(spaces, "") : input)
  })
})
