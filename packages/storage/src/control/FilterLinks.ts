import { Clock, Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { type GatewayError, notFound } from "@tidegate/model/GatewayError"
import type { Rule } from "@tidegate/model/Rule"
import { type FilterVersion, linkedRule } from "@tidegate/rules/StoredFilter"
import { presentOf } from "./PresentOf.ts"

/** What the write of a connection does with stored filters, inside that write's own transaction. */

const linkedBy = (rules: ReadonlyArray<Rule>): ReadonlyArray<string> => [
  ...new Set(rules.flatMap((rule) => ("filter_id" in rule && rule.filter_id !== undefined ? [rule.filter_id] : [])))
]

/**
 * Keeps filters that the rules link from being changed or deleted until the transaction ends; fails with NOT_FOUND for the first that
 * is not there. They are locked before all else, by their ids, so that who changes a filter finds every connection that links it.
 */
export const holdFilters = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  team_id: string,
  rules: ReadonlyArray<Rule>
): Effect.fn.Return<void, GatewayError | SqlError.SqlError> {
  const ids = linkedBy(rules)
  if (ids.length === 0) return
  const held = yield* sql<{ id: string }>`
    select id from filters where id = any(${[...ids]}) and ${presentOf(sql, team_id)}
    order by id for share`
  const missing = ids.find((id) => !held.some((row) => row.id === id))
  if (missing !== undefined) yield* notFound("filter", missing)
})

/** The rules with the conditions of the filters that they link, which are held. */
export const linkFilters = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  team_id: string,
  rules: ReadonlyArray<Rule>
): Effect.fn.Return<ReadonlyArray<Rule>, GatewayError | SqlError.SqlError> {
  const ids = linkedBy(rules)
  if (ids.length === 0) return rules
  const at = new Date(yield* Clock.currentTimeMillis)
  const rows = yield* sql<FilterVersion>`
    select id, name, conditions, hash from filters where id = any(${[...ids]}) and ${presentOf(sql, team_id)}`
  const versions = new Map(rows.map((row) => [row.id, row]))
  const linked: Array<Rule> = []
  for (const rule of rules) {
    if (rule.type !== "filter" || rule.filter_id === undefined) linked.push(rule)
    else linked.push(linkedRule(versions.get(rule.filter_id) ?? (yield* notFound("filter", rule.filter_id)), at))
  }
  return linked
})
