import type { Schema } from "effect"
import { Fault } from "../engine/Fault.ts"
import { any, flag, mapped, needed, option, type Pairs, pairs, text } from "../engine/Fields.ts"
import { anything, operation } from "../engine/Operation.ts"

const maxRows = 500

type Rows = ReadonlyMap<string, Schema.Json>

const made = (table: Pairs, caseSensitive: boolean): Rows => {
  const rows = new Map<string, Schema.Json>()
  for (const [key, value] of table) {
    const sought = caseSensitive ? key : key.toLowerCase()
    if (rows.has(sought)) {
      throw new Fault("FORMATTER_CONFIG_INVALID", "a key is there twice", {
        field: "table",
        value_preview: key.slice(0, 80)
      })
    }
    rows.set(sought, value)
  }
  return rows
}

/** Lookup tables by their pairs: each step has one table for all elements. */
const kept = { exact: new WeakMap<Pairs, Rows>(), folded: new WeakMap<Pairs, Rows>() }

const rowsOf = (table: Pairs, caseSensitive: boolean): Rows => {
  const tables = caseSensitive ? kept.exact : kept.folded
  const rows = tables.get(table) ?? made(table, caseSensitive)
  tables.set(table, rows)
  return rows
}

export const lookupTable = operation({
  key: "utility.lookup_table",
  label: "Lookup table",
  description: "The value that stands beside a key",
  fields: {
    input: mapped(text("Key")),
    table: option(needed(pairs("Table", { minimum: 1, maximum: maxRows }))),
    fallback: any("Fallback", { default: "" }),
    case_sensitive: option(flag("Case matters", true))
  },
  // A duplicate key is an error of the step, and reported before it runs.
  judge: ({ case_sensitive, table }) => void rowsOf(table, case_sensitive),
  lines: "map",
  output: { result: anything },
  warnings: ["LOOKUP_FALLBACK_USED"],
  errors: ["FORMATTER_CONFIG_INVALID"],
  limits: { rows: maxRows },
  cost: { call: 40 },
  sample: {
    inputs: { input: "DE" },
    options: { table: { DE: "Germany", FR: "France" } },
    output: { result: "Germany" }
  },
  run: ({ case_sensitive, fallback, input, table }, call) => {
    const rows = rowsOf(table, case_sensitive)
    const key = case_sensitive ? input : input.toLowerCase()
    if (input !== "" && rows.has(key)) return { result: rows.get(key)! }
    call.warn("LOOKUP_FALLBACK_USED", "the table has no such key", "input")
    return { result: fallback }
  }
})
