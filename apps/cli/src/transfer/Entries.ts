import { Result } from "effect"
import { normalizeRules } from "@tidegate/rules/RuleSet"
import { isObject, type Json, type JsonObject, textOf } from "./Yaml.ts"

/*
 * What is in a file: resources by their names, which refer to each other by their names, so that a file is good for any
 * installation.
 */

/** In the order in which they are made: each refers to those before it. Stored filters come in here when there are any. */
export const kinds = ["transformations", "sources", "destinations", "connections"] as const
export type Kind = (typeof kinds)[number]

export const singular: Readonly<Record<Kind, string>> = {
  transformations: "transformation",
  sources: "source",
  destinations: "destination",
  connections: "connection"
}

export type Entry = JsonObject & { readonly name: string }

/** What an entry may say. */
export const members: Readonly<Record<Kind, ReadonlyArray<string>>> = {
  transformations: ["name", "code", "env", "isolation"],
  sources: ["name", "description", "type", "slug", "status", "config"],
  destinations: ["name", "description", "type", "disabled", "config"],
  connections: ["name", "description", "source", "destination", "rules", "ordering", "disabled", "paused"]
}

export const needed: Readonly<Record<Kind, ReadonlyArray<string>>> = {
  transformations: ["name", "code"],
  sources: ["name"],
  destinations: ["name", "config"],
  connections: ["name", "source", "destination"]
}

/** A record of the API, of whatever kind. */
export type Row = JsonObject & { readonly id: string; readonly name: string }

/** Names of transformations by their ids. */
export type Names = ReadonlyMap<string, string>

const nameIn = (value: Json | undefined): string => (isObject(value) ? textOf(value["name"]) : "")

const slugOf = ({ id, url }: Row): string | null => {
  const last = textOf(url).split("/").at(-1) ?? ""
  return last === id ? null : last
}

const ruleOf = (rule: Json, transformations: Names): Json => {
  const id = isObject(rule) ? rule["transformation_id"] : undefined
  return typeof id === "string" ? { type: "transform", transformation: transformations.get(id) ?? id } : rule
}

/** A record as an entry says it. Its secrets read masked. */
export const entryOf = (kind: Kind, row: Row, transformations: Names): Entry => {
  const { config, description, name, type } = row
  switch (kind) {
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
        rules: (row["rules"] as ReadonlyArray<Json>).map((rule) => ruleOf(rule, transformations)),
        ordering: row["ordering"]!,
        disabled: row["disabled_at"] !== null,
        paused: row["paused_at"] !== null
      }
  }
}

/** Stands for the id of a transformation while rules are judged: it may not have one yet. */
const placeholder = "trs_0"

/**
 * Rules as the gateway will keep them: in order, complete, in one spelling. So what is written by hand is the same as what is
 * read back, and a second import has nothing to do.
 */
export const normalRules = (
  rules: Json
): { readonly rules: ReadonlyArray<Json> } | { readonly index: number | null; readonly message: string } => {
  if (!Array.isArray(rules)) return { index: null, message: "rules must be a list" }
  let transformation: string | null = null
  const written: Array<Json> = []
  for (const [index, rule] of rules.entries()) {
    const linked = isObject(rule) && (rule["type"] === "transform" || rule["type"] === "transformation")
    if (linked && typeof rule["transformation"] !== "string") {
      return { index, message: "transformation must be the name of a transformation" }
    }
    if (linked) transformation = rule["transformation"] as string
    written.push(linked ? { type: "transform", transformation_id: placeholder } : rule)
  }
  const normal = normalizeRules(written)
  if (Result.isFailure(normal)) {
    const { message, path, rule_index } = normal.failure
    return { index: rule_index, message: path === "" ? message : `${path} ${message}` }
  }
  return {
    rules: normal.success.map((rule) =>
      rule.type === "transform" ? { type: "transform", transformation } : (rule as unknown as Json)
    )
  }
}
