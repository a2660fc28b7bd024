import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { retentionDefaults } from "../retention/Retention.ts"
import { payloadGone } from "../Tables.ts"

/** The rows of a step retry. It is rare and waits for nobody, so it does not use the journal of runs. */

/** A run in its current state, for the retry of one of its steps. */
export interface RetryableRun {
  readonly id: string
  readonly version: number
  readonly status: "queued" | "running" | "succeeded" | "failed"
  readonly parts: number
  readonly attempts: number
  /** The id of the last requested retry, and the step. */
  readonly retry_id: string | null
  readonly retried_step_id: string | null
  /** When retention removed the run's input; null: it is stored. */
  readonly expired_at: Date | null
}

/** Null: the workflow has no such run. */
export const readRetryable = Effect.fnUntraced(function* (
  team_id: string,
  workflowId: string,
  runId: string
): Effect.fn.Return<RetryableRun | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<RetryableRun>`
    select r.id, r.version, r.status, r.parts, r.attempts, r.retry_id, r.retried_step_id,
      case when coalesce(q.headers, i.headers, ${payloadGone}) = ${payloadGone} then least(now(), date_trunc('day', r.created_at)
        + (coalesce(t.payload_retention_days, ${retentionDefaults.payloadDays}) + 1) * interval '1 day') end as expired_at
    from workflow_runs r
      join teams t on t.id = r.team_id
      left join lateral (select headers from requests where requests.id = r.request_id limit 1) q on true
      left join workflow_inputs i on i.run_id = r.request_id
    where r.id = ${runId} and r.workflow_id = ${workflowId} and r.team_id = ${team_id}`
  return row ?? null
})

/** A step's retry, and its effect on the run. Times are Unix ms. */
export interface StepRetryRecord {
  readonly id: string
  readonly runId: string
  readonly stepId: string
  readonly shard: number
  /** The number of its journal entry. */
  readonly part: number
  readonly partId: string
  readonly at: number
  readonly succeeded: number
  readonly failed: number
  readonly skipped: number
  /** JSON. */
  readonly steps: string
  readonly outputs: string | null
}

/** Puts the run back into its workflow's queue. False: another write was first, and nothing was written. */
export const storeRetry = Effect.fnUntraced(function* (
  retry: StepRetryRecord
): Effect.fn.Return<boolean, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const at = new Date(retry.at)
  const rows = yield* sql`
    with moved as (
      update workflow_runs set status = 'queued', outcome = null, parts = ${retry.part}, attempts = attempts + 1,
        succeeded_steps = ${retry.succeeded}, failed_steps = ${retry.failed}, skipped_steps = ${retry.skipped}, running_steps = 0,
        error_code = null, error_message = null, error_step_id = null, retry_id = ${retry.id},
        retried_step_id = ${retry.stepId}, retried_at = ${at}, finished_at = null, updated_at = ${at}
      where id = ${retry.runId} and parts = ${retry.part - 1} and finished_at is not null
      returning id, team_id, workflow_id
    ), written as (
      insert into workflow_steps (id, team_id, run_id, part, steps, outputs, created_at)
      select ${retry.partId}, team_id, id, ${retry.part}::int, ${retry.steps}, ${retry.outputs}, ${at}::timestamptz from moved
    )
    insert into workflow_queue (run_id, team_id, shard, workflow_id, due_at)
    select id, team_id, ${retry.shard}::int, workflow_id, ${at}::timestamptz from moved
    on conflict (run_id) do update set due_at = excluded.due_at
    returning run_id`
  return rows.length > 0
})
