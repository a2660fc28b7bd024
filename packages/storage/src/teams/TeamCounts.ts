import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { beyondLimit, TeamLimits } from "@tidegate/resources/TeamLimits"

/**
 * Limits of teams, by the counts that the database updates with each inserted and deleted row (`team_counts`). The count of a
 * kind is a row, which a create locks until its commit: so creates at the same time see each other's rows.
 */

/**
 * More creates than this never run at once over all processes: a team that is further from its limit cannot reach it meanwhile.
 */
const margin = 500

/** Whether a team can be that far from a limit. */
export const isBeyondMargin = (limit: number): boolean => limit > margin

/**
 * An SQL expression for whether a team is so far from its limit that the count need not be locked, for the statement that inserts
 * a row.
 */
export const isFarFromLimit = (sql: SqlClient.SqlClient, team_id: string, kind: string, limit: number) => sql`
  coalesce((select count from team_counts where team_id = ${team_id} and kind = ${kind}), 0) < ${limit - margin}`

/**
 * Reserves one more row with that id (which may exist already when a create is repeated); fails when the team has reached its
 * limit.
 */
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
