import { isJsonNumber, isWholeNumber } from "@tidegate/json/ExactNumber"
import { Predicate, type Schema } from "effect"
import type { Output } from "./Operation.ts"

const typeOf = (value: Schema.Json): string =>
  value === null
    ? "null"
    : Array.isArray(value)
      ? "array"
      : isJsonNumber(value)
        ? isWholeNumber(value)
          ? "integer"
          : "number"
        : typeof value

const fits = (schema: Schema.Json, type: string): boolean =>
  Predicate.isReadonlyObject(schema) &&
  (schema["type"] === type || (schema["type"] === "number" && type === "integer") || schema["type"] === undefined)

/** The alternative of a schema that a value matches. */
const chosen = (schema: Schema.JsonObject, value: Schema.Json): Schema.JsonObject => {
  const { anyOf } = schema
  if (!Array.isArray(anyOf)) return schema
  const found = (anyOf as ReadonlyArray<Schema.JsonObject>).find((one) => fits(one, typeOf(value)))
  return found === undefined ? schema : chosen(found, value)
}

/** The schema of an actual output: other alternatives are removed, and with line items each member is a list. */
export const narrowed = (schema: Schema.JsonObject, output: Output, isMapped: boolean): Schema.JsonObject => {
  const properties = schema["properties"] as Readonly<Record<string, Schema.JsonObject>>
  const made = Object.entries(output).map(([name, value]) => {
    const declared = Object.hasOwn(properties, name) ? properties[name]! : schemaOf(isMapped ? null : value)
    return [name, isMapped ? { type: "array", items: declared } : chosen(declared, value)] as const
  })
  return { type: "object", properties: Object.fromEntries(made), required: made.map(([name]) => name) }
}

const schemaOf = (value: Schema.Json): Schema.JsonObject => (value === null ? {} : { type: typeOf(value) })
