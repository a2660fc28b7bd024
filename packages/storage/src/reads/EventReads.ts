import { Clock, Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import type { Event, EventStatus } from "@tidegate/model/Event"
import { type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { isId, prefixes } from "@tidegate/model/Ids"
import * as Columns from "../journal/Columns.ts"
import { eventData } from "./EventPayloads.ts"
import { type EventRow, eventTable, toEvent } from "./EventRow.ts"
import { envelope, type PageRequest, resolvePage, startOf, subList, type SubPageRequest } from "./Paging.ts"
import { eventsOfRequests, gatherAtMost, likePrefix, pendingEvents, requestsByExternalId } from "./Relations.ts"
import { type Drive, pick, scan, type Scanned, toPage } from "./Scan.ts"
import { appliedRange, idRange, type IdRange, parseWindow, type WindowInput } from "./Window.ts"

type Fragment = Statement.Fragment

/** What a list of events is narrowed to. Empty lists and undefined narrow nothing. */
export interface EventFilter {
  readonly statuses: ReadonlyArray<EventStatus>
  readonly requests?: ReadonlyArray<string>
  readonly sources: ReadonlyArray<string>
  readonly connections: ReadonlyArray<string>
  readonly destinations: ReadonlyArray<string>
  readonly operation: string | undefined
  readonly operationScope: "retries" | "targets" | "related"
  readonly search: string | undefined
}

/** How a filter is read: along an index, or by ids already gathered; and what is left to check on each row. */
interface Plan {
  readonly drive: Drive
  readonly ids: ReadonlyArray<string> | null
  readonly bounds: ReadonlyArray<Fragment>
  readonly residual: ReadonlyArray<Fragment>
  /** The drive's own conditions, for when another index is followed. */
  readonly driven: ReadonlyArray<Fragment>
}

const dimensions = [
  ["connection_id", "connections"],
  ["destination_id", "destinations"],
  ["source_id", "sources"]
] as const

const plan = Effect.fnUntraced(function* (
  team: string,
  filter: EventFilter,
  range: IdRange
): Effect.fn.Return<Plan, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const bounds = [sql`e.id >= ${range.lower}`, sql`e.id < ${range.upper}`]
  const residual: Array<Fragment> = []
  let ids: ReadonlyArray<string> | null = null

  const wanted = { connections: filter.connections, destinations: filter.destinations, sources: filter.sources }
  const { search } = filter
  if (search !== undefined) {
    const named = dimensions.find(([column]) => search.startsWith(prefixes[dimensionPrefix[column]]))
    if (search.startsWith(prefixes.event)) bounds.push(sql`e.id >= ${search}`, sql`e.id < ${`${search}~`}`)
    else if (isId(prefixes.request, search)) ids = (yield* eventsOfRequests(team, [search])).map(({ id }) => id)
    else if (search.startsWith(prefixes.request)) residual.push(sql`e.request_id like ${likePrefix(search)}`)
    else if (named !== undefined && wanted[named[1]].length === 0) wanted[named[1]] = [search]
    else if (named !== undefined) residual.push(sql`${sql.literal(`e.${named[0]}`)} = ${search}`)
    else {
      // A retry may be younger than its request's window.
      const requests = yield* requestsByExternalId(team, search, { lower: prefixes.request, upper: "req_~" })
      if (requests !== null) ids = (yield* eventsOfRequests(team, requests)).map(({ id }) => id)
      else {
        residual.push(sql`exists (select from requests r where r.id = e.request_id and r.team_id = ${team}
          and r.external_id like ${likePrefix(search)})`)
      }
    }
  }

  const { requests = [] } = filter
  if (requests.length > 0) {
    const found = yield* eventsOfRequests(team, requests)
    // As many as are gathered may not be all.
    if (found.length < gatherAtMost) {
      const before = ids
      ids = found.map(({ id }) => id).filter((id) => before === null || before.includes(id))
    } else residual.push(sql`e.request_id = any(${Columns.text(requests)})`)
  }

  let drive: Drive | null = null
  let driven: ReadonlyArray<Fragment> = []
  if (filter.operation !== undefined) {
    const made = sql`e.retry_operation_id = ${filter.operation}`
    const retried = sql`exists (select from events t where t.request_id = e.request_id
      and t.retry_parent_event_id = e.id and t.retry_operation_id = ${filter.operation})`
    if (filter.operationScope === "retries") {
      drive = { column: "retry_operation_id", values: [filter.operation] }
      driven = [made]
    } else residual.push(filter.operationScope === "targets" ? retried : sql`(${made} or ${retried})`)
  }
  for (const [column, name] of dimensions) {
    const values = wanted[name]
    if (values.length === 0) continue
    const condition = sql`${sql.literal(`e.${column}`)} = any(${Columns.text(values)})`
    if (drive === null) {
      drive = { column, values }
      driven = [condition]
    } else residual.push(condition)
  }
  return { drive: drive ?? { column: "team_id", values: [team] }, ids, bounds, residual, driven }
})

const dimensionPrefix = { connection_id: "connection", destination_id: "destination", source_id: "source" } as const

const statesOf: Record<EventStatus, ReadonlyArray<string>> = {
  SCHEDULED: ["PENDING"],
  QUEUED: ["PENDING"],
  HOLD: ["PENDING"],
  CANCELLED: ["PENDING", "CANCELLED"],
  SUCCESSFUL: ["SUCCESSFUL"],
  FAILED: ["FAILED"]
}

/** The stored state first: it decides most rows without their connection and destination. */
const hasStatus = (
  sql: SqlClient.SqlClient,
  status: Fragment,
  statuses: ReadonlyArray<EventStatus>
): ReadonlyArray<Fragment> => {
  const states = [...new Set(statuses.flatMap((name) => statesOf[name]))]
  const stored = sql`e.state = any(${Columns.text(states)})`
  return states.includes("PENDING") ? [stored, sql`${status} = any(${Columns.text(statuses)})`] : [stored]
}

/** What is asked for by its request is looked for whenever it was, unless a window is given. */
const spanFor = ({ requests = [] }: EventFilter): number | undefined =>
  requests.length === 0 ? undefined : Number.POSITIVE_INFINITY

/**
 * A page of events. A status is a function of several rows, so what is waiting is looked up in the table of waiting
 * deliveries while that is short, and what has failed by the index over failures.
 */
export const list = Effect.fnUntraced(function* (
  team: string,
  filter: EventFilter,
  request: PageRequest,
  include: { readonly data: boolean }
) {
  const sql = yield* SqlClient.SqlClient
  const now = yield* Clock.currentTimeMillis
  const at = yield* Effect.fromResult(resolvePage(request, now, spanFor(filter)))
  const table = eventTable(sql, now)
  const range = idRange(prefixes.event, at.window)
  const upper = at.position?.id ?? range.upper
  const { bounds, drive, driven, ids, residual } = yield* plan(team, filter, { lower: range.lower, upper })
  const { statuses } = filter
  const options = { team, table, bounds, dir: "desc" as const, limit: request.limit }
  const status = statuses.length === 0 ? [] : hasStatus(sql, table.status, statuses)

  const parts: Array<Scanned<EventRow>> = []
  if (ids !== null) {
    parts.push(yield* pick<EventRow>({ ...options, ids, residual: [...residual, ...driven, ...status] }))
  } else if (statuses.length === 0 || statuses.includes("SUCCESSFUL")) {
    parts.push(yield* scan<EventRow>({ ...options, drive, residual: [...residual, ...status] }))
  } else {
    const waiting = statuses.some((name) => name !== "FAILED")
      ? yield* pendingEvents(team, { lower: range.lower, upper })
      : []
    if (waiting === null) {
      parts.push(yield* scan<EventRow>({ ...options, drive, residual: [...residual, ...status] }))
    } else {
      parts.push(yield* pick<EventRow>({ ...options, ids: waiting, residual: [...residual, ...driven, ...status] }))
      const ended = statuses.filter((name) => name === "FAILED" || name === "CANCELLED")
      if (ended.length > 0) {
        parts.push(
          yield* scan<EventRow>({
            ...options,
            drive: { column: "team_id", values: [team], condition: sql.literal("e.failed") },
            residual: [
              ...residual,
              ...driven,
              ...(ended.length === 2 ? [] : [sql`e.state = any(${Columns.text(ended)})`])
            ]
          })
        )
      }
    }
  }
  const page = toPage(parts, "desc", request.limit)
  return envelope(request, at, page, yield* show(team, page.rows, include.data ? "list" : null))
})

/** Rows as records, with their data when it is for a list or a detail. */
const show = Effect.fnUntraced(function* (
  team: string,
  rows: ReadonlyArray<EventRow>,
  data: "list" | "detail" | null
): Effect.fn.Return<ReadonlyArray<Event>, SqlError.SqlError, SqlClient.SqlClient> {
  if (data === null) return rows.map((row) => toEvent(row))
  const found = yield* eventData(team, rows, data)
  return rows.map((row) => toEvent(row, { data: found.get(row.id) ?? null }))
})

/** How many events of the window meet the filter, counted on the events themselves. */
export const count = Effect.fnUntraced(function* (team: string, filter: EventFilter, input: WindowInput) {
  const sql = yield* SqlClient.SqlClient
  const now = yield* Clock.currentTimeMillis
  const window = yield* Effect.fromResult(parseWindow(input, now, spanFor(filter)))
  const table = eventTable(sql, now)
  const { bounds, driven, ids, residual } = yield* plan(team, filter, idRange(prefixes.event, window))
  const { statuses } = filter
  const onlyFailed = statuses.length > 0 && statuses.every((status) => status === "FAILED")
  const [row] = yield* sql<{ count: number }>`
    select count(*)::float8 as count from events e ${sql.literal(table.joins)}
    where ${sql.and([
      sql`e.team_id = ${team}`,
      ...bounds,
      ...residual,
      ...driven,
      ...(ids === null ? [] : [sql`e.id = any(${Columns.text(ids)})`]),
      ...(onlyFailed ? [sql.literal("e.failed")] : []),
      ...(statuses.length === 0 ? [] : hasStatus(sql, table.status, statuses))
    ])}`.unprepared
  const total = row?.count ?? 0
  return { total, count: total, total_exact: true, applied_range: appliedRange(window) }
})

/** The rows of these events, oldest first. */
export const byIds = Effect.fnUntraced(function* (
  team: string,
  ids: ReadonlyArray<string>,
  residual: ReadonlyArray<Fragment>,
  limit: number
) {
  const { rows } = yield* pick<EventRow>({
    team,
    table: eventTable(yield* SqlClient.SqlClient, yield* Clock.currentTimeMillis),
    ids,
    bounds: [],
    residual,
    dir: "asc",
    limit: Math.max(1, limit) - 1
  })
  return rows
})

export const get = Effect.fnUntraced(function* (
  team: string,
  id: string
): Effect.fn.Return<Event, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const [event] = yield* show(team, yield* byIds(team, [id], [], 1), "detail")
  return event ?? (yield* notFound("event", id))
})

