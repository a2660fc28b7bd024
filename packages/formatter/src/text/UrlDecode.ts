import { flag, mapped, option, text } from "../engine/Fields.ts"
import { operation, string } from "../engine/Operation.ts"

export const urlDecode = operation({
  key: "text.url_decode",
  label: "URL decode",
  description: "As it was before it stood in a URL",
  fields: { input: mapped(text("Text", { required: true })), use_plus: option(flag("Plus is a space")) },
  lines: "map",
  output: { result: string },
  warnings: ["MALFORMED_ESCAPE"],
  cost: { character: 150 },
  sample: { inputs: { input: "a%20b" }, options: {}, output: { result: "a b" } },
  run: ({ input, use_plus }, call) => {
    const plain = use_plus ? input.replaceAll("+", " ") : input
    if (/%(?![0-9a-f]{2})/i.test(plain)) call.warn("MALFORMED_ESCAPE", "a % is no escape, and was kept", "input")
    return {
      result: plain.replaceAll(/(?:%[0-9a-f]{2})+/gi, (run) =>
        Buffer.from(run.replaceAll("%", ""), "hex").toString("utf8")
      )
    }
  }
})
