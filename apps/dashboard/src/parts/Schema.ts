import { useQuery } from "@tanstack/react-query"
import { apiDocument } from "../gateway.ts"

/** What the forms read of a JSON Schema. */
export interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly enum?: ReadonlyArray<string>
  readonly anyOf?: ReadonlyArray<Schema>
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: ReadonlyArray<string>
  readonly title?: string
  readonly description?: string
  readonly examples?: ReadonlyArray<unknown>
  readonly pattern?: string
  readonly maxProperties?: number
  /** The ports of a kind of step: always the same ones, by the value of a setting, or one for each element of a list in the settings. */
  readonly "x-ports"?: Ports
}

type Ports =
  | ReadonlyArray<string>
  | { readonly by: string; readonly of: Readonly<Record<string, ReadonlyArray<string>>> }
  | { readonly each: string; readonly key: string; readonly prefix: string }

export interface Document {
  readonly paths: Readonly<
    Record<
      string,
      { readonly get?: { readonly parameters?: ReadonlyArray<{ readonly name?: string; readonly schema?: Schema }> } }
    >
  >
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

/** The schema that a schema refers to. */
export const resolved = ({ components }: Pick<Document, "components">, schema: Schema): Schema => {
  const name = schema.$ref?.split("/").at(-1)
  const found = name === undefined ? undefined : components.schemas[name]
  return found === undefined ? schema : resolved({ components }, found)
}

/** The values that a parameter of a list can have; none: any text. */
export const choicesOf = (document: Document, path: string, name: string): ReadonlyArray<string> => {
  const { schema = {} } = document.paths[path]?.get?.parameters?.find((one) => one.name === name) ?? {}
  const found = resolved(document, schema)
  const { enum: words, type } = found.items === undefined ? found : resolved(document, found.items)
  return words ?? (type === "boolean" ? ["true", "false"] : [])
}

/** The API's document, read once. `isNeeded`: a page may need it only after a choice. */
export const useDocument = (isNeeded = true) =>
  useQuery({
    queryKey: ["document"],
    queryFn: async () => (await apiDocument()) as Document,
    staleTime: Infinity,
    enabled: isNeeded
  })

/** Schemas of one member: equal ones are one, lists of choices are one list, yes or no stays that, and others can only be written as JSON. */
const either = (a: Schema, b: Schema): Schema => {
  if (JSON.stringify(a) === JSON.stringify(b) || b.type === "null") return a
  if (a.type === "null") return b
  const description = a.description === undefined ? {} : { description: a.description }
  if (a.enum !== undefined && b.enum !== undefined)
    return { ...description, type: "string", enum: [...new Set([...a.enum, ...b.enum])] }
  return a.type === "boolean" && b.type === "boolean" ? { ...description, type: "boolean" } : description
}

/** All members of several variants; required are those that all of them require. */
const merged = (document: Document, variants: ReadonlyArray<Schema>): Schema => {
  const properties: Record<string, Schema> = {}
  for (const variant of variants) {
    for (const [name, given] of Object.entries(variant.properties ?? {})) {
      const member = resolved(document, given)
      properties[name] = name in properties ? either(properties[name]!, member) : member
    }
  }
  const required = Object.keys(properties).filter((name) =>
    variants.every((one) => one.required?.includes(name) === true)
  )
  return { type: "object", properties, required }
}

/** A schema with members, also of one that has variants. */
export const objectOf = (document: Document, schema: Schema): Schema => {
  const found = resolved(document, schema)
  const variants = (found.anyOf ?? [])
    .map((one) => objectOf(document, one))
    .filter(({ properties }) => properties !== undefined)
  return variants.length === 0 ? found : merged(document, variants)
}

const variantsIn = (document: Document, schema: Schema): ReadonlyArray<Schema> => {
  const found = resolved(document, schema)
  return found.anyOf === undefined ? [found] : found.anyOf.flatMap((one) => variantsIn(document, one))
}

/** A kind of authentication: the schemas of its name and of its settings. */
export interface AuthKind {
  readonly type: Schema
  readonly auth: Schema
  readonly isRequired: boolean
}

/** The kinds of authentication that a config may have, by their names. A variant that allows several kinds is that of a read. */
export const authKindsOf = (document: Document, schema: Schema): ReadonlyMap<string, AuthKind> => {
  const kinds = new Map<string, AuthKind>()
  for (const { properties = {}, required = [] } of variantsIn(document, schema)) {
    const { auth, auth_type } = properties
    const types = auth_type === undefined ? [] : variantsIn(document, auth_type)
    const [type, ...others] = types.filter((one) => one.enum !== undefined)
    if (auth === undefined || type?.enum?.length !== 1 || others.length > 0) continue
    const [name] = type.enum as readonly [string]
    if (!kinds.has(name)) kinds.set(name, { type, auth, isRequired: required.includes("auth") })
  }
  return kinds
}

/**
 * The types of a resource, each with the schema of what is written for it. A variant that lists no types is the one of all other
 * types: it stands under `usual`.
 */
export const variantsOf = (document: Document, name: string, usual: string): ReadonlyMap<string, Schema> => {
  const all = resolved(document, { $ref: name })
  const found = new Map<string, Schema>()
  for (const variant of (all.anyOf ?? [all]).map((one) => resolved(document, one))) {
    const types = resolved(document, variant.properties?.["type"] ?? {}).enum ?? [usual]
    for (const type of types) {
      const known = found.get(type)
      found.set(type, known === undefined ? variant : merged(document, [known, variant]))
    }
  }
  return new Map([...found].toSorted(([a], [b]) => Number(b === usual) - Number(a === usual) || (a < b ? -1 : 1)))
}
