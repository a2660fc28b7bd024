import { Result } from "effect"
import { normalizeRules } from "@tidegate/rules/RuleSet"
import { isObject, type Json, type JsonObject, textOf } from "./Yaml.ts"

/*
 * The content of a file: resources by name. They refer to each other by name, so that a file can be imported into any
 * installation.
 */

/** In the order of their creation: each kind refers only to those before it. */
export const kinds = ["filters", "transformations", "sources", "destinations", "connections"] as const
export type Kind = (typeof kinds)[number]

export const singular: Readonly<Record<Kind, string>> = {
  filters: "filter",
  transformations: "transformation",
  sources: "source",
  destinations: "destination",
  connections: "connection"
}

export type Entry = JsonObject & { readonly name: string }

/** The valid members of an entry. */
export const members: Readonly<Record<Kind, ReadonlyArray<string>>> = {
  filters: ["name", "conditions"],
  transformations: ["name", "code", "env", "isolation"],
  sources: ["name", "description", "type", "slug", "status", "config"],
  destinations: ["name", "description", "type", "disabled", "config"],
  connections: ["name", "description", "source", "destination", "rules", "ordering", "disabled", "paused"]
}

export const needed: Readonly<Record<Kind, ReadonlyArray<string>>> = {
  filters: ["name", "conditions"],
  transformations: ["name", "code"],
  sources: ["name"],
  destinations: ["name", "config"],
  connections: ["name", "source", "destination"]
}

/** A record of the API, of any kind. */
export type Row = JsonObject & { readonly id: string; readonly name: string }

/** The kinds that rules refer to: the member with the id in the API, and the member with the name in a file. */
export const referred = [
  { kind: "transformations", type: "transform", id: "transformation_id", name: "transformation" },
  { kind: "filters", type: "filter", id: "filter_id", name: "filter" }
] as const

/** Names by id, of the kinds that rules refer to. */
export type Names = Readonly<Record<(typeof referred)[number]["kind"], ReadonlyMap<string, string>>>

const nameIn = (value: Json | undefined): string => (isObject(value) ? textOf(value["name"]) : "")

const slugOf = ({ id, url }: Row): string | null => {
  const last = textOf(url).split("/").at(-1) ?? ""
  return last === id ? null : last
}

/**
 * Converts a rule for the file. A copy of a stored filter becomes a link, because the gateway makes the copies. `detached_from_filter` is
 * dropped, because it has no meaning in another installation.
 */
const ruleOf = (rule: Json, names: Names): Json => {
  if (!isObject(rule)) return rule
  for (const { id, kind, name, type } of referred) {
    const linked = rule[id]
    if (typeof linked === "string") return { type, [name]: names[kind].get(linked) ?? linked }
  }
  const { detached_from_filter: _, ...own } = rule
  return own
}

/** Converts a record to an entry. Its secrets are masked. */
export const entryOf = (kind: Kind, row: Row, names: Names): Entry => {
  const { config, description, name, type } = row
  switch (kind) {
    case "filters":
      return { name, conditions: row["conditions"]! }
    case "transformations":
      return { name, code: row["code"]!, env: row["env"]!, isolation: row["isolation"]! }
    case "sources":
      return {
        name,
        description: description!,
        type: type!,
        slug: slugOf(row),
        status: row["status"]!,
        config: config!
      }
    case "destinations":
      return { name, description: description!, type: type!, disabled: row["disabled_at"] !== null, config: config! }
    default:
      return {
        name,
        description: description!,
        source: nameIn(row["source"]),
        destination: nameIn(row["destination"]),
        rules: (row["rules"] as ReadonlyArray<Json>).map((rule) => ruleOf(rule, names)),
        ordering: row["ordering"]!,
        disabled: row["disabled_at"] !== null,
        paused: row["paused_at"] !== null
      }
  }
}

/** Replaces an id while rules are validated, by the rule's index, because the named resource may not have an id yet. */
const placeholder = (id: string, place: number): string => `${id === "filter_id" ? "flt" : "trs"}_${place}`

/**
 * Converts rules to the form in which the gateway stores them: sorted, complete, in one spelling. So hand-written rules equal those
 * that are read back, and a second import changes nothing.
 */
export const normalRules = (
  rules: Json
): { readonly rules: ReadonlyArray<Json> } | { readonly index: number | null; readonly message: string } => {
  if (!Array.isArray(rules)) return { index: null, message: "rules must be a list" }
  const links = new Map<unknown, Json>()
  const written: Array<Json> = []
  for (const [index, rule] of rules.entries()) {
    const link = isObject(rule) ? linkIn(rule) : undefined
    if (link === undefined) {
      written.push(rule)
      continue
    }
    const { id, name, type } = link
    if (typeof rule[name] !== "string") return { index, message: `${name} must be the name of a ${name}` }
    const stand = placeholder(id, index)
    links.set(stand, { type, [name]: rule[name] })
    const { [name]: _, ...rest } = rule
    written.push({ ...rest, type, [id]: stand })
  }
  const normal = normalizeRules(written)
  if (Result.isFailure(normal)) {
    const { message, path, rule_index } = normal.failure
    return { index: rule_index, message: path === "" ? message : `${path} ${message}` }
  }
  return {
    rules: (normal.success as unknown as ReadonlyArray<JsonObject>).map(
      (rule) => links.get(rule["transformation_id"] ?? rule["filter_id"]) ?? rule
    )
  }
}

/** The link in a file's rule, if it has one. A transformation is always a link; a filter may be written in the rule itself. */
const linkIn = (rule: JsonObject): (typeof referred)[number] | undefined =>
  referred.find(({ name, type }) =>
    type === "transform"
      ? rule["type"] === type || rule["type"] === "transformation"
      : rule["type"] === type && rule[name] !== undefined
  )
