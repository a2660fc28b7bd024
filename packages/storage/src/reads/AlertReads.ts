import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { AlertStatus, ChannelAlert } from "@tidegate/model/ChannelAlert"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { type Listed, listed } from "@tidegate/model/Lists"
import { cursorAfter, cutToLimit, type PageRequest, positionOf } from "./Paging.ts"

interface Row extends Omit<ChannelAlert, "first_seen_at" | "last_seen_at" | "acknowledged_at" | "resolved_at"> {
  readonly first_seen_at: Date
  readonly last_seen_at: Date
  /** `last_seen_at` in microseconds. */
  readonly place: string
  readonly acknowledged_at: Date | null
  readonly resolved_at: Date | null
}

const shown = (row: Row): ChannelAlert => ({
  id: row.id,
  source_id: row.source_id,
  source_name: row.source_name,
  provider_key: row.provider_key,
  definition_key: row.definition_key,
  code: row.code,
  status: row.status,
  message: row.message,
  occurrences: row.occurrences,
  first_seen_at: row.first_seen_at.toISOString(),
  last_seen_at: row.last_seen_at.toISOString(),
  acknowledged_at: row.acknowledged_at?.toISOString() ?? null,
  acknowledged_by: row.acknowledged_by,
  resolved_at: row.resolved_at?.toISOString() ?? null
})

const columns = (sql: SqlClient.SqlClient) =>
  sql.literal(`a.id, a.source_id, coalesce(s.name, '') as source_name, s.config->'provider'->>'provider_key' as provider_key,
    s.config->'provider'->>'definition_key' as definition_key, a.code, a.status, a.message, a.occurrences, a.first_seen_at,
    a.last_seen_at, (extract(epoch from a.last_seen_at) * 1000000)::bigint::text as place, a.acknowledged_at,
    a.acknowledged_by, a.resolved_at
    from channel_alerts a left join sources s on s.id = a.source_id`)

/** A page of the alerts of a team, those that were seen last first. */
export const listAlerts = Effect.fnUntraced(function* (
  team_id: string,
  status: AlertStatus,
  page: PageRequest
): Effect.fn.Return<Listed<ChannelAlert>, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const position = yield* Effect.fromResult(positionOf(page))
  const conditions = [sql`a.team_id = ${team_id}`]
  if (status !== "all") conditions.push(sql`a.status = ${status}`)
  if (position !== null) {
    const { id, value = "" } = position
    if (!/^\d{1,16}$/.test(value)) return yield* fail("INVALID_CURSOR", "the cursor is not one that this list returned")
    conditions.push(
      sql`(a.last_seen_at, a.id) < (timestamptz 'epoch' + ${value}::bigint * interval '1 microsecond', ${id})`
    )
  }
  const rows = yield* sql<Row>`
    select ${columns(sql)}
    where ${sql.and(conditions)} order by a.last_seen_at desc, a.id desc limit ${page.limit + 1}`
  const { last, page: found } = cutToLimit(rows, page.limit)
  return listed(found.map(shown), cursorAfter(page.key, last === null ? null : { id: last.id, value: last.place }))
})

/** An alert of a team. */
export const alertOf = Effect.fnUntraced(function* (
  team_id: string,
  id: string
): Effect.fn.Return<ChannelAlert, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Row>`select ${columns(sql)} where a.id = ${id} and a.team_id = ${team_id}`
  return row === undefined ? yield* notFound("alert", id) : shown(row)
})
