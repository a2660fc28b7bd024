import { isSameJson } from "@tidegate/json/ExactNumber"
import { isObject } from "../transfer/Json.ts"
import type { Members, Written } from "./Files.ts"

/** What pushing a written workflow changes in the stored one. Members that are not written stay, so they are not compared. */

export interface Difference {
  readonly change: "added" | "removed" | "changed"
  /** Such as: step to_crm; edge only_paid -> to_crm; status. */
  readonly what: string
  readonly members: ReadonlyArray<string>
}

/** Whether the stored value has all that is written; a gateway completes what it stores. */
const has = (stored: unknown, written: unknown): boolean => {
  if (isObject(written)) {
    return (
      isObject(stored) && Object.entries(written).every(([name, value]) => has(stored[name] ?? null, value ?? null))
    )
  }
  if (Array.isArray(written)) {
    return (
      Array.isArray(stored) &&
      stored.length === written.length &&
      written.every((value, index) => has(stored[index], value))
    )
  }
  return isSameJson(stored ?? null, written ?? null)
}

const stepDefaults = { name: "", resource_id: null, action: null, invocation_inputs: null, config: {} }
const edgeDefaults = { condition: null, mapping: {} }
/** Their members are the user's own, so one that is gone is a change. */
const exact: ReadonlySet<string> = new Set(["invocation_inputs", "config", "condition", "mapping"])

const isEmpty = (value: unknown): boolean =>
  value === null || value === undefined || (isObject(value) && Object.keys(value).length === 0)

const membersOf = (stored: Members, written: Members): ReadonlyArray<string> =>
  Object.keys(written).filter((name) => {
    const [before, after] = [stored[name] ?? null, written[name] ?? null]
    if (isEmpty(before) && isEmpty(after)) return false
    if (name === "kind" && after === "paths") return before !== "branch"
    return exact.has(name) ? !isSameJson(before, after) : !has(before, after)
  })

const list = (value: unknown): ReadonlyArray<Members> => (Array.isArray(value) ? value.filter(isObject) : [])

const added = (what: string): Difference => ({ change: "added", what, members: [] })
const removed = (what: string): Difference => ({ change: "removed", what, members: [] })
const changed = (what: string, members: ReadonlyArray<string>): ReadonlyArray<Difference> =>
  members.length === 0 ? [] : [{ change: "changed", what, members }]

const stepsOf = (stored: Members, written: Written): ReadonlyArray<Difference> => {
  if (written["steps"] === undefined) return []
  const before = new Map(list(stored["steps"]).map((step) => [step["id"], step]))
  const after = list(written["steps"])
  const kept = new Set(after.map(({ id }) => id))
  return [
    ...after.flatMap((step) => {
      const old = before.get(step["id"])
      const what = `step ${String(step["id"])}`
      return old === undefined ? [added(what)] : changed(what, membersOf(old, { ...stepDefaults, ...step }))
    }),
    ...[...before.keys()].filter((id) => !kept.has(id)).map((id) => removed(`step ${String(id)}`))
  ]
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : "?")

const edgeName = (edge: Members): string =>
  `edge ${textOf(edge["source_step_id"] ?? "trigger")} -> ${textOf(edge["target_step_id"])}`

const leads = (edge: Members, like: Members): boolean =>
  (edge["source_step_id"] ?? null) === (like["source_step_id"] ?? null) &&
  edge["target_step_id"] === like["target_step_id"]

/** Edges are matched by where they lead, because their ids are often not written. */
const edgesOf = (stored: Members, written: Written): ReadonlyArray<Difference> => {
  if (written["edges"] === undefined) return []
  const left = [...list(stored["edges"])]
  const differences = list(written["edges"]).flatMap((edge) => {
    const port = edge["source_port"] ?? null
    const at = left.findIndex((one) => leads(one, edge) && (port === null || one["source_port"] === port))
    if (at === -1) return [added(edgeName(edge))]
    const [old] = left.splice(at, 1)
    const { id: _, source_type: __, ...members } = edge
    return changed(edgeName(edge), membersOf(old!, { ...edgeDefaults, ...members }))
  })
  return [...differences, ...left.map((edge) => removed(edgeName(edge)))]
}

/** Triggers are replaced as a whole: what is not written is taken away. */
const triggerDefaults = {
  schedule: [],
  answer: null,
  deduplicate: null,
  concurrency: null,
  rate_limit: null,
  priority: null,
  debounce: null,
  batch: null,
  on_failure: null
}

const areSameTriggers = (stored: unknown, written: unknown): boolean =>
  isObject(written)
    ? has(isObject(stored) ? stored : triggerDefaults, { ...triggerDefaults, ...written })
    : isEmpty(written) && isEmpty(stored)

const settingsOf = (stored: Members, settings: Members): ReadonlyArray<string> =>
  Object.keys(settings).filter((name) =>
    name === "triggers"
      ? !areSameTriggers(stored[name], settings[name])
      : membersOf(stored, { [name]: settings[name] }).length > 0
  )

/** Whether pushing this member of a written workflow changes nothing in the stored one. */
export const isSameMember = (stored: Members, written: Written, member: string): boolean => {
  if (member === "steps") return stepsOf(stored, written).length === 0
  if (member === "edges") return edgesOf(stored, written).length === 0
  return settingsOf(stored, { [member]: written[member] }).length === 0
}

const notCompared = new Set(["$schema", "edges", "name", "source", "steps", "version"])

/** `stored`: null if there is none with that name. */
export const differenceOf = (stored: Members | null, written: Written): ReadonlyArray<Difference> => {
  const before = stored ?? {}
  const settings = Object.fromEntries(Object.entries(written).filter(([name]) => !notCompared.has(name)))
  return [
    ...(stored === null
      ? []
      : settingsOf(before, settings).map((what) => ({ change: "changed" as const, what, members: [] }))),
    ...stepsOf(before, written),
    ...edgesOf(before, written)
  ]
}
