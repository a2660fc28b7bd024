import { Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import type { EventStatus } from "@tidegate/model/Event"
import { isId, prefixes } from "@tidegate/model/Ids"
import { isCancelled } from "../delivery/EventStatus.ts"
import * as Columns from "../journal/Columns.ts"
import { eventsOfOperation, eventsOfRequests, gatherAtMost, likePrefix, requestsByExternalId } from "./Relations.ts"
import type { Drive } from "./Scan.ts"
import type { IdRange } from "./Window.ts"

type Fragment = Statement.Fragment

/** The filter of a list of events. Empty lists and undefined do not filter. */
export interface EventFilter {
  readonly statuses: ReadonlyArray<EventStatus>
  readonly requests?: ReadonlyArray<string>
  readonly sources: ReadonlyArray<string>
  readonly connections: ReadonlyArray<string>
  readonly destinations: ReadonlyArray<string>
  readonly operation: string | undefined
  readonly operationScope: "retries" | "targets" | "related"
  readonly search: string | undefined
  readonly isRetry?: boolean | undefined
  readonly retryKind?: "single" | "bulk" | undefined
  readonly errorCodes?: ReadonlyArray<string> | undefined
  /** Statuses of the last answer: 500, or 500-599. */
  readonly answers?: ReadonlyArray<string> | undefined
  /** Whether a later retry has succeeded. */
  readonly resolved?: boolean | undefined
}

/** How a filter is read: along an index, or by ids that were gathered first; and the conditions left to check on each row. */
export interface Plan {
  readonly drive: Drive
  readonly ids: ReadonlyArray<string> | null
  /** Null: these ids are all; otherwise ids below this one were not examined. */
  readonly idsTo: string | null
  /** The condition that the ids meet, for reading without them. */
  readonly among: ReadonlyArray<Fragment>
  readonly bounds: ReadonlyArray<Fragment>
  readonly residual: ReadonlyArray<Fragment>
  /** The conditions of the drive, for reading along another index. */
  readonly driven: ReadonlyArray<Fragment>
}

/** The dimensions of events, and their columns. */
export const dimensions = [
  ["connection_id", "connections"],
  ["destination_id", "destinations"],
  ["source_id", "sources"]
] as const

/** A condition on the status of an answer; any of the ranges may match. */
export const answered = (sql: SqlClient.SqlClient, column: Fragment, answers: ReadonlyArray<string>): Fragment => {
  const ranges = answers.map((text) => text.split("-").map(Number))
  return sql`exists (
    select from unnest(${Columns.int4(ranges.map(([least]) => least ?? 0))}, ${Columns.int4(ranges.map((range) => range.at(-1) ?? 0))})
      as wanted (least, most) where ${column} between wanted.least and wanted.most)`
}

/** The connections, sources and destinations that a filter names. */
type Ends = Pick<EventFilter, "connections" | "destinations" | "sources">

/** Of more connections, the beginnings of their ranges would cost more than reading all events of the team in their order. */
const maxAlong = 100

/**
 * The connections along whose index the events of these ends are read, and whether all events of these connections are wanted. Null: no ends
 * are named, or they have too many connections. Events have an index by connection, and none by source or destination, because each index
 * costs every event. So the connections are those that lead, or once led, from these sources to these destinations.
 */
const along = Effect.fnUntraced(function* (
  team: string,
  { connections, destinations, sources }: Ends
): Effect.fn.Return<
  { readonly connections: ReadonlyArray<string>; readonly isExact: boolean } | null,
  SqlError.SqlError,
  SqlClient.SqlClient
> {
  const isFree = destinations.length === 0 && sources.length === 0
  if (connections.length > 0) return { connections, isExact: isFree }
  if (isFree) return null
  const sql = yield* SqlClient.SqlClient
  const linked = sql.and([
    ...(sources.length === 0 ? [] : [sql`l.source_id = any(${Columns.text(sources)})`]),
    ...(destinations.length === 0 ? [] : [sql`l.destination_id = any(${Columns.text(destinations)})`])
  ])
  const found = yield* sql<{ id: string; exact: boolean }>`
    select id, not exists (select from connection_links l where l.connection_id = id and not (${linked})) as exact
    from (select distinct connection_id as id from connection_links l where ${linked} and l.team_id = ${team}
      limit ${maxAlong + 1}) one`.unprepared
  if (found.length > maxAlong) return null
  return { connections: found.map(({ id }) => id), isExact: found.every(({ exact }) => exact) }
})

/** The conditions on a row of `events e` that no index covers. */
const asked = (sql: SqlClient.SqlClient, filter: EventFilter): ReadonlyArray<Fragment> => {
  const { answers = [], errorCodes = [], isRetry, resolved, retryKind } = filter
  const conditions: Array<Fragment> = []
  if (isRetry !== undefined) conditions.push(sql.literal(`e.retry_kind is ${isRetry ? "not " : ""}null`))
  if (retryKind !== undefined) conditions.push(sql`e.retry_kind = ${retryKind}`)
  if (errorCodes.length > 0) {
    const stored = sql`e.error_code = any(${Columns.text(errorCodes)})`
    // An event that counts as cancelled before its row is updated has that code already.
    conditions.push(
      errorCodes.includes("CANCELLED")
        ? sql`(${stored} or (e.state = 'PENDING' and exists (
            select from connections c, destinations d where c.id = e.connection_id and d.id = e.destination_id and ${isCancelled(sql)})))`
        : stored
    )
  }
  if (answers.length > 0) conditions.push(answered(sql, sql.literal("e.response_status"), answers))
  if (resolved !== undefined) conditions.push(sql.literal(`e.resolved_at is ${resolved ? "not " : ""}null`))
  return conditions
}

/** Whether a filter needs more than the counts by status, connection, source and destination. */
export const asksRows = ({
  answers = [],
  errorCodes = [],
  isRetry,
  operation,
  requests = [],
  resolved,
  retryKind,
  search
}: EventFilter) =>
  [answers, errorCodes, requests].some(({ length }) => length > 0) ||
  [isRetry, operation, resolved, retryKind, search].some((value) => value !== undefined)

export const plan = Effect.fnUntraced(function* (
  team: string,
  filter: EventFilter,
  range: IdRange
): Effect.fn.Return<Plan, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const bounds = [sql`e.id >= ${range.lower}`, sql`e.id < ${range.upper}`]
  const residual: Array<Fragment> = [...asked(sql, filter)]
  let ids: ReadonlyArray<string> | null = null
  let idsTo: string | null = null
  /** Null: there are too many to gather. */
  const ofAll = (requests: ReadonlyArray<string>) =>
    Effect.map(eventsOfRequests(team, requests), (found) =>
      found.length < gatherAtMost ? found.map(({ id }) => id) : null
    )

  const wanted = { connections: filter.connections, destinations: filter.destinations, sources: filter.sources }
  const { search } = filter
  if (search !== undefined) {
    const named = dimensions.find(([column]) => search.startsWith(prefixes[dimensionPrefix[column]]))
    if (search.startsWith(prefixes.event)) bounds.push(sql`e.id >= ${search}`, sql`e.id < ${`${search}~`}`)
    else if (isId(prefixes.request, search)) {
      ids = yield* ofAll([search])
      if (ids === null) residual.push(sql`e.request_id = ${search}`)
    } else if (search.startsWith(prefixes.request)) residual.push(sql`e.request_id like ${likePrefix(search)}`)
    else if (named !== undefined && wanted[named[1]].length === 0) wanted[named[1]] = [search]
    else if (named !== undefined) residual.push(sql`${sql.literal(`e.${named[0]}`)} = ${search}`)
    else {
      // A retry may be younger than its request's window.
      const requests = yield* requestsByExternalId(team, search, { lower: prefixes.request, upper: "req_~" })
      if (requests !== null) ids = yield* ofAll(requests)
      if (ids === null) {
        residual.push(sql`exists (select from requests r where r.id = e.request_id and r.team_id = ${team}
          and r.external_id like ${likePrefix(search)})`)
      }
    }
  }

  const { requests = [] } = filter
  if (requests.length > 0) {
    const found = yield* ofAll(requests)
    if (found !== null) {
      const before = ids
      ids = found.filter((id) => before === null || before.includes(id))
    } else residual.push(sql`e.request_id = any(${Columns.text(requests)})`)
  }

  let among: ReadonlyArray<Fragment> | null = null
  let drive: Drive | null = null
  let driven: ReadonlyArray<Fragment> = []
  if (filter.operation !== undefined) {
    const made = sql`e.retry_operation_id = ${filter.operation}`
    if (filter.operationScope === "retries") {
      drive = { column: "retry_operation_id", values: [filter.operation] }
      driven = [made]
    } else {
      const retried = sql`e.id in (select retry_parent_event_id from events where retry_operation_id = ${filter.operation}
        and retry_parent_event_id is not null)`
      const condition = filter.operationScope === "targets" ? retried : sql`(${made} or ${retried})`
      if (ids !== null) residual.push(condition)
      else {
        const found = yield* eventsOfOperation(filter.operation, filter.operationScope, range)
        ids = found.ids
        idsTo = found.examinedTo
        if (idsTo !== null) among = [condition]
      }
    }
  }
  if (drive === null && (filter.isRetry === true || filter.retryKind !== undefined)) {
    // There are few retries, and an index has only them.
    const isRetry = sql.literal("e.retry_kind is not null")
    drive = { column: "team_id", values: [team], condition: isRetry }
    driven = [isRetry]
  }
  const ends = dimensions
    .filter(([, name]) => wanted[name].length > 0)
    .map(([column, name]) => sql`${sql.literal(`e.${column}`)} = any(${Columns.text(wanted[name])})`)
  const way = drive === null ? yield* along(team, wanted) : null
  if (way !== null) {
    drive = { column: "connection_id", values: way.connections }
    driven = [sql`e.connection_id = any(${Columns.text(way.connections)})`]
  }
  if (way?.isExact !== true) residual.push(...ends)
  return {
    drive: drive ?? { column: "team_id", values: [team] },
    ids,
    idsTo,
    among: among ?? (ids === null ? [] : [sql`e.id = any(${Columns.text(ids)})`]),
    bounds,
    residual,
    driven
  }
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

/** The stored state first: it decides most rows without reading their connection and destination. */
export const hasStatus = (
  sql: SqlClient.SqlClient,
  status: Fragment,
  statuses: ReadonlyArray<EventStatus>
): ReadonlyArray<Fragment> => {
  const states = [...new Set(statuses.flatMap((name) => statesOf[name]))]
  const stored = sql`e.state = any(${Columns.text(states)})`
  return states.includes("PENDING") ? [stored, sql`${status} = any(${Columns.text(statuses)})`] : [stored]
}
