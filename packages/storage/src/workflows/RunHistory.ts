import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { idBound, idTime, prefixes } from "@tidegate/model/Ids"
import type { ClearedRuns } from "@tidegate/model/WorkflowRun"
import * as Columns from "../journal/Columns.ts"
import { workflowOf } from "../reads/RunReads.ts"

/** Runs of one statement: its transaction is too short for its locks to matter. */
const batch = 500
/** Runs that one call removes, so that it returns within the time that its caller waits. */
const maxInCall = 20_000
const countAtMost = 10_000

/**
 * Removes the finished runs of a workflow with their journal entries. Only a step retry still writes such a run. It finds its run
 * or does not, and a run that has been resumed meanwhile stays.
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

/** Removes those of these runs that are finished, with their journal entries. */
export const removeRuns = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
  const sql = yield* SqlClient.SqlClient
  const [first, last] = Columns.bounds(ids)
  // A journal entry is in the partition of the day on which it was written, which is never before its run's.
  const [gone] = yield* sql<{ count: number }>`
    with gone as (
      delete from workflow_runs where id = any(${Columns.text(ids)}) and id >= ${first} and id <= ${last}
        and finished_at is not null returning id
    ), steps as (
      delete from workflow_steps where run_id = any(array(select id from gone))
        and id >= ${idBound(prefixes.workflowPart, idTime(first) ?? 0)}
    ), inputs as (
      delete from workflow_inputs where run_id = any(array(select id from gone))
    )
    select count(*)::int4 as count from gone`
  return gone?.count ?? 0
})
