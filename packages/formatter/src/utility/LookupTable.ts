import { Fault } from "../engine/Fault.ts"
import { any, flag, mapped, needed, option, pairs, quantity } from "../engine/Fields.ts"
import { anything, operation } from "../engine/Operation.ts"

const mostRows = 500

export const lookupTable = operation({
  key: "utility.lookup_table",
  label: "Lookup table",
  description: "The value that stands beside a key",
  fields: {
    input: mapped(quantity("Key")),
    table: option(needed(pairs("Table", { minimum: 1, maximum: mostRows }))),
    fallback: any("Fallback"),
    case_sensitive: option(flag("Case matters", true))
  },
  lines: "map",
  output: { result: anything },
  warnings: ["LOOKUP_FALLBACK_USED"],
  errors: ["FORMATTER_CONFIG_INVALID"],
  limits: { rows: mostRows },
  cost: { call: 40 },
  sample: {
    inputs: { input: "DE" },
    options: { table: { DE: "Germany", FR: "France" } },
    output: { result: "Germany" }
  },
  run: ({ case_sensitive, fallback, input, table }, call) => {
    const keyOf = (text: string): string => (case_sensitive ? text : text.toLowerCase())
    const seen = new Set<string>()
    for (const [key] of table) {
      if (seen.has(keyOf(key))) {
        throw new Fault("FORMATTER_CONFIG_INVALID", "a key is there twice", {
          field: "table",
          value_preview: key.slice(0, 80)
        })
      }
      seen.add(keyOf(key))
    }
    const found = input === "" ? undefined : table.find(([key]) => keyOf(key) === keyOf(input))
    if (found !== undefined) return { result: found[1] }
    call.warn("LOOKUP_FALLBACK_USED", "the table has no such key", "input")
    return { result: fallback ?? "" }
  }
})
