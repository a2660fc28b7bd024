import { Schema } from "effect"

/**
 * What is described in another way than it is decoded. Many values are judged by their owner, later and in more detail than
 * a schema could, so the contract takes them as they come; and a query is text whatever it means. Both marks change nothing
 * at run time. They travel through the generated JSON Schema and are resolved by `resolveMarks`.
 */

const describedAsMark = "x-described-as"
const closedMark = "x-closed"

type Checks = Parameters<Schema.Top["check"]>

/** `schema` for the code, `description` for the OpenAPI document. */
export const describedAs =
  (description: Schema.Top) =>
  <S extends Schema.Top>(schema: S): S["Rebuild"] =>
    schema.check(
      ...([
        Schema.makeFilter(() => true, {
          representation: { id: "tidegate/describedAs", payload: {}, schemas: [description.ast] },
          toJsonSchema: ({ schemas: [schema = {}] }) => ({ [describedAsMark]: schema })
        })
      ] as unknown as Checks)
    )

/** On an object whose owner refuses, in its own words, members that nobody knows; of all others the API does. */
export const closed = Schema.makeFilter<object>(() => true, { toJsonSchema: () => ({ [closedMark]: true }) })

/** Marks that stay in the document: the API reads them there. */
const stayingMarks = ["x-other-names", "x-members-also-beside"] as const

const marked = (mark: (typeof stayingMarks)[number], value: unknown) =>
  Schema.makeFilter<unknown>(() => true, { toJsonSchema: () => ({ [mark]: value }) })

/** On a value whose owner takes other names for those that are described, and refuses the rest. */
export const otherNames = marked("x-other-names", true)

/** On an object: the members of its member `name` may also stand beside that. */
export const alsoBeside = (name: string) => marked("x-members-also-beside", name)

interface JsonObject {
  readonly [name: string]: unknown
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const without = (object: JsonObject, ...names: ReadonlyArray<string>): JsonObject =>
  Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)))

const partsOf = (schema: JsonObject): ReadonlyArray<JsonObject> =>
  Array.isArray(schema["allOf"]) ? schema["allOf"].filter(isObject) : []

/** The part of a schema that has the mark: itself, or one of what it consists of. */
const markedPart = (schema: JsonObject, mark: string): JsonObject | undefined =>
  [schema, ...partsOf(schema)].find((part) => Object.hasOwn(part, mark))

/** JSON Schema's safe integers are every integer that JSON carries: no bound that anyone needs to read. */
const isBoundless = (name: string, value: unknown): boolean =>
  (name === "minimum" || name === "maximum") && Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER

/** The generator closes every object. One whose names follow a pattern is what it says; the others are open. */
const isOpen = (schema: JsonObject): boolean =>
  schema["additionalProperties"] === false && schema["patternProperties"] === undefined

/** What holds values and not schemas. */
const data: ReadonlySet<string> = new Set(["example", "examples", "default", "enum"])

const resolveMember = (
  schema: JsonObject,
  name: string,
  member: unknown
): ReadonlyArray<readonly [string, unknown]> => {
  if (isBoundless(name, member) || (name === "additionalProperties" && isOpen(schema))) return []
  if (data.has(name)) return [[name, member]]
  return name === "$ref" && typeof member === "string"
    ? [[name, member.replace("#/$defs/", "#/components/schemas/")]]
    : [[name, resolveMarks(member)]]
}

/**
 * A generated document with its marks resolved: a value described in another way is that description, and objects take
 * unknown members unless they are closed.
 */
export const resolveMarks = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(resolveMarks)
  if (!isObject(value)) return value

  const described = markedPart(value, describedAsMark)
  if (described !== undefined) {
    const description = described[describedAsMark]
    return resolveMarks({ ...(isObject(description) ? description : {}), ...without(described, describedAsMark) })
  }

  const staying = stayingMarks
    .map((mark) => markedPart(value, mark))
    .find((part) => part !== undefined && part !== value)
  if (staying !== undefined) {
    const others = partsOf(value).filter((part) => part !== staying)
    const schema = { ...without(value, "allOf"), ...without(staying, "allOf") }
    return resolveMarks(others.length === 0 ? schema : { ...schema, allOf: others })
  }

  const closing = markedPart(value, closedMark)
  const others = partsOf(value).filter((part) => part !== closing)
  if (closing !== undefined) {
    const schema = { ...without(value, "allOf", closedMark), ...without(closing, "allOf", closedMark) }
    const resolved = resolveMarks(others.length === 0 ? schema : { ...schema, allOf: others })
    return { ...(resolved as JsonObject), additionalProperties: false }
  }

  // A struct with a rest: what the rest is holds for members that are not named.
  const [rest, ...more] = others
  if (isObject(value["properties"]) && isObject(rest?.["additionalProperties"]) && more.length === 0) {
    return resolveMarks({ ...without(value, "allOf"), additionalProperties: rest["additionalProperties"] })
  }
  return Object.fromEntries(Object.entries(value).flatMap(([name, member]) => resolveMember(value, name, member)))
}
