import { Effect, type Schema } from "effect"
import { SqlClient } from "effect/sql"
import { prefixes } from "@tidegate/model/Ids"
import type { IgnoredEvent } from "@tidegate/model/IgnoredEvent"
import * as Columns from "../journal/Columns.ts"
import { startOf, subList, type SubPageRequest } from "./Paging.ts"
import { timeRange } from "./Relations.ts"

interface IgnoredEventRow {
  readonly id: string
  readonly team_id: string
  readonly request_id: string
  readonly connection_id: string
  readonly source_id: string
  readonly cause: IgnoredEvent["cause"]
  readonly meta: Schema.Json
  readonly created_at: Date
}

const toIgnoredEvent = (row: IgnoredEventRow): IgnoredEvent => ({
  id: row.id,
  team_id: row.team_id,
  webhook_id: row.connection_id,
  connection_id: row.connection_id,
  source_id: row.source_id,
  request_id: row.request_id,
  cause: row.cause,
  meta: row.meta,
  created_at: row.created_at.toISOString(),
  updated_at: row.created_at.toISOString()
})

/** A page of the ignored events of one request, oldest first; empty lists narrow nothing. */
export const ofRequest = Effect.fnUntraced(function* (
  team: string,
  requestId: string,
  filter: { readonly ids: ReadonlyArray<string>; readonly connections: ReadonlyArray<string> },
  page: SubPageRequest
) {
  const after = yield* Effect.fromResult(startOf(page))
  const range = timeRange(prefixes.ignoredEvent, requestId)
  if (range === null) return subList<IgnoredEvent>(page, [], null)
  const sql = yield* SqlClient.SqlClient
  const found = yield* sql<IgnoredEventRow>`
    select i.* from ignored_events i
    where ${sql.and([
      sql`i.id >= ${range.lower}`,
      sql`i.id < ${range.upper}`,
      sql`i.id > ${after}`,
      sql`i.request_id = ${requestId}`,
      sql`i.team_id = ${team}`,
      ...(filter.ids.length === 0 ? [] : [sql`i.id = any(${Columns.text(filter.ids)})`]),
      ...(filter.connections.length === 0 ? [] : [sql`i.connection_id = any(${Columns.text(filter.connections)})`])
    ])}
    ${sql.literal(`order by i.id limit ${page.limit + 1}`)}`.unprepared
  const rows = found.slice(0, page.limit)
  return subList(page, rows.map(toIgnoredEvent), found.length > page.limit ? (rows.at(-1)?.id ?? null) : null)
})
