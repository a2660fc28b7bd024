import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { HotSql } from "../Database.ts"

/*
 * What steps have used of the rate of a destination, or of a saved action, as its actor notes it: a text, kept beside what steps have done
 * until nobody needs to know it.
 */

/** The text that was noted last; null: none, or it is over. */
export const readTurns = Effect.fnUntraced(function* (
  team_id: string,
  id: string
): Effect.fn.Return<string | null, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  const [row] = yield* sql<{ result: string }>`
    select result from step_results where key = ${id} and team_id = ${team_id}`
  return row?.result ?? null
})

/** Notes a text in the place of `before`; false: somebody else has noted another one meanwhile, and nothing was written. */
export const noteTurns = Effect.fnUntraced(function* (options: {
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
