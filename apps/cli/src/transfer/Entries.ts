import { Result } from "effect"
import { normalizeRules } from "@tidegate/rules/RuleSet"
import { isObject, type Json, type JsonObject, textOf } from "./Yaml.ts"

/*
 * What is in a file: resources by their names, which refer to each other by their names, so that a file is good for any
 * installation.
 */

/** In the order in which they are made: each refers to those before it. */
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

/** What an entry may say. */
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

/** A record of the API, of whatever kind. */
export type Row = JsonObject & { readonly id: string; readonly name: string }

/** What rules refer to: each kind by the member that holds an id of it, and the one that holds a name in a file. */
export const referred = [
  { kind: "transformations", type: "transform", id: "transformation_id", name: "transformation" },
  { kind: "filters", type: "filter", id: "filter_id", name: "filter" }
] as const

/** Names by ids, of what rules refer to. */
export type Names = Readonly<Record<(typeof referred)[number]["kind"], ReadonlyMap<string, string>>>

const nameIn = (value: Json | undefined): string => (isObject(value) ? textOf(value["name"]) : "")

const slugOf = ({ id, url }: Row): string | null => {
  const last = textOf(url).split("/").at(-1) ?? ""
  return last === id ? null : last
}

/** Copies of a stored filter are the gateway's to make, and which one a rule once had is of no use elsewhere. */
const ruleOf = (rule: Json, names: Names): Json => {
  if (!isObject(rule)) return rule
  for (const { id, kind, name, type } of referred) {
    const linked = rule[id]
    if (typeof linked === "string") return { type, [name]: names[kind].get(linked) ?? linked }
  }
  const { detached_from_filter: _, ...own } = rule
  return own
}

/** A record as an entry says it. Its secrets read masked. */
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

/** Stands for an id while rules are judged, by the place of the rule: what it names may not have one yet. */
const placeholder = (id: string, place: number): string => `${id === "filter_id" ? "flt" : "trs"}_${place}`

/**
 * Rules as the gateway will keep them: in order, complete, in one spelling. So what is written by hand is the same as what is
 * read back, and a second import has nothing to do.
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

/** How a rule of a file refers to something. A transformation is always referred to; a filter may be written in the rule. */
const linkIn = (rule: JsonObject): (typeof referred)[number] | undefined =>
  referred.find(({ name, type }) =>
    type === "transform"
      ? rule["type"] === type || rule["type"] === "transformation"
      : rule["type"] === type && rule[name] !== undefined
  )
