import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import {
  type KeyDecision,
  type KeyDecisions,
  type KeyPermission,
  type KeyReason,
  maxListed
} from "@tidegate/model/ProjectKey"
import { query } from "../Transaction.ts"

/** How long decisions about keys are kept (ms), and the shortest interval between writes of a key's last use. */
export const daysKept = 30
const keptMs = daysKept * 86_400_000
const usedEveryMs = 60_000

/** Decisions of one kind within one time window, counted by one process. */
export interface CountedDecisions {
  /** The id of this count of this process. */
  readonly entry: string
  readonly team_id: string
  readonly key_id: string
  readonly route_key: string
  readonly permission: KeyPermission
  readonly decision: KeyDecision
  readonly reason: KeyReason | null
  /** Whether the decisions allowed the key. */
  readonly isUse: boolean
  /** When the window began, and the times of the first and last decision (Unix ms). */
  readonly beganAt: number
  readonly firstAt: number
  readonly lastAt: number
  readonly count: number
}

/**
 * Stores counts. Each write has the whole count, so a repeated write changes nothing, and a commit whose answer was lost is not
 * counted twice. Also stores when each key was used last.
 */
export const writeDecisions = Effect.fnUntraced(function* (
  counted: ReadonlyArray<CountedDecisions>
): Effect.fn.Return<void, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  // Sent as one JSON text, because the driver cannot type an array that contains only nulls.
  const rows = JSON.stringify(
    counted.map(({ beganAt, firstAt, isUse, lastAt, ...one }) => ({
      ...one,
      is_use: isUse,
      began_at: new Date(beganAt),
      first_seen_at: new Date(firstAt),
      last_seen_at: new Date(lastAt),
      expires_at: new Date(beganAt + keptMs)
    }))
  )
  yield* query(sql`
    with counted as materialized (
      select * from jsonb_to_recordset(${rows}::jsonb) as c (entry uuid, team_id text, key_id text, route_key text, permission text,
        decision text, reason text, count int, is_use boolean, began_at timestamptz, first_seen_at timestamptz,
        last_seen_at timestamptz, expires_at timestamptz)
    ), used as (
      update project_api_keys k set last_used_at = u.at
      from (select key_id, max(last_seen_at) as at from counted where is_use group by key_id) u
      where k.id = u.key_id and (k.last_used_at is null or k.last_used_at <= u.at - make_interval(secs => ${usedEveryMs / 1_000}::float8))
    )
    insert into key_audit as a (entry, team_id, key_id, route_key, permission, decision, reason, count, began_at, first_seen_at,
      last_seen_at, expires_at)
    select entry, team_id, key_id, route_key, permission, decision, reason, count, began_at, first_seen_at, last_seen_at, expires_at
    from counted
    on conflict (entry) do update set count = greatest(a.count, excluded.count),
      last_seen_at = greatest(a.last_seen_at, excluded.last_seen_at)`)
})

interface Row {
  readonly id: number
  readonly route_key: string
  readonly permission: KeyPermission
  readonly decision: KeyDecision
  readonly reason: KeyReason | null
  readonly count: number
  readonly first_seen_at: Date
  readonly last_seen_at: Date
  readonly created_at: Date
}

/** The recent decisions about a key, newest first. The counts of all processes in a window are added up. */
export const readDecisions = Effect.fnUntraced(function* (
  team_id: string,
  key_id: string
): Effect.fn.Return<ReadonlyArray<KeyDecisions>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<Row>`
    select min(id)::float8 as id, route_key, permission, decision, reason, sum(count)::float8 as count,
      min(first_seen_at) as first_seen_at, max(last_seen_at) as last_seen_at, min(created_at) as created_at
    from key_audit where team_id = ${team_id} and key_id = ${key_id}
    group by began_at, route_key, permission, decision, reason
    order by began_at desc, max(last_seen_at) desc, min(id) desc limit ${maxListed}`
  return rows.map(({ created_at, first_seen_at, last_seen_at, ...row }) =>
    Object.assign(row, {
      team_id,
      key_id,
      first_seen_at: first_seen_at.toISOString(),
      last_seen_at: last_seen_at.toISOString(),
      created_at: created_at.toISOString()
    })
  )
})
