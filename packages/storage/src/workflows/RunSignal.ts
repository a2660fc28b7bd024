import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"

/** A run that has not ended, for a signal to one of its steps. */
export interface SignalledRun {
  readonly version: number
  readonly parts: number
}

/** Null: the workflow has no such run. */
export const readSignalled = Effect.fnUntraced(function* (
  team_id: string,
  workflowId: string,
  runId: string
): Effect.fn.Return<SignalledRun | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<SignalledRun>`
    select version, parts from workflow_runs
    where id = ${runId} and workflow_id = ${workflowId} and team_id = ${team_id}`
  return row ?? null
})

/** The journal entry of a signal. Times are Unix ms. */
export interface SignalRecord {
  readonly runId: string
  /** The number of its journal entry. */
  readonly part: number
  readonly partId: string
  readonly at: number
  /** JSON. */
  readonly steps: string
  /** Lines of JSON; null: nothing new. */
  readonly outputs: string | null
}

/** Stores the signal; the run is due at once. False: another write was first, and nothing was written. */
export const storeSignal = Effect.fnUntraced(function* ({
  at,
  outputs,
  part,
  partId,
  runId,
  steps
}: SignalRecord): Effect.fn.Return<boolean, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const time = new Date(at)
  const rows = yield* sql`
    with moved as (
      update workflow_runs set parts = ${part}, updated_at = ${time}
      where id = ${runId} and parts = ${part - 1} and finished_at is null
      returning id, team_id
    ), written as (
      insert into workflow_steps (id, team_id, run_id, part, steps, outputs, previews, created_at)
      select ${partId}, team_id, id, ${part}::int, ${steps}, ${outputs}::text, '{}', ${time}::timestamptz from moved
    ), due as (
      update workflow_queue set due_at = ${time}::timestamptz where run_id = any(array(select id from moved))
    )
    select id from moved`
  return rows.length > 0
})
