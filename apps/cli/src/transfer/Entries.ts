import type { Entry, KindOf, Row } from "./Kind.ts"
import { type Names, type Target, withNames } from "./References.ts"
import { ruleOf } from "./Rules.ts"
import { covers } from "./Secrets.ts"
import { kindOfWorkflow } from "./WorkflowEntries.ts"
import { isObject, type Json, type JsonObject, textOf } from "./Json.ts"

/*
 * The content of a file: resources by name. They refer to each other by name, so that a file can be imported into any
 * installation.
 */

const nameIn = (value: Json | undefined): string => (isObject(value) ? textOf(value["name"]) : "")

const slugOf = ({ id, url }: Row): string | null => {
  const last = textOf(url).split("/").at(-1) ?? ""
  return last === id ? null : last
}

const isDisabled = (row: Row): boolean => row["disabled_at"] !== null

/** Settings of an action that people write. The others are the gateway's own. */
const ofAction = new Set(["auth_mode", "provider_account_id", "inputs", "rate_limit", "rate_limit_period"])

const inputsIn = ({ config }: Entry): Json | undefined => (isObject(config) ? config["inputs"] : undefined)

/** Whether an action has credentials. The gateway never shows them. */
export const hasCredentials = ({ config }: JsonObject): boolean =>
  isObject(config) && config["credentials_configured"] === true

/** Compares what is replaced as a whole, so that a removed part is a change. */
const areEqual = (current: Json | undefined, wanted: Json): boolean =>
  covers(current, wanted) && (current === undefined || covers(wanted, current))

/** Parts of a source's schedule that are replaced as a whole. */
const wholeInSchedule = ["body", "headers"]

const scheduleIn = ({ config }: Entry): JsonObject => {
  const schedule = isObject(config) ? config["schedule"] : undefined
  return isObject(schedule) ? schedule : {}
}

const hasSameSchedule = (current: JsonObject, wanted: JsonObject): boolean =>
  wholeInSchedule.every((name) => wanted[name] === undefined || areEqual(current[name], wanted[name]))

/** In the order of their creation: each kind refers only to those before it, and workflows also to each other. */
const rows = {
  filters: {
    singular: "filter",
    members: ["conditions"],
    needed: ["conditions"],
    refers: [],
    entry: ({ conditions }) => ({ conditions: conditions! }),
    isSame: (member, current, wanted) => areEqual(current[member], wanted[member]!)
  },
  transformations: {
    singular: "transformation",
    members: ["code", "env", "isolation"],
    needed: ["code"],
    refers: [],
    entry: ({ code, env, isolation }) => ({ code: code!, env: env!, isolation: isolation! })
  },
  sources: {
    singular: "source",
    members: ["description", "type", "slug", "status", "config"],
    needed: [],
    refers: ["config"],
    entry: (row) => ({
      description: row["description"]!,
      type: row["type"]!,
      slug: slugOf(row),
      status: row["status"]!
    }),
    isSame: (member, current, wanted) =>
      covers(current[member], wanted[member]!) &&
      (member !== "config" || hasSameSchedule(scheduleIn(current), scheduleIn(wanted)))
  },
  destinations: {
    singular: "destination",
    members: ["description", "type", "disabled", "config"],
    needed: ["config"],
    refers: ["config"],
    entry: (row) => ({ description: row["description"]!, type: row["type"]!, disabled: isDisabled(row) })
  },
  connections: {
    singular: "connection",
    members: ["description", "source", "destination", "rules", "ordering", "disabled", "paused"],
    needed: ["source", "destination"],
    refers: [],
    entry: (row, names) => ({
      description: row["description"]!,
      source: nameIn(row["source"]),
      destination: nameIn(row["destination"]),
      rules: (row["rules"] as ReadonlyArray<Json>).map((rule) => ruleOf(rule, names)),
      ordering: row["ordering"]!,
      disabled: isDisabled(row),
      paused: row["paused_at"] !== null
    }),
    isSame: (member, current, wanted) =>
      member === "rules" ? areEqual(current[member], wanted[member]!) : covers(current[member], wanted[member]!)
  },
  actions: {
    singular: "action",
    members: ["provider_key", "action_key", "status", "config"],
    needed: ["provider_key", "action_key"],
    refers: ["config"],
    entry: (row) => ({
      provider_key: row["provider_key"]!,
      action_key: row["action_key"]!,
      status: row["status"]!,
      config: Object.fromEntries(Object.entries(row["config"] as JsonObject).filter(([name]) => ofAction.has(name)))
    }),
    isSame: (member, current, wanted) =>
      covers(current[member], wanted[member]!) &&
      (member !== "config" || inputsIn(wanted) === undefined || areEqual(inputsIn(current), inputsIn(wanted)!))
  },
  workflows: kindOfWorkflow
} as const satisfies { readonly [kind: string]: KindOf }

export type Kind = keyof typeof rows
export const kinds = Object.keys(rows) as ReadonlyArray<Kind>

export const kindOf = (kind: Kind): KindOf => rows[kind]

export const singular = Object.fromEntries(kinds.map((kind) => [kind, rows[kind].singular])) as {
  readonly [kind in Kind]: Target
}

/** Converts a record to an entry. Its secrets are masked, and its ids are references. */
export const entryOf = (kind: Kind, row: Row, names: Names): Entry => {
  const { entry, members, refers } = kindOf(kind)
  const own = entry(row, names)
  const whole = Object.fromEntries(
    members.flatMap((member) => {
      const value = Object.hasOwn(own, member) ? own[member] : row[member]
      if (value === undefined) return []
      return [[member, refers.includes(member) ? withNames(value, names) : value]]
    })
  )
  return { name: row.name, ...whole }
}
