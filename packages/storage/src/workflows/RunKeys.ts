import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import * as Columns from "../journal/Columns.ts"

/** A run that has not begun, with its key. */
export interface KeyedRun {
  readonly id: string
  readonly team_id: string
  readonly key: string
  readonly created_at: Date
}

/**
 * Returns the run to which each of these keys belongs. A run takes a key that is free: one that no run has, or whose window was over when the run was
 * created. A run keeps a key that it has, so a repeated call returns the same. No key may occur twice in a call.
 */
export const claimKeys: (
  workflowId: string,
  windowMs: number,
  runs: ReadonlyArray<KeyedRun>
) => Effect.Effect<ReadonlyMap<string, string>, SqlError.SqlError, SqlClient.SqlClient> = Effect.fnUntraced(function* (
  workflowId: string,
  windowMs: number,
  runs: ReadonlyArray<KeyedRun>
) {
  if (runs.length === 0) return new Map()
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ key: string; run_id: string }>`
    with claimed as (
      insert into workflow_keys as k (workflow_id, key, team_id, run_id, expires_at)
      select ${workflowId}, key, team_id, id, created_at + ${windowMs}::float8 * interval '1 millisecond'
      from unnest(${Columns.text(runs.map(({ id }) => id))}, ${Columns.text(runs.map(({ team_id }) => team_id))},
        ${Columns.text(runs.map(({ key }) => key))}, ${Columns.timestamptz(runs.map(({ created_at }) => created_at.getTime()))}
      ) as r (id, team_id, key, created_at)
      order by key
      on conflict (workflow_id, key) do update set run_id = excluded.run_id, expires_at = excluded.expires_at
      where k.expires_at <= excluded.expires_at - ${windowMs}::float8 * interval '1 millisecond'
      returning key, run_id
    )
    select key, run_id from claimed
    union all
    select k.key, k.run_id from workflow_keys k
    where k.workflow_id = ${workflowId} and k.key = any(${Columns.text(runs.map(({ key }) => key))})
      and not exists (select from claimed c where c.key = k.key)`
  const owners = new Map(rows.map(({ key, run_id }) => [key, run_id]))
  // A key that another statement has taken meanwhile is neither free nor visible here: the next statement sees it.
  const missing = runs.filter(({ key }) => !owners.has(key))
  return missing.length === 0 ? owners : new Map([...owners, ...(yield* claimKeys(workflowId, windowMs, missing))])
})
