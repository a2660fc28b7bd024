import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import type { WorkflowStatus } from "@tidegate/model/Workflow"
import type { FailureRun } from "@tidegate/model/WorkflowRun"
import type { RunTriggerType } from "@tidegate/model/WorkflowTriggers"
import { onFailureFault } from "@tidegate/resources/workflow/OnFailure"
import { masked } from "@tidegate/workflows/RunReport"
import { onFailureOf } from "../journal/FailureStatement.ts"
import { readHeaders } from "../reads/Payload.ts"
import { withPartitions } from "../retention/Partitions.ts"
import { beginRun, jsonInput } from "./BegunRuns.ts"

/**
 * Runs that begin because another one has failed. The commit that ends a failed run is an arrival for its own workflow (`RunStatement.ts`), so
 * none is lost. What becomes of it is stored in the failed run, in the transaction that begins the other one: so a failure begins one run, and no other.
 */

interface Failed {
  readonly target: string | null
  readonly workflow_name: string
  readonly version: number
  readonly label: string | null
  readonly trigger: Exclude<RunTriggerType, "request"> | null
  readonly request_id: string
  readonly attempts: number
  readonly error_code: string | null
  readonly error_message: string | null
  readonly error_step_id: string | null
  readonly created_at: Date
  readonly started_at: Date | null
  readonly finished_at: Date
  readonly on_failure: FailureRun | null
  /** Empty: retention has removed what the run began with. */
  readonly headers: string
}

const bodyOf = (workflow_id: string, run_id: string, run: Failed): object => ({
  workflow: { id: workflow_id, name: run.workflow_name, version: run.version },
  run: {
    id: run_id,
    label: run.label,
    trigger_type: run.trigger ?? "request",
    request_id: run.request_id,
    attempt_count: run.attempts,
    created_at: run.created_at.toISOString(),
    started_at: run.started_at?.toISOString() ?? null,
    finished_at: run.finished_at.toISOString()
  },
  error: {
    code: run.error_code,
    message: run.error_message === null ? null : masked()(run.error_message),
    step_id: run.error_step_id
  }
})

interface Refusal {
  readonly code: string
  readonly message: string
}

const looped: Refusal = {
  code: "ON_FAILURE_LOOP",
  message: "the run follows from another failed run: its own failure begins no run"
}

interface Told {
  readonly team_id: string
  readonly workflow_id: string
  readonly run_id: string
  /** The shard of a workflow's actor. */
  readonly shardOf: (workflowId: string) => number
}

/**
 * Begins the on-failure run of a failed run, once for each time that it fails. Null: there is nothing to do. The run goes on again, or its
 * failure has been dealt with, or no workflow is named any more.
 */
export const beginFailureRun = Effect.fnUntraced(function* ({
  run_id,
  shardOf,
  team_id,
  workflow_id
}: Told): Effect.fn.Return<FailureRun | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const now = yield* Clock.currentTimeMillis

  const refusalOf = Effect.fnUntraced(function* (target: string): Effect.fn.Return<Refusal | null, SqlError.SqlError> {
    // A run that it has called by a step would otherwise begin it again, for ever.
    const [loop] = yield* sql`
      select from workflow_runs r where r.trigger = 'failure'
        and r.id = coalesce((select root_run_id from workflow_children where child_run_id = ${run_id}), ${run_id})`
    if (loop !== undefined) return looped
    const [named] = yield* sql<{ status: WorkflowStatus }>`
      select status from workflows where id = ${target} and team_id = ${team_id} and deleted_at is null for share`
    if (named === undefined) return { code: "RESOURCE_DELETED", message: "the on-failure workflow was deleted" }
    return onFailureFault(named.status) === null
      ? null
      : { code: "WORKFLOW_NOT_EXECUTABLE", message: `the on-failure workflow is ${named.status}` }
  })

  const beginning = Effect.gen(function* (): Effect.fn.Return<
    FailureRun | null,
    SqlError.SqlError,
    SqlClient.SqlClient
  > {
    const [run] = yield* sql<Failed>`
      select ${sql.literal(onFailureOf("w", "t"))} as target, w.name as workflow_name, r.version, r.label, r.trigger, r.request_id,
        r.attempts, r.error_code, r.error_message, r.error_step_id, r.created_at, r.started_at, r.finished_at, r.on_failure,
        coalesce(q.headers, i.headers, '') as headers
      from workflow_runs r join workflows w on w.id = r.workflow_id join teams t on t.id = r.team_id
        left join lateral (select headers from requests where requests.id = r.request_id limit 1) q on true
        left join workflow_inputs i on i.run_id = r.request_id
      where r.id = ${run_id} and r.workflow_id = ${workflow_id} and r.team_id = ${team_id} and r.status = 'failed'
        and r.finished_at is not null
      for update of r`
    if (run === undefined || run.target === null) return null
    const { attempts, on_failure, target } = run
    if (on_failure?.attempt === attempts) return null
    const refusal = yield* refusalOf(target)
    const id = newId(prefixes.workflowRun, now)
    const told: FailureRun = {
      attempt: attempts,
      workflow_id: target,
      run_id: refusal === null ? id : null,
      error_code: refusal?.code ?? null,
      error_message: refusal?.message ?? null
    }
    if (refusal === null) {
      yield* beginRun({
        id,
        teamId: team_id,
        workflowId: target,
        shard: shardOf(target),
        trigger: "failure",
        input: jsonInput(JSON.stringify(bodyOf(workflow_id, run_id, run)), readHeaders(run.headers)),
        at: new Date(now)
      })
    }
    yield* sql`update workflow_runs set on_failure = ${JSON.stringify(told)}::jsonb where id = ${run_id}`
    return told
  })
  return yield* withPartitions(sql)(sql.withTransaction(beginning))
})
