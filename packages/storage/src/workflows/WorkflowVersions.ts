import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { isSameJson } from "@tidegate/json/ExactNumber"
import { idBound, prefixes } from "@tidegate/model/Ids"
import { beyondLimit, TeamLimits } from "@tidegate/resources/TeamLimits"
import type { VersionSettings } from "../reads/VersionReads.ts"
import type { WorkflowRow } from "./WorkflowRow.ts"

/** How long after a version was replaced a run of it may still be committed (ms). In practice that takes seconds. */
const supersededMs = 60_000
/** A run has the time of its request, from another process's clock: the largest difference that is taken into account (ms). */
const clocksDifferMs = 600_000
/**
 * Versions that one save checks for removal, and runs of each version's time: a save must not take long. A version with more runs
 * counts as used.
 */
const maxLookedAt = 20
const maxRuns = 2_000

interface Kept {
  readonly version: number
  readonly created_at: Date
  readonly superseded_at: Date
}

/**
 * Limits the versions of a workflow: the oldest unused ones are removed for the next one. Fails when all checked versions are
 * used by runs. The caller holds the lock of the workflow's row.
 */
export const makeRoomForVersion = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { id }: { readonly id: string },
  at: Date
): Effect.fn.Return<void, GatewayError | SqlError.SqlError> {
  const limit = (yield* TeamLimits)["workflow_versions"]!
  const [kept] = yield* sql<{ count: number }>`
    select count(*)::int4 as count from workflow_versions where workflow_id = ${id}`
  let toGo = (kept?.count ?? 0) - limit + 1
  if (toGo <= 0) return
  // A version whose definition later versions refer to stays until those are gone. Only an active or paused workflow begins runs.
  const old = yield* sql<Kept>`
    select v.version, v.created_at, next.created_at as superseded_at from workflow_versions v
      cross join lateral (select created_at from workflow_versions n
        where n.workflow_id = v.workflow_id and n.version > v.version order by n.version limit 1) next
    where v.workflow_id = ${id} and not v.has_run
      and (next.created_at < ${new Date(at.getTime() - supersededMs)} or v.status in ('draft', 'disabled'))
      and not exists (select from workflow_versions o
        where o.workflow_id = v.workflow_id and o.version > v.version and o.defined_in = v.version)
    order by v.version limit ${maxLookedAt}`
  for (const { created_at, superseded_at, version } of old) {
    if (toGo <= 0) return
    const from = idBound(prefixes.workflowRun, Math.max(0, created_at.getTime() - clocksDifferMs))
    const to = idBound(prefixes.workflowRun, superseded_at.getTime() + clocksDifferMs)
    const [runs] = yield* sql<{ count: number; named: boolean }>`
      select count(*)::int4 as count, coalesce(bool_or(version = ${version}), false) as named from (
        select version from workflow_runs where workflow_id = ${id} and id >= ${from} and id < ${to} limit ${maxRuns}) r`
    if (runs === undefined || runs.named || runs.count >= maxRuns) continue
    yield* sql`delete from workflow_versions where workflow_id = ${id} and version = ${version}`
    toGo--
  }
  if (toGo > 0) yield* beyondLimit("workflow_versions", limit, "wait until retention has taken some of their runs")
})

/** The members by which versions are compared, besides their definition and their own columns. */
const settingsOf = ({ description, source_id, triggers }: WorkflowRow): VersionSettings => ({
  description,
  source_id,
  triggers
})

/**
 * Stores a version of the current row, and who asked for it. When the definition has not changed, it refers to the version that
 * has it.
 */
export const keepVersion = (
  sql: SqlClient.SqlClient,
  before: WorkflowRow | null,
  after: WorkflowRow,
  by: string | null
) => {
  const { definition_hash, edges, id, name, run_label, status, steps, team_id, updated_at, version } = after
  const isSame = before !== null && isSameJson([before.steps, before.edges], [steps, edges])
  const defined_in = isSame
    ? sql`(select defined_in from workflow_versions where workflow_id = ${id} and version = ${before.version})`
    : sql`${version}`
  return sql`
    insert into workflow_versions
      (workflow_id, version, team_id, name, status, definition_hash, defined_in, steps, edges, run_label, settings, created_by_user_id, created_at)
    select ${id}, ${version}, ${team_id}, ${name}, ${status}, ${definition_hash}, ${defined_in},
      ${isSame ? null : JSON.stringify(steps)}::jsonb, ${isSame ? null : JSON.stringify(edges)}::jsonb, ${run_label},
      ${JSON.stringify(settingsOf(after))}::jsonb, ${by}, ${updated_at}`
}