/** A page of the events of one request, oldest first, narrowed to what the filter names. */
export const ofRequest = Effect.fnUntraced(function* (
  team: string,
  requestId: string,
  filter: Pick<EventFilter, "statuses" | "sources" | "connections" | "destinations"> & {
    readonly ids: ReadonlyArray<string>
  },
  page: SubPageRequest
) {
  const sql = yield* SqlClient.SqlClient
  const after = yield* Effect.fromResult(startOf(page))
  const found = (yield* eventsOfRequests(team, [requestId], gatherAtMost, after)).map(({ id }) => id)
  const ids = filter.ids.length === 0 ? found : found.filter((id) => filter.ids.includes(id))
  const residual: Array<Fragment> =
    filter.statuses.length === 0
      ? []
      : [...hasStatus(sql, eventTable(sql, yield* Clock.currentTimeMillis).status, filter.statuses)]
  for (const [column, name] of dimensions) {
    if (filter[name].length > 0) residual.push(sql`${sql.literal(`e.${column}`)} = any(${Columns.text(filter[name])})`)
  }
  const matching = yield* byIds(team, ids, residual, page.limit + 1)
  const rows = matching.slice(0, page.limit)
  // More of them may stand behind as many as are gathered at once.
  const examinedTo = found.length < gatherAtMost ? null : (found.at(-1) ?? null)
  const next = matching.length > page.limit ? (rows.at(-1)?.id ?? null) : examinedTo
  return subList(page, yield* show(team, rows, null), next)
})
