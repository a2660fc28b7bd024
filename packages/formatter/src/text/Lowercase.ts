import { locale, mapped, option, text } from "../engine/Fields.ts"
import { operation, string } from "../engine/Operation.ts"

export const lowercase = operation({
  key: "text.lowercase",
  label: "Lowercase",
  description: "All letters small, as the locale has it",
  fields: { input: mapped(text("Text", { required: true })), locale: option(locale("en")) },
  lines: "map",
  output: { result: string },
  errors: ["FORMATTER_LOCALE_UNKNOWN"],
  sample: { inputs: { input: "Grüße" }, options: {}, output: { result: "grüße" } },
  run: ({ input, locale }) => ({ result: input.toLocaleLowerCase(locale) })
})
