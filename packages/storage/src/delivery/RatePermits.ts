import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { HotSql } from "../Database.ts"

/*
 * The rate permits that steps have used of a destination or a saved action, stored by its actor: a text beside the results of
 * steps, deleted when it is no longer needed.
 */

/** The last stored text; null: there is none, or it has expired. */
export const readPermits = Effect.fnUntraced(function* (
  team_id: string,
  id: string
): Effect.fn.Return<string | null, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  const [row] = yield* sql<{ result: string }>`
    select result from step_results where key = ${id} and team_id = ${team_id}`
  return row?.result ?? null
})

/** Replaces the text `before`; false: another process has replaced it meanwhile, and nothing was written. */
export const storePermits = Effect.fnUntraced(function* (options: {
  readonly team_id: string
  readonly id: string
  readonly before: string | null
  readonly next: string
  readonly until: Date
}): Effect.fn.Return<boolean, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  const { before, id, next, team_id, until } = options
  const rows = yield* sql`
    insert into step_results as r (key, team_id, result, expires_at) values (${id}, ${team_id}, ${next}, ${until})
    on conflict (key) do update set result = excluded.result, expires_at = excluded.expires_at
    where r.result = ${before}::text and r.team_id = excluded.team_id
    returning 1`
  return rows.length > 0
})
