import { isJsonObject } from "@tidegate/json/ExactNumber"
import type { FilterConditions, FilterRule } from "@tidegate/model/Rule"
import { startDigest } from "./Canonical.ts"

/** Stored filters, and the copies of them that the rules of connections hold. */

/** What conditions can be about. */
export const conditionTargets = ["headers", "body", "query", "path"] as const
export type ConditionTarget = (typeof conditionTargets)[number]

/** A version of a stored filter. */
export interface FilterVersion {
  readonly id: string
  readonly name: string
  readonly conditions: FilterConditions
  /** What the version is known by. */
  readonly hash: string
}

type Written = { readonly [target in ConditionTarget]?: unknown }

const asksNothing = (condition: unknown): boolean =>
  condition === undefined || condition === null || (isJsonObject(condition) && Object.keys(condition).length === 0)

/** The conditions that ask for something: a target that is null, or an empty object, does not. */
export const askedOf = (written: Written): FilterConditions =>
  Object.fromEntries(
    conditionTargets.flatMap((target) => (asksNothing(written[target]) ? [] : [[target, written[target]]]))
  )

/** The conditions of a rule, its own or those it has copied. */
const conditionsOf = (rule: Written): FilterConditions =>
  Object.fromEntries(conditionTargets.flatMap((target) => (rule[target] === undefined ? [] : [[target, rule[target]]])))

/** The same for conditions that are equal, however they were written. */
export const conditionsHash = (conditions: FilterConditions): string => {
  const digest = startDigest()
  digest.add(conditions)
  // Conditions are bounded far below what a digest can hold.
  return `sha256:${Buffer.from(digest.end() ?? "", "base64url").toString("hex")}`
}

/** A link to a filter as it is stored: with that filter's conditions, by which alone requests are judged. */
export const linkedRule = ({ conditions, hash, id, name }: FilterVersion, at: Date): FilterRule => ({
  type: "filter",
  filter_id: id,
  filter_snapshot: { name, hash, captured_at: at.toISOString() },
  ...conditions
})

/** Whether a link says no more than it did when it was read: its conditions are those of its snapshot. */
export const isLinkAsRead = (rule: FilterRule): boolean =>
  rule.filter_snapshot !== undefined && rule.filter_snapshot.hash === conditionsHash(conditionsOf(rule))
