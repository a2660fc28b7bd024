import { Clock, Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { type GatewayError, notFound } from "@tidegate/model/GatewayError"
import type { Rule } from "@tidegate/model/Rule"
import { type FilterVersion, linkedRule } from "@tidegate/rules/StoredFilter"
import { presentOf } from "./PresentOf.ts"

/** How the write of a connection uses stored filters, inside its own transaction. */

const linkedBy = (rules: ReadonlyArray<Rule>): ReadonlyArray<string> => [
  ...new Set(rules.flatMap((rule) => ("filter_id" in rule && rule.filter_id !== undefined ? [rule.filter_id] : [])))
]

/**
 * Locks the filters that the rules link against change and deletion until the transaction ends. Fails with NOT_FOUND for the
 * first one that does not exist. They are locked before everything else, in id order, so that a filter's change finds every
 * connection that links it.
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

/** The rules with the conditions of their linked filters, which are locked. */
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
