import { locale, mapped, option, text } from "../engine/Fields.ts"
import { operation, string } from "../engine/Operation.ts"

export const uppercase = operation({
  key: "text.uppercase",
  label: "Uppercase",
  description: "All letters capitals, as the locale has it",
  fields: { input: mapped(text("Text", { required: true })), locale: option(locale("en")) },
  lines: "map",
  output: { result: string },
  errors: ["FORMATTER_LOCALE_UNKNOWN"],
  sample: { inputs: { input: "Grüße" }, options: {}, output: { result: "GRÜSSE" } },
  run: ({ input, locale }) => ({ result: input.toLocaleUpperCase(locale) })
})
