import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { StoredHead } from "@tidegate/model/Message"
import { withPartitions } from "../retention/Partitions.ts"
import { query } from "../Transaction.ts"
import { insertRunInput, isOwnInput, type RunInput } from "./RunInputs.ts"

/** The rows of calls that steer runs: cancel one, or begin one again. They are rare, and do not use the journal of runs. */

/** A run in its current state. */
export interface SteeredRun {
  readonly id: string
  readonly team_id: string
  readonly version: number
  readonly current_version: number
  readonly parts: number
  readonly attempts: number
  readonly outcome: string | null
  readonly error_code: string | null
  readonly finished: boolean
}

/** Null: the workflow has no such run. */
export const readSteered = Effect.fnUntraced(function* (
  team_id: string,
  workflowId: string,
  runId: string
): Effect.fn.Return<SteeredRun | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<SteeredRun>`
    select r.id, r.team_id, r.version, w.version as current_version, r.parts, r.attempts, r.outcome, r.error_code,
      r.finished_at is not null as finished
    from workflow_runs r join workflows w on w.id = r.workflow_id
    where r.id = ${runId} and r.workflow_id = ${workflowId} and r.team_id = ${team_id}`
  return row ?? null
})

/** A run that repeats another one. */
export interface Rerun {
  readonly id: string
  readonly team_id: string
  readonly workflow_id: string
  /** The run that it repeats. */
  readonly of: string
  readonly version: number
  readonly steps: number
  readonly shard: number
  readonly at: Date
  /** The parts of the request that change. Null: nothing changes. */
  readonly change: ((stored: StoredHead) => Partial<StoredHead & { readonly body: Uint8Array }>) | null
  /** Whether the change keeps the body. */
  readonly keepsBody: boolean
}

type InputRow = RunInput & { readonly request_id: string; readonly source_id: string; readonly batch_id: string | null }

const rerunRows = Effect.fnUntraced(function* (
  rerun: Rerun
): Effect.fn.Return<"stored" | "version gone" | "input gone", SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const { at, change, id, keepsBody, of, shard, steps, team_id, version, workflow_id } = rerun
  const known = yield* sql`select from workflow_runs where id = ${id} and team_id = ${team_id}`
  if (known.length > 0) return "stored"
  // A version that a run has used is not removed before its runs.
  const kept = yield* sql`
    update workflow_versions set has_run = true where workflow_id = ${workflow_id} and version = ${version} returning version`
  if (kept.length === 0) return "version gone"
  const [input] = yield* sql<InputRow>`
    select r.request_id, r.source_id, r.batch_id, coalesce(q.method, i.method) as method, coalesce(q.path, i.path) as path,
      coalesce(q.query, i.query) as query, coalesce(q.headers, i.headers, '') as headers,
      coalesce(q.ingested_at, i.ingested_at) as ingested_at,
      case when ${keepsBody && change !== null} or (${keepsBody} and i.run_id is not null) then coalesce(q.body, i.body) end as body
    from workflow_runs r
      left join lateral (select * from requests where requests.id = r.request_id limit 1) q on true
      left join workflow_inputs i on i.run_id = r.request_id
    where r.id = ${of} and r.team_id = ${team_id} for update of r`
  if (input === undefined || input.headers === "") return "input gone"
  const { batch_id, ingested_at, request_id, source_id, ...request } = input
  const isOwn = change !== null || isOwnInput(request_id)
  if (isOwn) {
    const changed = { ...request, ...change?.(request) }
    yield* insertRunInput(team_id, id, {
      ...changed,
      body: changed.body ?? new Uint8Array(0),
      ingested_at: change === null ? ingested_at : at
    })
  }
  yield* sql`
    insert into workflow_runs
      (id, team_id, workflow_id, request_id, source_id, version, status, steps_count, rerun_of, batch_id,
        created_at, updated_at)
    values (${id}, ${team_id}, ${workflow_id}, ${isOwn ? id : request_id}, ${source_id}, ${version}, 'queued', ${steps}, ${of},
      ${change === null ? batch_id : null}, ${at}, ${at})`
  yield* sql`
    insert into workflow_queue (run_id, team_id, shard, workflow_id, due_at)
    values (${id}, ${team_id}, ${shard}, ${workflow_id}, ${at})`
  return "stored"
})

/**
 * Begins a run with the input of another one. A repeated call with the same id changes nothing. `version gone`: there is no such
 * version. `input gone`: retention has removed the input. It locks the run: otherwise its input could be removed meanwhile.
 */
export const storeRerun = (rerun: Rerun) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => query(withPartitions(sql)(sql.withTransaction(rerunRows(rerun)))))
