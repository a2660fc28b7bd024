import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"

/*
 * In an installation that is older than key scopes, a team's API key works as before: calls that its scopes and grants would
 * refuse are allowed and recorded, until the operator ends that (the cut-over). It cannot be started again.
 */

/** Calls that would have been refused to a team's API key. */
export interface ShadowDenials {
  readonly team_id: string
  readonly route_key: string
  readonly count: number
}

/** The calls of the last days that would have been refused, for teams before their cut-over. */
export const shadowDenials = Effect.fnUntraced(function* (
  days: number
): Effect.fn.Return<ReadonlyArray<ShadowDenials>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const since = new Date((yield* Clock.currentTimeMillis) - days * 86_400_000)
  return yield* sql<ShadowDenials>`
    select a.team_id, a.route_key, sum(a.count)::float8 as count
    from key_audit a join teams t on t.id = a.team_id and t.key_policy_cutover = 'pending'
    where a.reason = 'legacy_shadow_denied' and a.last_seen_at >= ${since}
    group by a.team_id, a.route_key order by a.team_id, a.route_key`
})

/**
 * Makes the API keys of all teams obey their scopes from now on, except those of `except`. Returns the teams whose keys did not
 * before.
 */
export const cutOver = Effect.fnUntraced(function* (
  except: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<string>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ id: string }>`update teams set key_policy_cutover = 'complete'
    where key_policy_cutover = 'pending' and id <> all(${[...except]}) returning id`
  return rows.map(({ id }) => id).toSorted()
})
