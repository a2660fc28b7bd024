import { isJsonNumber } from "@tidegate/json/ExactNumber"
import { Schema } from "effect"
import type { Decimal } from "decimal.js"
import { Fault, tooMuch } from "../engine/Fault.ts"
import { flag, integer, mapped, needed, option, pairs, symbols } from "../engine/Fields.ts"
import { decimal } from "../engine/Libraries.ts"
import { limits } from "../engine/Limits.ts"
import { array, int, object, operation } from "../engine/Operation.ts"
import { emitted } from "../formula/Values.ts"
import { numberIn } from "../number/Numerals.ts"

const maxProperties = 50
const isText = Schema.is(Schema.String)

/** The values of a property, one for each row: from a list, or from a comma-separated text. */
const columnOf = (value: Schema.Json): ReadonlyArray<Schema.Json> =>
  Array.isArray(value)
    ? value
    : isText(value)
      ? value.split(",").map((part) => part.trim())
      : value === null
        ? []
        : [value]

const amount = (value: Schema.Json | undefined): Decimal | null => {
  const digits = isText(value) ? numberIn(value, ".") : isJsonNumber(value) ? String(value) : null
  return digits === null ? null : new (decimal())(digits)
}

const tooLarge = (): Fault => new Fault("FORMATTER_INPUT_INVALID", "a subtotal is too large", { field: "properties" })

export const lineItemizer = operation({
  key: "utility.line_itemizer",
  label: "Line itemizer",
  description: "Rows of lists: the first elements make the first row",
  fields: {
    group_name: symbols("Name of the group", { default: "line_items" }),
    properties: mapped(
      needed(pairs("Properties", { minimum: 1, maximum: maxProperties, help: "Lists, or texts with commas" }))
    ),
    subtotal: option(flag("Subtotal", false, "Of price and quantity (or qty)")),
    decimals: option(integer("Decimals of the subtotal", { default: 2, minimum: 0, maximum: 10 }))
  },
  lines: "aggregate",
  output: { count: int },
  others: { "^(?!count$)": array(object) },
  warnings: ["LINE_ITEM_LENGTH_MISMATCH", "INPUT_SKIPPED"],
  limits: { properties: maxProperties },
  cost: { call: 50 },
  sample: {
    inputs: { properties: { name: "one,two", price: [1.5, 2] } },
    options: {},
    output: {
      line_items: [
        { name: "one", price: 1.5 },
        { name: "two", price: 2 }
      ],
      count: 2
    }
  },
  run: ({ decimals, group_name, properties, subtotal }, call) => {
    if (["count", "__proto__"].includes(group_name)) {
      throw new Fault("FORMATTER_INPUT_INVALID", "the group cannot have this name", { field: "group_name" })
    }
    const columns = properties.map(([name, value]) => [name, columnOf(value)] as const)
    const count = Math.max(...columns.map(([, column]) => column.length))
    if (count > limits.line_items) throw tooMuch("there are too many rows", limits.line_items, count, "properties")
    call.spend(count * columns.length * 0.5)
    if (columns.some(([, column]) => column.length !== count)) {
      call.warn("LINE_ITEM_LENGTH_MISMATCH", "the lists are not of one length", "properties")
    }
    const rows = Array.from({ length: count }, (_, at) => {
      const row: Record<string, Schema.Json> = Object.fromEntries(
        columns.flatMap(([name, column]) => (at < column.length ? [[name, column[at]!] as const] : []))
      )
      if (!subtotal) return row
      const [price, quantity] = [amount(row["price"]), amount(row["quantity"] ?? row["qty"])]
      if (price === null || quantity === null) {
        call.warn("INPUT_SKIPPED", "a row has no price or no quantity", "properties")
        return row
      }
      call.spend(5)
      row["subtotal"] = emitted(price.times(quantity).toDecimalPlaces(decimals), call, tooLarge)
      return row
    })
    return { [group_name === "" ? "line_items" : group_name]: rows, count }
  }
})
