import { nameOf, type Schema, schemas } from "./Contract.ts"

/** Describes schemas in words, for the tables of the reference. */

export interface Row {
  /** The path from the described object, with dots. `[]` is an element, `*` any name. */
  readonly name: string
  readonly needed: boolean
  readonly type: string
  readonly meaning: string
}

/** Makes a link to a component by its name. */
export type Link = (name: string) => string

const unique = <A>(values: Iterable<A>): ReadonlyArray<A> => [...new Set(values)]

/** Up to this number of alternative components are listed. More are shown as one object with the members of all. */
const severalComponents = 5

const alternatives = (anyOf: ReadonlyArray<Schema>): ReadonlyArray<Schema> =>
  anyOf.flatMap((one) => (one.anyOf === undefined ? [one] : alternatives(one.anyOf)))

/** The schema merged with its `allOf`, which is used for additional checks, and its alternatives in one list. */
const flat = ({ allOf = [], ...written }: Schema): Schema => {
  const schema: Schema = Object.assign({}, written, ...allOf)
  if (schema.anyOf === undefined) return schema
  const anyOf = alternatives(schema.anyOf)
  const components = unique(anyOf.flatMap(({ $ref }) => $ref ?? []))
  const isMany = components.length > severalComponents
  return { ...schema, anyOf: isMany ? alternatives(anyOf.map(resolved)) : anyOf }
}

const resolved = (schema: Schema): Schema => (schema.$ref === undefined ? schema : schemas[nameOf(schema.$ref)]!)

const between = (least: number | undefined, most: number | undefined, unit: string): string => {
  const number = (value: number) => value.toLocaleString("en-US")
  const words = (range: string) => `${range}${unit === "" ? "" : ` ${unit}`}`
  if (least !== undefined && most !== undefined) return words(`${number(least)} to ${number(most)}`)
  if (least !== undefined) return words(`at least ${number(least)}`)
  return most === undefined ? "" : words(`at most ${number(most)}`)
}

const limitsOf = (schema: Schema): ReadonlyArray<string> =>
  [
    between(schema.minimum, schema.maximum, ""),
    between(schema.minLength, schema.maxLength, "characters"),
    between(schema.minItems, schema.maxItems, "values"),
    schema.maxProperties === 0 ? "empty" : between(undefined, schema.maxProperties, "members")
  ].filter((limit) => limit !== "")

/** A type in a few words, with its bounds. */
export const typeOf = (written: Schema, link: Link): string => {
  const schema = flat(written)
  if (schema.$ref !== undefined) return link(nameOf(schema.$ref))
  if (schema.anyOf !== undefined) return unique(schema.anyOf.map((one) => typeOf(one, link))).join(" or ")
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${String(value)}\``).join(", ")
  const limits = limitsOf(schema)
  const bounds = limits.length === 0 ? "" : `, ${limits.join(", ")}`
  if (schema.type === "array")
    return `list${schema.items === undefined || schema.items.properties !== undefined ? "" : ` of ${typeOf(schema.items, link)}`}${bounds}`
  if (schema.type === "object") {
    const values = schema.additionalProperties ?? Object.values(schema.patternProperties ?? {})[0]
    return typeof values === "object" ? `object of ${typeOf(values, link)}${bounds}` : `object${bounds}`
  }
  if (schema.format === "date-time") return "time"
  return `${schema.type ?? "any JSON"}${schema.format === "uri" ? " (URL)" : ""}${bounds}`
}

/** The description of a member, wherever it is in the schema. The common description of all times is left out. */
export const meaningOf = (written: Schema): string => {
  const found: Array<string> = []
  const gather = (one: Schema): void => {
    const { anyOf = [], default: byDefault, description, format } = flat(one)
    if (description !== undefined && format !== "date-time") found.push(description)
    if (byDefault !== undefined) found.push(`Default: \`${JSON.stringify(byDefault)}\``)
    for (const each of anyOf) if (each.$ref === undefined) gather(each)
  }
  gather(written)
  return unique(found).join(". ")
}

/**
 * The objects that a schema itself contains: itself, its alternatives, its elements. Each has the suffix that it adds to the
 * name.
 */
const objectsOf = (written: Schema): ReadonlyArray<readonly [suffix: string, Schema]> => {
  const schema = flat(written)
  if (schema.anyOf !== undefined) return schema.anyOf.flatMap(objectsOf)
  if (schema.type === "array" && schema.items !== undefined)
    return objectsOf(schema.items).map(([suffix, inner]) => [`[]${suffix}`, inner] as const)
  if (schema.properties !== undefined) return [["", schema]]
  const values = schema.additionalProperties
  return typeof values === "object" ? objectsOf(values).map(([suffix, inner]) => [`.*${suffix}`, inner] as const) : []
}

/** A row for each member of an object, followed by rows for nested members. A member of several alternatives has one row. */
export const membersOf = (schema: Schema, link: Link, prefix = ""): ReadonlyArray<Row> => {
  const found = objectsOf(schema)
  const places = unique(
    found.flatMap(([suffix, { properties = {} }]) => Object.keys(properties).map((name) => `${suffix}\n${name}`))
  )
  return places.flatMap((place) => {
    const [suffix = "", key = ""] = place.split("\n")
    const having = found.filter(([at]) => at === suffix)
    const members = having.flatMap(([, { properties = {} }]) =>
      properties[key] === undefined ? [] : [properties[key]]
    )
    const name = `${prefix}${suffix}${prefix === "" && suffix === "" ? "" : "."}${key}`
    const member: Schema = members.length === 1 ? members[0]! : { anyOf: members }
    const row = {
      name,
      needed: having.every(([, { required = [] }]) => required.includes(key)),
      type: typeOf(member, link),
      meaning: meaningOf(member)
    }
    return [row].concat(membersOf(member, link, name))
  })
}

/** The components to which a schema's description links. */
export const linkedFrom = (schema: Schema): ReadonlyArray<string> => {
  const found: Array<string> = []
  const link = (name: string): string => {
    found.push(name)
    return name
  }
  typeOf(schema, link)
  membersOf(schema, link)
  return unique(found)
}
