import { nameOf, type Schema, schemas } from "./Contract.ts"

/** Schemas in words, as a table of the reference has them. */

export interface Row {
  /** From the object that is told about, with dots; `[]` is an element, `*` any name. */
  readonly name: string
  readonly needed: boolean
  readonly type: string
  readonly meaning: string
}

/** Makes a link of the name of a component. */
export type Link = (name: string) => string

const unique = <A>(values: Iterable<A>): ReadonlyArray<A> => [...new Set(values)]

/** More components than these are not told one by one where any of them may stand, but as one object with the members of all. */
const severalComponents = 5

const alternatives = (anyOf: ReadonlyArray<Schema>): ReadonlyArray<Schema> =>
  anyOf.flatMap((one) => (one.anyOf === undefined ? [one] : alternatives(one.anyOf)))

/** With what stands in `allOf`, which is how one check more than the schema's own is written, and its alternatives side by side. */
const flat = ({ allOf = [], ...written }: Schema): Schema => {
  const schema: Schema = Object.assign({}, written, ...allOf)
  if (schema.anyOf === undefined) return schema
  const anyOf = alternatives(schema.anyOf)
  const isMany = unique(anyOf.map(({ $ref }) => $ref)).length > severalComponents
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

/** What is said of a member, wherever in its schema that stands. A time says of itself what every time does. */
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

/** The objects that a schema writes out itself: itself, its alternatives, its elements. Each with what it adds to the name. */
const objectsOf = (written: Schema): ReadonlyArray<readonly [suffix: string, Schema]> => {
  const schema = flat(written)
  if (schema.anyOf !== undefined) return schema.anyOf.flatMap(objectsOf)
  if (schema.type === "array" && schema.items !== undefined)
    return objectsOf(schema.items).map(([suffix, inner]) => [`[]${suffix}`, inner] as const)
  if (schema.properties !== undefined) return [["", schema]]
  const values = schema.additionalProperties
  return typeof values === "object" ? objectsOf(values).map(([suffix, inner]) => [`.*${suffix}`, inner] as const) : []
}

/** A row for each member of an object, and below it for those of what it holds. Of alternatives, each member once. */
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

/** The components that are linked to where a schema is told about. */
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
