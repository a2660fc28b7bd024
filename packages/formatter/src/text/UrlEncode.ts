import { flag, mapped, option, text } from "../engine/Fields.ts"
import { operation, string } from "../engine/Operation.ts"

const escaped = (char: string): string => `%${char.charCodeAt(0).toString(16).toUpperCase()}`

export const urlEncode = operation({
  key: "text.url_encode",
  label: "URL encode",
  description: "As it may stand in a URL",
  fields: {
    input: mapped(text("Text", { required: true })),
    use_plus: option(
      flag("Plus for a space", false, "As forms are written; slashes are encoded, too, unless they are kept")
    ),
    keep_slash: option({ ...flag("Keep slashes", true), absent: () => null })
  },
  lines: "map",
  output: { result: string },
  cost: { character: 100 },
  sample: { inputs: { input: "user+test@example.com" }, options: {}, output: { result: "user%2Btest%40example.com" } },
  run: ({ input, keep_slash, use_plus }) => {
    const encoded = encodeURIComponent(input).replaceAll(/[!'()*]/g, escaped)
    const slashed = (keep_slash ?? !use_plus) ? encoded.replaceAll("%2F", "/") : encoded
    return { result: use_plus ? slashed.replaceAll("%20", "+") : slashed }
  }
})
