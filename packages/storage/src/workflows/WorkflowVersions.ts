import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { idBound, prefixes } from "@tidegate/model/Ids"
import { beyondLimit, TeamLimits } from "@tidegate/resources/TeamLimits"

/** A run is committed while the version that it names is the workflow's, or seconds later: no other is to come by then. */
const supersededMs = 60_000
/** A run has the time of its request, which another process's clock has told. */
const clocksDifferMs = 600_000
/** Versions that are looked at for room, and runs of the time of each: a save must not take long. Beyond them a version is taken for one that runs go by. */
const maxLookedAt = 20
const maxRuns = 2_000

interface Kept {
  readonly version: number
  readonly created_at: Date
  readonly superseded_at: Date
}

/**
 * Keeps the versions of a workflow to as many as there may be: the oldest that no run goes by make room for the next one. Fails when runs go by
 * all of them that were looked at. Its caller holds the workflow's row.
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
  // A version that others are defined in stays until these are gone. Runs begin by a workflow that is active, or paused.
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
