import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { beyondLimit, TeamLimits } from "@tidegate/resources/TeamLimits"

/**
 * Limits of teams, by what the database counts with each row that comes and goes (`team_counts`). The count of a kind is a row, which whoever makes
 * one more holds until the commit: of creates at once each sees what the others have made.
 */

/** So many creates at once there cannot be, of all processes: a team that is further from its limit does not reach it meanwhile. */
const margin = 500

/** Whether there is a team that is so far from a limit. */
export const isBeyondMargin = (limit: number): boolean => limit > margin

/** Whether a team is so far from its limit that nobody need hold the count: an expression, for the statement that makes a row. */
export const isFarFromLimit = (sql: SqlClient.SqlClient, team_id: string, kind: string, limit: number) => sql`
  coalesce((select count from team_counts where team_id = ${team_id} and kind = ${kind}), 0) < ${limit - margin}`

/** Takes the place of one more, which has that id (it may be there, where a create comes again); fails when the team has as many as it may. */
export const takePlace = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  kind: string,
  { id, team_id }: { readonly id: string; readonly team_id: string }
): Effect.fn.Return<void, GatewayError | SqlError.SqlError> {
  const limit = (yield* TeamLimits)[kind]!
  const held = sql<{ count: number }>`
    select count::float8 as count from team_counts where team_id = ${team_id} and kind = ${kind} for update`
  let [row] = yield* held
  if (row === undefined) {
    yield* sql`insert into team_counts (team_id, kind, count) values (${team_id}, ${kind}, 0) on conflict do nothing`
    ;[row] = yield* held
  }
  if (row === undefined || row.count < limit) return
  const own = yield* sql`select from ${sql(kind)} where id = ${id} and team_id = ${team_id} and deleted_at is null`
  if (row.count - own.length >= limit) yield* beyondLimit(kind, limit, "delete one first")
})
