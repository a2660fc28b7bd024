import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { finish, type Row } from "./BulkRow.ts"
import { atRest, batchOf, type Share, type Step } from "./BulkSteps.ts"
import { isOfRuns, nothing, type RunKind } from "./BulkTargets.ts"
import * as Columns from "../journal/Columns.ts"
import { query } from "../Transaction.ts"

/*
 * The targets of a bulk operation of runs. Only the actor of a workflow changes its runs, so a step has three parts: it reads
 * targets, the actors handle them, and it removes them. A process that dies in between leaves the targets, and the next one
 * repeats them. This changes nothing: a cancelled run stays as it is, and a retry has an id that follows from the operation and
 * the run.
 */

/** When targets were left, the next step waits for this time (ms): a shard has moved by then. */
const leftMs = 1_000

/** A run to handle. */
export interface RunTarget {
  readonly id: string
  /** Null: the run was deleted. */
  readonly workflow_id: string | null
  /** The step at which it has failed. */
  readonly error_step_id: string | null
  /** The last retry of one of its steps. */
  readonly retry_id: string | null
}

/** The runs of one step. */
export interface RunBatch {
  readonly type: RunKind
  readonly team_id: string
  readonly runs: ReadonlyArray<RunTarget>
}

/** The runs that a step of a running operation handles, oldest first. Null: the operation is not running, or not one of runs. */
export const nextRuns = Effect.fnUntraced(function* (
  operationId: string,
  share: Share
): Effect.fn.Return<RunBatch | null, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* query(sql<Row>`
    select * from bulk_operations where id = ${operationId} and status = 'RUNNING' and finished_at is null`)
  if (row === undefined || !isOfRuns(row.type)) return null
  const runs = yield* query(sql<RunTarget>`
    select t.target_id as id, r.workflow_id, r.error_step_id, r.retry_id
    from (
      select target_id from bulk_targets where operation_id = ${operationId} order by target_id limit ${batchOf(row, share)}
    ) t left join workflow_runs r on r.id = t.target_id and r.team_id = ${row.team_id}
    order by t.target_id`)
  return { type: row.type, team_id: row.team_id, runs }
})

/** The results of the actors. `left`: targets to try again. */
export interface HandledRuns {
  readonly done: ReadonlyArray<string>
  readonly refused: ReadonlyArray<string>
  readonly left: ReadonlyArray<string>
}

/** Removes the handled targets and counts them: each once, even if two processes have handled it. */
export const recordRuns = Effect.fnUntraced(function* (
  operationId: string,
  share: Share,
  { done, left, refused }: HandledRuns
): Effect.fn.Return<Step, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const recording = Effect.gen(function* () {
    const [row] = yield* sql<Row>`
      select * from bulk_operations where id = ${operationId} and finished_at is null for update`
    if (row === undefined) return atRest
    const removed = yield* sql<{ target_id: string }>`
      delete from bulk_targets
      where operation_id = ${operationId} and target_id = any(${Columns.text([...done, ...refused])}) returning target_id`
    const isDone = new Set(done)
    const now = removed.filter(({ target_id }) => isDone.has(target_id)).length
    const queued = row.queued_count + now
    const failed = row.failed_count + removed.length - now
    yield* sql`update bulk_operations set queued_count = ${queued}, failed_count = ${failed} where id = ${operationId}`
    const isOver =
      left.length === 0 &&
      (yield* sql`
      select from bulk_targets where operation_id = ${operationId} limit 1`).length === 0
    if (isOver) yield* finish(operationId, queued === 0 && failed > 0 ? "FAILED" : "COMPLETED")
    const ratedMs = row.rate === null ? 0 : (removed.length * 1_000) / row.rate
    return {
      ...nothing,
      isOver,
      part: batchOf(row, share) / share.targets,
      pauseMs: left.length === 0 ? ratedMs : Math.max(leftMs, ratedMs)
    }
  })
  return yield* query(sql.withTransaction(recording))
})
