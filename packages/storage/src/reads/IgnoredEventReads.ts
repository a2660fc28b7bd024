import { Clock, Effect, type Schema } from "effect"
import { SqlClient } from "effect/sql"
import { prefixes } from "@tidegate/model/Ids"
import type { IgnoredEvent } from "@tidegate/model/IgnoredEvent"
import * as Columns from "../journal/Columns.ts"
import {
  cutToLimit,
  envelope,
  type PageRequest,
  positionOf,
  resolvePage,
  subList,
  type WindowedPage
} from "./Paging.ts"
import { timeRange } from "./Relations.ts"
import { countAll } from "./Tally.ts"
import { scan, toPage } from "./Scan.ts"
import { appliedRange, idRange, parseWindow, timeOf, type WindowInput } from "./Window.ts"

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
  created_at: timeOf(row),
  updated_at: row.created_at.toISOString()
})

/** A page of the ignored events of one request, oldest first. Empty lists do not filter. */
export const ofRequest = Effect.fnUntraced(function* (
  team: string,
  requestId: string,
  filter: { readonly ids: ReadonlyArray<string>; readonly connections: ReadonlyArray<string> },
  page: PageRequest
) {
  const after = (yield* Effect.fromResult(positionOf(page)))?.id ?? ""
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
  const { last, page: rows } = cutToLimit(found, page.limit)
  return subList(page, rows.map(toIgnoredEvent), last?.id ?? null)
})

/** The filter of a list of ignored events. Empty lists do not filter. */
export interface IgnoredEventFilter {
  readonly causes: ReadonlyArray<string>
  readonly requests: ReadonlyArray<string>
  readonly sources: ReadonlyArray<string>
  readonly connections: ReadonlyArray<string>
}

/** The conditions on a row of `ignored_events i`. */
const conditions = (sql: SqlClient.SqlClient, { causes, connections, requests, sources }: IgnoredEventFilter) => [
  ...(causes.length === 0 ? [] : [sql`i.cause = any(${Columns.text(causes)})`]),
  ...(requests.length === 0 ? [] : [sql`i.request_id = any(${Columns.text(requests)})`]),
  ...(sources.length === 0 ? [] : [sql`i.source_id = any(${Columns.text(sources)})`]),
  ...(connections.length === 0 ? [] : [sql`i.connection_id = any(${Columns.text(connections)})`])
]

/** With a filter by request the default window is unlimited. */
const spanFor = ({ requests }: IgnoredEventFilter): number | undefined =>
  requests.length === 0 ? undefined : Number.POSITIVE_INFINITY

/** A page of the ignored events of a team, newest first. */
export const list = Effect.fnUntraced(function* (team: string, filter: IgnoredEventFilter, request: WindowedPage) {
  const sql = yield* SqlClient.SqlClient
  const at = yield* Effect.fromResult(resolvePage(request, yield* Clock.currentTimeMillis, spanFor(filter)))
  const range = idRange(prefixes.ignoredEvent, at.window)
  const { connections } = filter
  const part = yield* scan<IgnoredEventRow>({
    team,
    table: { name: "ignored_events", alias: "i", columns: sql.literal("i.*"), joins: "" },
    drive:
      connections.length === 0
        ? { column: "team_id", values: [team] }
        : { column: "connection_id", values: connections },
    bounds: [sql`i.id >= ${range.lower}`, sql`i.id < ${at.position?.id ?? range.upper}`],
    residual: conditions(sql, { ...filter, connections: [] }),
    dir: "desc",
    limit: request.limit
  })
  const page = toPage([part], "desc", request.limit)
  return envelope(request, at, page, page.rows.map(toIgnoredEvent))
})

/** How many ignored events of the window meet the filter. */
export const count = Effect.fnUntraced(function* (team: string, filter: IgnoredEventFilter, input: WindowInput) {
  const sql = yield* SqlClient.SqlClient
  const window = yield* Effect.fromResult(parseWindow(input, yield* Clock.currentTimeMillis, spanFor(filter)))
  const range = idRange(prefixes.ignoredEvent, window)
  const { connections } = filter
  const of =
    connections.length === 0 ? sql`i.team_id = ${team}` : sql`i.connection_id = any(${Columns.text(connections)})`
  const { exact, total } = yield* countAll((atMost) =>
    Effect.map(
      sql<{ total: number; examined: number }>`
        select count(*) filter (where ${sql.and([sql.literal("true"), ...conditions(sql, { ...filter, connections: [] })])})::int4 as total,
          count(*)::int4 as examined
        from (
          select * from ignored_events i where ${of} and i.team_id = ${team} and i.id >= ${range.lower} and i.id < ${range.upper}
          limit ${atMost + 1}
        ) i`.unprepared,
      ([row]) => ({ total: row?.total ?? 0, exact: (row?.examined ?? 0) <= atMost })
    )
  )
  return { total, count: total, total_exact: exact, applied_range: appliedRange(window) }
})
