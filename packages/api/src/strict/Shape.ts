/**
 * The names that a value may have, by the document's JSON Schemas, which are those that bodies are checked by. A shape is the
 * list of alternatives of a value. Alternatives without names are left out, except for numbers: a number with all its digits is
 * an object in JavaScript, and has to be distinguished from a real object.
 */

export interface JsonSchema {
  readonly [keyword: string]: unknown
}

/** Schemas refer to each other, some to themselves: a referenced shape is built when it is needed. */
export type Lazy = () => Shape

export interface ObjectShape {
  readonly kind: "object"
  readonly members: ReadonlyMap<string, Lazy>
  /** The shape of members that are not named; null: there are none. */
  readonly rest: Lazy | null
  /** Its owner refuses unknown members with its own messages. */
  readonly isClosed: boolean
  /** The members whose value identifies this alternative, with their values in it. */
  readonly tags: ReadonlyMap<string, { readonly values: ReadonlySet<unknown>; readonly isRequired: boolean }>
}

export interface ArrayShape {
  readonly kind: "array"
  readonly items: Lazy
}

/** `any`: any value, whose members are not named; `isObject`: any object. */
export type Alternative =
  | ObjectShape
  | ArrayShape
  | { readonly kind: "any"; readonly isObject?: true }
  | { readonly kind: "number" }
export type Shape = ReadonlyArray<Alternative>

const any: Shape = [{ kind: "any" }]
const anyObject: Shape = [{ kind: "any", isObject: true }]
const number: Shape = [{ kind: "number" }]
const nothing: Shape = []

export const isObject = (value: unknown): value is JsonSchema =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const listOf = (value: unknown): ReadonlyArray<JsonSchema> => (Array.isArray(value) ? value.filter(isObject) : [])

/** Other spellings of the schema's names are accepted; the owner refuses the rest. */
export const otherNames = "x-other-names"
/** The member whose members may also stand beside it. */
export const alsoBeside = "x-members-also-beside"

const structural = [
  "$ref",
  "anyOf",
  "oneOf",
  "allOf",
  "properties",
  "additionalProperties",
  "patternProperties",
  "items",
  "type",
  "enum",
  "const",
  "not",
  otherNames
]

/** The values that a schema is restricted to; null when it is not. */
const valuesOf = (schema: JsonSchema): ReadonlyArray<unknown> | null => {
  if (Array.isArray(schema["enum"])) return schema["enum"]
  if ("const" in schema) return [schema["const"]]
  if (schema["type"] === "null") return [null]
  const choices = [...listOf(schema["anyOf"]), ...listOf(schema["oneOf"])].map(valuesOf)
  return choices.length > 0 && choices.every((values) => values !== null) ? choices.flat() : null
}

/** The shapes of one document's schemas, each built once. */
export class Shapes {
  private readonly components: JsonSchema
  private readonly made = new Map<JsonSchema, Shape>()

  constructor(components: JsonSchema) {
    this.components = components
  }

  of(schema: unknown): Shape {
    if (!isObject(schema)) return any
    const made = this.made.get(schema)
    if (made !== undefined) return made
    const shape = this.make(schema)
    this.made.set(schema, shape)
    return shape
  }

  private lazy(schema: unknown): Lazy {
    return () => this.of(schema)
  }

  private make(schema: JsonSchema): Shape {
    const { $ref } = schema
    if (typeof $ref === "string") return this.of(this.components[$ref.slice($ref.lastIndexOf("/") + 1)])
    const parts = listOf(schema["allOf"])
    if (schema[otherNames] === true || parts.some((part) => part[otherNames] === true)) return any
    const beside = [schema, ...parts].map((part) => part[alsoBeside]).find((name) => typeof name === "string")
    const choices = [...listOf(schema["anyOf"]), ...listOf(schema["oneOf"])]
    const base = choices.length > 0 ? choices.flatMap((choice) => this.of(choice)) : this.plain(schema)
    const further = parts.filter((part) => structural.some((keyword) => keyword in part)).map((part) => this.of(part))
    const whole = further.reduce((left, right) => (right === any ? left : both(left, right)), base)
    return typeof beside === "string" ? whole.map((one) => withMembersOf(one, beside)) : whole
  }

  private plain(schema: JsonSchema): Shape {
    const { additionalProperties, items, properties, type } = schema
    if (type === "array") return [{ kind: "array", items: this.lazy(items ?? {}) }]
    const isNamed = isObject(properties) && Object.keys(properties).length > 0
    const isRecord = isObject(additionalProperties) || isObject(schema["patternProperties"])
    if (isNamed || isRecord) return [this.object(schema)]
    if (type === "number" || type === "integer") return number
    if (type === "object") return anyObject
    const isScalar = typeof type === "string"
    return isScalar || "enum" in schema || "const" in schema || "not" in schema ? nothing : any
  }

  private object({ additionalProperties, patternProperties, properties, required }: JsonSchema): ObjectShape {
    const named = Object.entries(isObject(properties) ? properties : {})
    const needed = new Set(Array.isArray(required) ? required : [])
    const patterns = isObject(patternProperties) ? Object.values(patternProperties) : []
    const rest = isObject(additionalProperties) ? [additionalProperties, ...patterns] : patterns
    return {
      kind: "object",
      members: new Map(named.map(([name, schema]) => [name, this.lazy(schema)])),
      rest: rest.length === 0 ? null : () => rest.flatMap((schema) => this.of(schema)),
      isClosed: additionalProperties === false,
      tags: new Map(
        named.flatMap(([name, schema]) => {
          const values = isObject(schema) ? valuesOf(schema) : null
          return values === null ? [] : [[name, { values: new Set(values), isRequired: needed.has(name) }] as const]
        })
      )
    }
  }
}

/** An alternative in which the members of its member `name` may also stand beside that. */
const withMembersOf = (one: Alternative, name: string): Alternative => {
  const inner = one.kind === "object" ? one.members.get(name) : undefined
  if (one.kind !== "object" || inner === undefined) return one
  const members = new Map(one.members)
  for (const [at, shape] of membersOf(inner())) if (!members.has(at)) members.set(at, shape)
  return { ...one, members }
}

/** The members of all alternatives of a shape; a member of several alternatives may have any of their shapes. */
export const membersOf = (shape: Shape): ReadonlyMap<string, Lazy> => {
  const members = new Map<string, Lazy>()
  for (const one of shape) {
    if (one.kind !== "object") continue
    for (const [name, inner] of one.members) {
      const other = members.get(name)
      members.set(name, other === undefined ? inner : () => [...other(), ...inner()])
    }
  }
  return members
}

/** A shape that has to match both (as in `allOf`): each object alternative of `left` also gets the members of `right`. */
const both = (left: Shape, right: Shape): Shape => {
  const others = right.filter((one) => one.kind === "object")
  if (others.length === 0) return left
  if (left.some(({ kind }) => kind === "any")) return right
  return left.map((one) =>
    one.kind === "object"
      ? {
          ...one,
          members: membersOf([one, ...others]),
          rest: one.rest,
          isClosed: one.isClosed || others.some(({ isClosed }) => isClosed)
        }
      : one
  )
}
