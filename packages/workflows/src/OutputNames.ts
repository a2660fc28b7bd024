import { didYouMean } from "@tidegate/model/NearestName"
import { Predicate, type Schema } from "effect"

/**
 * The names that outputs have, by their JSON Schemas. A template or a condition that asks for another finds nothing, which is told as a warning and not
 * refused: a test's mock may stand in for the step, and a schema may say less than there is.
 */

type JsonSchema = Schema.JsonObject

/** The schema of an object that has these members, each of them whatever it is unless it is told. */
export const objectOf = (...names: ReadonlyArray<string>): JsonSchema => ({
  type: "object",
  properties: Object.fromEntries(names.map((name) => [name, {}]))
})

/** Of a step that runs for a list: what it gives for each element, in their order. */
export const listedOutput = (each: JsonSchema | null): JsonSchema => ({
  type: "object",
  properties: { items: { type: "array", items: each ?? {} }, count: {} }
})

const objectIn = (schema: JsonSchema, member: string): JsonSchema | null => {
  const found = Object.hasOwn(schema, member) ? schema[member] : undefined
  return Predicate.isReadonlyObject(found) ? (found as JsonSchema) : null
}

/** What is wrong with names on the way into an output; null when they may lead somewhere, or nobody knows. A place in a list is null. */
export const outputFault = (schema: JsonSchema | null, way: ReadonlyArray<string | null>): string | null => {
  let at = schema
  let shown = "output"
  for (const name of way) {
    if (at === null) return null
    if (name === null) {
      at = objectIn(at, "items")
      shown += "[]"
      continue
    }
    const members = objectIn(at, "properties")
    // What is a list here may be asked by its elements' names.
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
