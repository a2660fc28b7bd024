import { isJsonObject } from "@tidegate/json/ExactNumber"
import { type Schema } from "effect"
import { integer, list, mapped, symbols } from "../engine/Fields.ts"
import { array, int, object, operation } from "../engine/Operation.ts"

export const lineItemNumbering = operation({
  key: "utility.line_item_numbering",
  label: "Number line items",
  description: "The rows with their numbers",
  fields: {
    line_items: mapped(list("Line items", { required: true })),
    name: symbols("Name of the number", { default: "number" }),
    start: integer("First number", { default: 1 }),
    step: integer("Step", { default: 1 })
  },
  lines: "aggregate",
  output: { line_items: array(object), count: int },
  warnings: ["PROPERTY_EXISTS"],
  cost: { call: 50 },
  sample: {
    inputs: { line_items: [{ sku: "a" }, { sku: "b" }] },
    options: {},
    output: {
      line_items: [
        { sku: "a", number: 1 },
        { sku: "b", number: 2 }
      ],
      count: 2
    }
  },
  run: ({ line_items, name: given, start, step }, call) => {
    const name = given === "" ? "number" : given
    const rows = line_items.map((item, at): Schema.Json => {
      const row = isJsonObject(item) ? (item as Readonly<Record<string, Schema.Json>>) : { value: item }
      if (Object.hasOwn(row, name)) {
        call.warn("PROPERTY_EXISTS", `row ${at + 1} has ${name.slice(0, 40)} already`, "line_items")
        return row
      }
      return { ...row, [name]: start + at * step }
    })
    return { line_items: rows, count: rows.length }
  }
})
