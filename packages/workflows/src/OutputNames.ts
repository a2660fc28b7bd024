import { didYouMean } from "@tidegate/model/NearestName"
import { Predicate, type Schema } from "effect"

/**
 * The names in outputs, and in the body of what begins a run, by their JSON Schemas. A template or condition that uses another name finds nothing. That is a warning
 * and no error: a mock may replace the step, and a schema may be incomplete.
 */

type JsonSchema = Schema.JsonObject

/** The schema of an object with these members; their types are open. */
export const objectOf = (...names: ReadonlyArray<string>): JsonSchema => ({
  type: "object",
  properties: Object.fromEntries(names.map((name) => [name, {}]))
})

/** The schema of a step that runs for a list: the outputs of its elements, in order. */
export const listedOutput = (each: JsonSchema | null): JsonSchema => ({
  type: "object",
  properties: { items: { type: "array", items: each ?? {} }, count: {} }
})

const objectIn = (schema: JsonSchema, member: string): JsonSchema | null => {
  const found = Object.hasOwn(schema, member) ? schema[member] : undefined
  return Predicate.isReadonlyObject(found) ? (found as JsonSchema) : null
}

/**
 * The fault of a path into an output, or into another value that is `called` so; null when it may find something, or the schema
 * is not known. An index of a list is null.
 */
export const outputFault = (
  schema: JsonSchema | null,
  way: ReadonlyArray<string | null>,
  called = "output"
): string | null => {
  let at = schema
  let shown = called
  for (const name of way) {
    if (at === null) return null
    if (name === null) {
      at = objectIn(at, "items")
      shown += "[]"
      continue
    }
    const members = objectIn(at, "properties")
    // A list may be read by the names of its elements.
    if (members === null || Object.hasOwn(at, "additionalProperties")) return null
    if (!Object.hasOwn(members, name)) {
      const patterns = Object.keys(objectIn(at, "patternProperties") ?? {})
      if (patterns.some((pattern) => new RegExp(pattern, "u").test(name))) return null
      const known = Object.keys(members)
      return `${shown} has no ${name}: there are ${known.join(", ")}${didYouMean(name, known)}`
    }
    at = objectIn(members, name)
    shown += `.${name}`
  }
  return null
}
