import { locale, mapped, option, text } from "../engine/Fields.ts"
import { operation, string } from "../engine/Operation.ts"
import { capitalized } from "./Capital.ts"

export const capitalize = operation({
  key: "text.capitalize",
  label: "Capitalize",
  description: "Every word with a capital, and small letters after it",
  fields: { input: mapped(text("Text", { required: true })), locale: option(locale("en")) },
  lines: "map",
  output: { result: string },
  errors: ["FORMATTER_LOCALE_UNKNOWN"],
  cost: { character: 200 },
  sample: { inputs: { input: "ORIGIN OF 34" }, options: {}, output: { result: "Origin Of 34" } },
  run: ({ input, locale }) => ({
    result: input.replaceAll(/\S+/gu, (word) => capitalized(word.toLocaleLowerCase(locale), locale))
  })
})
