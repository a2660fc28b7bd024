import { Effect, type Schema } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import type { SavedContent } from "@tidegate/actions/ActionCatalog"
import type { Config } from "@tidegate/connectors/Settings"
import { prefixes } from "@tidegate/model/Ids"
import type { WorkflowStatus } from "@tidegate/model/Workflow"
import { contentOf } from "@tidegate/resources/action/ActionContent"
import type { DefinitionFacts } from "@tidegate/resources/workflow/DefinitionFacts"
import type { ActionRow } from "./Actions.ts"
import { presentOf } from "../control/PresentOf.ts"

/** The facts about a team's resources that the check of a workflow's definition needs. */

/** The tables of resources that a step may name, by the prefix of their ids. */
const named = {
  [prefixes.filter]: "filters",
  [prefixes.destination]: "destinations",
  [prefixes.transformation]: "transformations",
  [prefixes.action]: "actions",
  [prefixes.source]: "sources",
  [prefixes.workflow]: "workflows"
} as const

const enabledIn: { readonly [table in (typeof named)[keyof typeof named]]: string } = {
  filters: "true",
  transformations: "true",
  // A call of a workflow that is not active fails in the run, so that a workflow can be written before those that it calls are active.
  workflows: "true",
  destinations: "disabled_at is null",
  actions: "disabled_at is null",
  sources: "disabled_at is null"
}

interface Found {
  readonly id: string
  readonly enabled: boolean
  readonly provider_key?: string
}

/**
 * Which of these ids exist in one table, and whether they are enabled; `held`: locked against deletion until the transaction
 * ends.
 */
const lookUpIn = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  prefix: keyof typeof named,
  team_id: string,
  ids: ReadonlyArray<string>,
  held: boolean
): Effect.fn.Return<ReadonlyArray<Found>, SqlError.SqlError> {
  const wanted = [...new Set(ids.filter((id) => id.startsWith(prefix)))]
  if (wanted.length === 0) return []
  const table = named[prefix]
  return yield* sql<Found>`
    select id, ${sql.literal(enabledIn[table])} as enabled
    from ${sql(table)} where id = any(${wanted})
      and ${presentOf(sql, team_id)}
    order by id ${sql.literal(held ? "for share" : "")}`
})

/** Locks the existing resources of one kind among these ids against deletion until the transaction ends. */
export const holdNamed = (
  sql: SqlClient.SqlClient,
  prefix: keyof typeof named,
  team_id: string,
  ids: ReadonlyArray<string>
): Effect.Effect<void, SqlError.SqlError> => Effect.asVoid(lookUpIn(sql, prefix, team_id, ids, true))

/** The provider accounts among these ids. Nothing holds them: they may be revoked at any time, and calls fail then. */
const accountsAmong = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  team_id: string,
  ids: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<Found>, SqlError.SqlError> {
  const wanted = ids.filter((id) => id.startsWith(prefixes.providerAccount))
  if (wanted.length === 0) return []
  return yield* sql<Found>`select id, provider_key, disabled_at is null as enabled from provider_accounts
    where id = any(${wanted}) and team_id = ${team_id}`
})

/** Which of these ids exist, and whether they are enabled. */
export const lookUp = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  team_id: string,
  ids: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyMap<string, Found>, SqlError.SqlError> {
  const filters = yield* lookUpIn(sql, prefixes.filter, team_id, ids, false)
  const destinations = yield* lookUpIn(sql, prefixes.destination, team_id, ids, false)
  const transformations = yield* lookUpIn(sql, prefixes.transformation, team_id, ids, false)
  const actions = yield* lookUpIn(sql, prefixes.action, team_id, ids, false)
  const accounts = yield* accountsAmong(sql, team_id, ids)
  const sources = yield* lookUpIn(sql, prefixes.source, team_id, ids, false)
  const workflows = yield* lookUpIn(sql, prefixes.workflow, team_id, ids, false)
  const found = [filters, sources, workflows, destinations, transformations, actions, accounts]
  return new Map(found.flat().map((row) => [row.id, row]))
})

/** The status of a workflow of the team; null: there is none. Nothing holds it. */
export const statusOf = (
  sql: SqlClient.SqlClient,
  team_id: string,
  workflow_id: string
): Effect.Effect<WorkflowStatus | null, SqlError.SqlError> =>
  Effect.map(
    sql<{ status: WorkflowStatus }>`
      select status from workflows where id = ${workflow_id} and ${presentOf(sql, team_id)}`,
    ([row]) => row?.status ?? null
  )

/** The number of earlier versions that are checked. */
const maxVersions = 200

export const teamFacts = (sql: SqlClient.SqlClient, team_id: string): DefinitionFacts<SqlError.SqlError> => ({
  resources: (ids) => lookUp(sql, team_id, ids),
  savedActions: Effect.fnUntraced(function* (named) {
    const ids = named.filter((id) => id.startsWith(prefixes.action))
    if (ids.length === 0) return new Map<string, SavedContent>()
    const rows = yield* sql<Pick<ActionRow, "id" | "provider_key" | "action_key" | "config"> & { holds: boolean }>`
      select id, provider_key, action_key, config, credentials is not null as holds from actions where id = any(${ids}) and ${presentOf(sql, team_id)}`
    return new Map(rows.map((row) => [row.id, { ...contentOf(row), holdsCredentials: row.holds }]))
  }),
  conditions: Effect.fnUntraced(function* (named) {
    const ids = named.filter((id) => id.startsWith(prefixes.filter))
    if (ids.length === 0) return new Map<string, Schema.Json>()
    const rows = yield* sql<{ id: string; conditions: Schema.Json }>`
      select id, conditions from filters where id = any(${ids}) and ${presentOf(sql, team_id)}`
    return new Map(rows.map((row) => [row.id, row.conditions]))
  }),
  destinations: (ids) =>
    Effect.map(
      sql<{ id: string; type: string; config: Config }>`
        select id, type, config from destinations where id = any(${[...ids]}) and ${presentOf(sql, team_id)}`,
      (rows) => new Map(rows.map((row) => [row.id, row]))
    ),
  storedKinds: (workflow_id, step_ids) =>
    sql<{ id: string; kind: string }>`
      select distinct step ->> 'id' as id, step ->> 'kind' as kind
      from (
        select steps from workflow_versions where workflow_id = ${workflow_id} and steps is not null
        order by version desc limit ${maxVersions}
      ) v cross join lateral jsonb_array_elements(v.steps) as step
      where step ->> 'id' = any(${[...step_ids]})`
})
