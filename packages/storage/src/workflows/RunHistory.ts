import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { idBound, idTime, prefixes } from "@tidegate/model/Ids"
import type { ClearedRuns } from "@tidegate/model/WorkflowRun"
import * as Columns from "../journal/Columns.ts"
import { workflowOf } from "../reads/RunReads.ts"

/** Runs of one statement: its transaction is over before anybody notices the locks. */
const batch = 500
/** Runs that one call takes on: it answers within the time that its caller waits. */
const maxInCall = 20_000
const countAtMost = 10_000

/**
 * Removes the runs of a workflow that are at their end, with what is kept of their steps. Nothing else writes them but a retry of a step, which
 * finds its run or does not: one that has been taken up again meanwhile stays.
 */
export const clearRuns = Effect.fnUntraced(function* (
  team: string,
  workflowId: string
): Effect.fn.Return<ClearedRuns, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* workflowOf(team, workflowId)
  let deleted = 0
  let looked = 0
  let after: string | null = ""
  while (after !== null && looked < maxInCall) {
    const rows: ReadonlyArray<{ id: string; ended: boolean }> = yield* sql<{ id: string; ended: boolean }>`
      select id, finished_at is not null as ended from workflow_runs
      where workflow_id = ${workflowId} and team_id = ${team} and id > ${after} order by id limit ${batch}`
    const ids = rows.flatMap(({ ended, id }) => (ended ? [id] : []))
    if (ids.length > 0) deleted += yield* removeRuns(ids)
    looked += rows.length
    after = rows.length < batch ? null : rows.at(-1)!.id
  }
  const [active] = yield* sql<{ count: number }>`
    select count(*) filter (where finished_at is null)::int4 as count from (
      select finished_at from workflow_runs where workflow_id = ${workflowId} and team_id = ${team} limit ${countAtMost}
    ) r`
  return { workflow_id: workflowId, deleted, retained_active: active?.count ?? 0, has_more: after !== null }
})

/** Those of these runs that are at their end, and their steps. */
export const removeRuns = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
  const sql = yield* SqlClient.SqlClient
  const [first, last] = Columns.bounds(ids)
  // Parts are of the day on which they were written: none before its run.
  const [gone] = yield* sql<{ count: number }>`
    with gone as (
      delete from workflow_runs where id = any(${Columns.text(ids)}) and id >= ${first} and id <= ${last}
        and finished_at is not null returning id
    ), steps as (
      delete from workflow_steps where run_id = any(array(select id from gone))
        and id >= ${idBound(prefixes.workflowPart, idTime(first) ?? 0)}
    )
    select count(*)::int4 as count from gone`
  return gone?.count ?? 0
})
