import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { ignoredParts } from "@tidegate/connectors/Connectors"
import type { Config } from "@tidegate/connectors/Settings"
import { prefixes } from "@tidegate/model/Ids"
import type { Edge, Step } from "@tidegate/workflows/Definition"
import type { Issue } from "@tidegate/workflows/Issue"
import { presentOf } from "../control/PresentOf.ts"

/** Faults of a graph that compiles, from the workflow's earlier versions and from the resources that its steps name now. */

/** The number of earlier versions that are checked. */
const maxVersions = 200

/** Steps that had another kind in an earlier version: one history would be of two different things. */
export const changedKinds = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  before: { readonly id: string; readonly steps: ReadonlyArray<Step> } | null,
  steps: ReadonlyArray<Step>
): Effect.fn.Return<ReadonlyArray<Issue>, SqlError.SqlError> {
  if (before === null) return []
  const kinds = new Map(before.steps.map(({ id, kind }) => [id, kind]))
  const fresh = steps.filter(({ id }) => !kinds.has(id)).map(({ id }) => id)
  if (fresh.length > 0) {
    const past = yield* sql<{ id: string; kind: string }>`
      select distinct step ->> 'id' as id, step ->> 'kind' as kind
      from (
        select steps from workflow_versions where workflow_id = ${before.id} and steps is not null
        order by version desc limit ${maxVersions}
      ) v cross join lateral jsonb_array_elements(v.steps) as step
      where step ->> 'id' = any(${fresh})`
    for (const { id, kind } of past) kinds.set(id, kind)
  }
  return steps.flatMap(({ id, kind }): ReadonlyArray<Issue> => {
    const was = kinds.get(id)
    if (was === undefined || was === kind) return []
    const message = `was ${was} in a version before, and a step keeps its kind: give this one another id`
    return [{ code: "STEP_KIND_CHANGED", step_id: id, edge_id: null, field: "kind", message }]
  })
})

interface Given {
  readonly destination: string
  readonly part: string
  readonly issue: Pick<Issue, "edge_id" | "field" | "step_id">
}

const parts = ["path", "query"] as const

/** Paths and queries that steps pass to destinations, or that edges pass to such steps. */
const givenOf = (steps: ReadonlyArray<Step>, edges: ReadonlyArray<Edge>): ReadonlyArray<Given> => {
  const destinations = new Map(
    steps.flatMap(({ id, kind, resource_id }) =>
      kind === "destination" && resource_id !== null && resource_id.startsWith(prefixes.destination)
        ? [[id, resource_id] as const]
        : []
    )
  )
  const partsIn = (given: object | null) => parts.filter((part) => given !== null && Object.hasOwn(given, part))
  const ofSteps = steps.flatMap(({ id, invocation_inputs }) =>
    partsIn(invocation_inputs).map((part) => ({
      destination: destinations.get(id),
      part,
      issue: { step_id: id, edge_id: null, field: `invocation_inputs.${part}` }
    }))
  )
  const ofEdges = edges.flatMap(({ id, mapping, target_step_id }) =>
    partsIn(mapping).map((part) => ({
      destination: destinations.get(target_step_id),
      part,
      issue: { step_id: null, edge_id: id, field: `mapping.${part}` }
    }))
  )
  return [...ofSteps, ...ofEdges].flatMap((given) =>
    given.destination === undefined ? [] : [{ ...given, destination: given.destination }]
  )
}

/** Inputs of steps that their destinations do not send. */
export const ignoredInputs = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  team_id: string,
  steps: ReadonlyArray<Step>,
  edges: ReadonlyArray<Edge>
): Effect.fn.Return<ReadonlyArray<Issue>, SqlError.SqlError> {
  const given = givenOf(steps, edges)
  if (given.length === 0) return []
  const ids = [...new Set(given.map(({ destination }) => destination))]
  const rows = yield* sql<{ id: string; type: string; config: Config }>`
    select id, type, config from destinations where id = any(${ids}) and ${presentOf(sql, team_id)}`
  const found = new Map(rows.map((row) => [row.id, row]))
  return given.flatMap(({ destination, issue, part }): ReadonlyArray<Issue> => {
    const row = found.get(destination)
    if (row === undefined || !ignoredParts(row.type, row.config).includes(part)) return []
    const message = `has no effect: the destination ${destination} (${row.type}) leaves the ${part} out of what it sends`
    return [{ code: "STEP_CONFIG_INVALID", ...issue, message }]
  })
})
