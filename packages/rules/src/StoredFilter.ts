import { isJsonObject } from "@tidegate/json/ExactNumber"
import type { FilterConditions, FilterRule } from "@tidegate/model/Rule"
import { startDigest } from "./Canonical.ts"

/** Stored filters, and the copies of them in connections' rules. */

/** The parts of a request that conditions can test. */
export const conditionTargets = ["headers", "body", "query", "path"] as const
export type ConditionTarget = (typeof conditionTargets)[number]

/** A version of a stored filter. */
export interface FilterVersion {
  readonly id: string
  readonly name: string
  readonly conditions: FilterConditions
  /** Hash of the version's conditions, which identifies it. */
  readonly hash: string
}

type Written = { readonly [target in ConditionTarget]?: unknown }

const asksNothing = (condition: unknown): boolean =>
  condition === undefined || condition === null || (isJsonObject(condition) && Object.keys(condition).length === 0)

/** The conditions that test something: a null target or an empty object does not. */
export const askedOf = (written: Written): FilterConditions =>
  Object.fromEntries(
    conditionTargets.flatMap((target) => (asksNothing(written[target]) ? [] : [[target, written[target]]]))
  )

/** The conditions of a rule, its own or the copied ones. */
const conditionsOf = (rule: Written): FilterConditions =>
  Object.fromEntries(conditionTargets.flatMap((target) => (rule[target] === undefined ? [] : [[target, rule[target]]])))

/** Equal for equal conditions, whatever their spelling. */
export const conditionsHash = (conditions: FilterConditions): string => {
  const digest = startDigest()
  digest.add(conditions)
  // Conditions are limited to far less than a digest can hold.
  return `sha256:${Buffer.from(digest.end() ?? "", "base64url").toString("hex")}`
}

/** The stored form of a link to a filter: with a copy of its conditions. Only the copy is evaluated. */
export const linkedRule = ({ conditions, hash, id, name }: FilterVersion, at: Date): FilterRule => ({
  type: "filter",
  filter_id: id,
  filter_snapshot: { name, hash, captured_at: at.toISOString() },
  ...conditions
})

/** Whether a link was written back unchanged: its conditions are those of its snapshot. */
export const isLinkAsRead = (rule: FilterRule): boolean =>
  rule.filter_snapshot !== undefined && rule.filter_snapshot.hash === conditionsHash(conditionsOf(rule))
