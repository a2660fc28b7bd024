import { Result } from "effect"
import { normalizeRules } from "@tidegate/rules/RuleSet"
import type { Names } from "./References.ts"
import { isObject, type Json, type JsonObject } from "./Json.ts"

/** Rules of connections: in a file they refer to transformations and filters by name. */

/** The kinds that rules refer to: the member with the id in the API, and the member with the name in a file. */
export const referred = [
  { kind: "transformations", type: "transform", id: "transformation_id", name: "transformation" },
  { kind: "filters", type: "filter", id: "filter_id", name: "filter" }
] as const

/**
 * Converts a rule for the file. A copy of a stored filter becomes a link, because the gateway makes the copies. `detached_from_filter` is
 * dropped, because it has no meaning in another installation.
 */
export const ruleOf = (rule: Json, names: Names): Json => {
  if (!isObject(rule)) return rule
  for (const { id, name, type } of referred) {
    const linked = rule[id]
    if (typeof linked === "string") return { type, [name]: names.get(linked)?.name ?? linked }
  }
  const { detached_from_filter: _, ...own } = rule
  return own
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
