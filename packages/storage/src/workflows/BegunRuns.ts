import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { loopHeader } from "@tidegate/model/HeaderRules"
import type { StoredHead, Values } from "@tidegate/model/Message"
import type { RunTriggerType } from "@tidegate/model/WorkflowTriggers"
import { withPartitions } from "../retention/Partitions.ts"
import { insertRunInput } from "./RunInputs.ts"

/** Runs that no request begins: their input is stored with them. */

export interface RunBeginning {
  /** Its time decides the partitions of the run's rows. */
  readonly id: string
  readonly teamId: string
  readonly workflowId: string
  readonly shard: number
  readonly trigger: Exclude<RunTriggerType, "request">
  readonly input: StoredHead & { readonly body: Uint8Array }
  readonly at: Date
}

/**
 * A JSON body as the input of a run. `cause`: the headers of what has led to it. Its loop mark is passed on, because otherwise a loop of runs would
 * never end.
 */
export const jsonInput = (body: string, cause: Values = {}): RunBeginning["input"] => {
  const mark = cause[loopHeader]
  const headers = { "content-type": "application/json", ...(mark === undefined ? {} : { [loopHeader]: mark }) }
  return { method: "POST", path: "/", query: "", headers: JSON.stringify(headers), body: Buffer.from(body) }
}

/**
 * Begins a run by the current version of its workflow, in the caller's transaction. Nothing is written when there is such a run, or
 * when the workflow is deleted, a draft or disabled.
 */
export const beginRun = Effect.fnUntraced(function* ({
  at,
  id,
  input,
  shard,
  teamId,
  trigger,
  workflowId
}: RunBeginning): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const begun = yield* sql`
    with begun as (
      insert into workflow_runs
        (id, team_id, workflow_id, request_id, source_id, version, status, steps_count, trigger, created_at, updated_at)
      select ${id}, w.team_id, w.id, ${id}, coalesce(w.source_id, ''), w.version, 'queued',
        jsonb_array_length(w.named), ${trigger}, ${at}::timestamptz, ${at}::timestamptz
      from workflows w
      where w.id = ${workflowId} and w.team_id = ${teamId} and w.deleted_at is null and w.status in ('active', 'paused')
      on conflict do nothing returning id, team_id, workflow_id, created_at
    )
    insert into workflow_queue (run_id, team_id, shard, workflow_id, due_at)
    select id, team_id, ${shard}::int2, workflow_id, created_at from begun returning run_id`
  if (begun.length > 0) yield* insertRunInput(teamId, id, { ...input, ingested_at: at })
})

/** The same as a transaction of its own. */
export const beginOneRun = (run: RunBeginning): Effect.Effect<void, SqlError.SqlError, SqlClient.SqlClient> =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => withPartitions(sql)(sql.withTransaction(beginRun(run))))
