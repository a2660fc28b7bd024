import { Schema } from "effect"
import type { Ports } from "@tidegate/workflows/Ports"

/**
 * Values whose documented schema differs from the decoded one. Many values are validated later by their owner, in more detail
 * than a schema can, so the contract accepts any; and a query is text whatever it means. Both marks have no effect at run time.
 * They pass through the generated JSON Schema, and `resolveMarks` resolves them.
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

/** Marks an object whose owner refuses unknown members with its own messages; for all others the API does. */
export const closed = Schema.makeFilter<object>(() => true, { toJsonSchema: () => ({ [closedMark]: true }) })

/** Marks that stay in the document: the API, and the editor of workflows, read them there. */
const stayingMarks = ["x-other-names", "x-members-also-beside", "x-ports"] as const

const marks = [describedAsMark, closedMark, ...stayingMarks]

const marked = (mark: (typeof stayingMarks)[number], value: unknown) =>
  Schema.makeFilter<unknown>(() => true, { toJsonSchema: () => ({ [mark]: value }) })

/** Marks a value whose owner accepts other spellings of the described names, and refuses the rest. */
export const otherNames = marked("x-other-names", true)

/** Marks an object: the members of its member `name` may also stand beside that. */
export const alsoBeside = (name: string) => marked("x-members-also-beside", name)

/** Tells the ports of a kind of step, as the table of kinds has them. */
export const portsMark = (ports: Ports) => marked("x-ports", ports)

interface JsonObject {
  readonly [name: string]: unknown
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const without = (object: JsonObject, ...names: ReadonlyArray<string>): JsonObject =>
  Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)))

const partsOf = (schema: JsonObject): ReadonlyArray<JsonObject> =>
  Array.isArray(schema["allOf"]) ? schema["allOf"].filter(isObject) : []

/** The part of a schema that has the mark: itself, or one of its components. */
const markedPart = (schema: JsonObject, mark: string): JsonObject | undefined =>
  [schema, ...partsOf(schema)].find((part) => Object.hasOwn(part, mark))

/** Whether an object may have a mark, on itself or on one of its components. Most objects of a document have none. */
const isMarked = (schema: JsonObject): boolean => "allOf" in schema || marks.some((mark) => mark in schema)

/** JSON Schema's safe integers include every integer in JSON: such bounds tell readers nothing. */
const isBoundless = (name: string, value: unknown): boolean =>
  (name === "minimum" || name === "maximum") && Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER

/** The generator closes every object. An object whose names follow a pattern stays as it is; the others are opened. */
const isOpen = (schema: JsonObject): boolean =>
  schema["additionalProperties"] === false && schema["patternProperties"] === undefined

/** Members that contain values and not schemas. */
const data: ReadonlySet<string> = new Set(["example", "examples", "default", "enum"])

const resolveMember = (name: string, member: unknown): unknown => {
  if (data.has(name)) return member
  return name === "$ref" && typeof member === "string"
    ? member.replace("#/$defs/", "#/components/schemas/")
    : resolveMarks(member)
}

const resolveMembers = (schema: JsonObject): JsonObject => {
  const resolved: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(schema)) {
    if (isBoundless(name, member) || (name === "additionalProperties" && isOpen(schema))) continue
    resolved[name] = resolveMember(name, member)
  }
  return resolved
}

/**
 * Resolves the marks of a generated document: a value with another description becomes that description, and objects accept
 * unknown members unless they are closed.
 */
export const resolveMarks = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(resolveMarks)
  if (!isObject(value)) return value

  if (!isMarked(value)) return resolveMembers(value)
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

  // A struct with a rest: the rest's schema applies to unnamed members.
  const [rest, ...more] = others
  if (isObject(value["properties"]) && isObject(rest?.["additionalProperties"]) && more.length === 0) {
    return resolveMarks({ ...without(value, "allOf"), additionalProperties: rest["additionalProperties"] })
  }
  return resolveMembers(value)
}
