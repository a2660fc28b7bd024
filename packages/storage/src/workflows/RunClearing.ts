import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { idBound, idTime, prefixes } from "@tidegate/model/Ids"
import * as Columns from "../journal/Columns.ts"

/** Runs that one statement removes. */
const batch = 200

/** Removes runs of a deleted workflow, with their journal entries and queue rows; returns whether there may be more. */
export const clearDeleted = Effect.fnUntraced(function* (
  workflowId: string
): Effect.fn.Return<boolean, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ id: string }>`
    select id from workflow_runs where workflow_id = ${workflowId} order by workflow_id, id limit ${batch}`
  if (rows.length === 0) {
    // Queue rows whose run's record retention has removed.
    yield* sql`delete from workflow_queue where workflow_id = ${workflowId}`
    return false
  }
  const ids = rows.map(({ id }) => id)
  const [first, last] = Columns.bounds(ids)
  yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`delete from workflow_queue where run_id = any(${Columns.text(ids)})`
      yield* sql`delete from workflow_steps where run_id = any(${Columns.text(ids)})
        and id >= ${idBound(prefixes.workflowPart, idTime(first) ?? 0)}`
      yield* sql`delete from workflow_inputs where run_id = any(${Columns.text(ids)})`
      yield* sql`delete from workflow_runs where id = any(${Columns.text(ids)}) and id >= ${first} and id <= ${last}`
    })
  )
  return true
})
