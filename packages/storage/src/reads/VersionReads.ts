import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { listed, type Listed } from "@tidegate/model/Lists"
import type { WorkflowStatus } from "@tidegate/model/Workflow"
import { completeTriggers, type WorkflowTriggers } from "@tidegate/model/WorkflowTriggers"
import type { WorkflowComparison, WorkflowVersion, WorkflowVersionDetail } from "@tidegate/model/WorkflowVersion"
import { compare, type Compared } from "@tidegate/workflows/Comparison"
import type { Edge, Step } from "@tidegate/workflows/Definition"
import { shownGraph } from "@tidegate/workflows/StepCredentials"
import { cursorAfter, cutToLimit, type PageRequest, positionOf } from "./Paging.ts"
import { workflowOf } from "./RunReads.ts"

/** The stored versions of a workflow. */

/** The members of a version besides its definition. A version that was made before these were stored has none. */
export interface VersionSettings {
  readonly description: string | null
  readonly source_id: string | null
  readonly triggers: WorkflowTriggers | null
}

interface VersionRow {
  readonly version: number
  readonly name: string
  readonly status: WorkflowStatus
  readonly run_label: string | null
  readonly settings: VersionSettings | null
  readonly definition_hash: string
  readonly created_by_user_id: string | null
  readonly created_at: Date
}
interface DefinedRow extends VersionRow {
  readonly steps: ReadonlyArray<Step>
  readonly edges: ReadonlyArray<Edge>
}

type Reading<A> = Effect.fn.Return<A, GatewayError | SqlError.SqlError, SqlClient.SqlClient>

const columns = (sql: SqlClient.SqlClient) =>
  sql`v.version, v.name, v.status, v.run_label, v.settings, v.definition_hash, v.created_by_user_id, v.created_at`

const recordOf = (workflow_id: string, current: number, row: VersionRow): WorkflowVersion => ({
  workflow_id,
  version: row.version,
  is_current: row.version === current,
  name: row.name,
  status: row.status,
  description: row.settings?.description ?? null,
  source_id: row.settings?.source_id ?? null,
  run_label: row.run_label,
  triggers: completeTriggers(row.settings?.triggers ?? null),
  definition_hash: row.definition_hash,
  created_by_user_id: row.created_by_user_id,
  created_at: row.created_at.toISOString()
})

/** Versions are numbers of four bytes; a cursor that somebody made up may say anything. */
const largestVersion = 2 ** 31 - 1

/** Newest first. */
export const list = Effect.fnUntraced(function* (
  team: string,
  workflow_id: string,
  page: PageRequest
): Reading<Listed<WorkflowVersion>> {
  const sql = yield* SqlClient.SqlClient
  const { version } = yield* workflowOf(team, workflow_id)
  const position = yield* Effect.fromResult(positionOf(page))
  const before = position === null ? largestVersion : Math.min(Number(position.id) || 0, largestVersion)
  const found = yield* sql<VersionRow>`
    select ${columns(sql)} from workflow_versions v
    where v.workflow_id = ${workflow_id} and v.team_id = ${team} and v.version < ${before}
    order by v.version desc limit ${page.limit + 1}`
  const { last, page: rows } = cutToLimit(found, page.limit)
  return listed(
    rows.map((row) => recordOf(workflow_id, version, row)),
    cursorAfter(page.key, last === null ? null : { id: String(last.version) })
  )
})

const defined = Effect.fnUntraced(function* (team: string, workflow_id: string, version: number): Reading<DefinedRow> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<DefinedRow>`
    select ${columns(sql)}, d.steps, d.edges from workflow_versions v
      join workflow_versions d on d.workflow_id = v.workflow_id and d.version = v.defined_in
    where v.workflow_id = ${workflow_id} and v.team_id = ${team} and v.version = ${version}`
  return row ?? (yield* notFound("workflow_version", String(version)))
})

export const get = Effect.fnUntraced(function* (
  team: string,
  workflow_id: string,
  version: number
): Reading<WorkflowVersionDetail> {
  const { version: current } = yield* workflowOf(team, workflow_id)
  const row = yield* defined(team, workflow_id, version)
  return { ...recordOf(workflow_id, current, row), ...shownGraph(row) } as unknown as WorkflowVersionDetail
})

/** The definition that a roll-back writes, in its stored form. */
export const definitionOf = Effect.fnUntraced(function* (
  team: string,
  workflow_id: string,
  version: number
): Reading<Pick<DefinedRow, "steps" | "edges" | "run_label">> {
  yield* workflowOf(team, workflow_id)
  const { edges, run_label, steps } = yield* defined(team, workflow_id, version)
  return { steps, edges, run_label }
})

const comparedOf = ({ edges, name, run_label, settings, status, steps }: DefinedRow): Compared => ({
  steps,
  edges,
  settings: { name, status, run_label, ...(settings as object) }
})

/** `to`: null for the current version. */
export const comparison = Effect.fnUntraced(function* (
  team: string,
  workflow_id: string,
  from: number,
  to: number | null
): Reading<WorkflowComparison> {
  const { version: current } = yield* workflowOf(team, workflow_id)
  const to_version = to ?? current
  const before = yield* defined(team, workflow_id, from)
  const after = yield* defined(team, workflow_id, to_version)
  return { workflow_id, from_version: from, to_version, ...compare(comparedOf(before), comparedOf(after)) }
})
