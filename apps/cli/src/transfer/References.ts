import { isObject, type Json, type JsonObject, type Path } from "./Json.ts"

/*
 * References to other resources by name. `{$source: shop}` stands for the id of the source `shop`, wherever an id may be written: in a
 * setting, in an input of a step. An id belongs to one gateway; a name does not.
 */

/** What can be referred to, by the name in a reference. */
export const targets = {
  filter: "filters",
  transformation: "transformations",
  source: "sources",
  destination: "destinations",
  connection: "connections",
  action: "actions",
  workflow: "workflows",
  provider_account: "provider_accounts"
} as const
export type Target = keyof typeof targets
export type TargetList = (typeof targets)[Target]

interface Named {
  readonly target: Target
  readonly name: string
}

/** The names of resources, by id. */
export type Names = ReadonlyMap<string, Named>

const isTarget = (name: string): name is Target => Object.hasOwn(targets, name)

/** An object with one member of such a name has a meaning in a file. The user's own ones get one `$` more. */
const reserved = new RegExp(`^\\$+(?:env|${Object.keys(targets).join("|")})$`)

const onlyMember = (value: JsonObject): readonly [name: string, value: Json] | undefined => {
  const members = Object.entries(value)
  return members.length === 1 ? members[0] : undefined
}

export const referenceOf = (target: Target, name: string): Json => ({ [`$${target}`]: name })

/** The reference that a value is; null if it is none. */
export const referenceIn = (value: Json | undefined): Named | null => {
  const [member = "", name] = (isObject(value) ? onlyMember(value) : undefined) ?? []
  const target = member.slice(1)
  return member.startsWith("$") && isTarget(target) && typeof name === "string" ? { target, name } : null
}

/** Replaces each text that is the id of a resource by a reference. */
export const withNames = (value: Json, names: Names): Json => {
  if (typeof value === "string") {
    const named = names.get(value)
    return named === undefined ? value : referenceOf(named.target, named.name)
  }
  if (Array.isArray(value)) return value.map((element: Json) => withNames(element, names))
  if (!isObject(value)) return value
  const [name = "", own] = onlyMember(value) ?? []
  if (own !== undefined && reserved.test(name)) return { [`$${name}`]: withNames(own, names) }
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withNames(inner, names)]))
}

/** Replaces each reference by the id that it stands for. */
export const withIds = (value: Json, idOf: (target: Target, name: string) => string): Json => {
  const reference = referenceIn(value)
  if (reference !== null) return idOf(reference.target, reference.name)
  if (Array.isArray(value)) return value.map((element: Json) => withIds(element, idOf))
  if (!isObject(value)) return value
  const [name = "", own] = onlyMember(value) ?? []
  if (own !== undefined && name.startsWith("$$") && reserved.test(name)) return { [name.slice(1)]: withIds(own, idOf) }
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withIds(inner, idOf)]))
}

/** All references in a value, with their places. */
export const referencesIn = (value: Json, path: Path = []): ReadonlyArray<Named & { readonly path: Path }> => {
  const reference = referenceIn(value)
  if (reference !== null) return [{ ...reference, path }]
  if (Array.isArray(value)) return value.flatMap((element: Json, index) => referencesIn(element, [...path, index]))
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([name, inner]) => referencesIn(inner, [...path, name]))
}
