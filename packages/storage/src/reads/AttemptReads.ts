import { Clock, Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import type { Attempt, AttemptStatus } from "@tidegate/model/Attempt"
import { type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { idBound, isId, prefixes } from "@tidegate/model/Ids"
import { listed } from "@tidegate/model/Lists"
import * as Columns from "../journal/Columns.ts"
import { type AttemptRow, attemptTable, listedAttempt, type ListedAttemptRow, toAttempt } from "./AttemptRow.ts"
import { answered } from "./EventPlan.ts"
import { writeCursor } from "./Cursor.ts"
import { cut } from "./PageSize.ts"
import { resolvePage, type WindowedPage } from "./Paging.ts"
import { eventsOfRequests, likePrefix } from "./Relations.ts"
import { type Drive, scan, type Scanned, toPage } from "./Scan.ts"
import { idRange } from "./Window.ts"

type Fragment = Statement.Fragment

/** The filter of a list of attempts. Empty lists and undefined do not filter. */
export interface AttemptFilter {
  readonly events: ReadonlyArray<string>
  readonly request: string | undefined
  readonly connections: ReadonlyArray<string>
  readonly destinations: ReadonlyArray<string>
  readonly status: AttemptStatus | undefined
  readonly errorCodes?: ReadonlyArray<string> | undefined
  /** Statuses of the answer: 500, or 500-599. */
  readonly answers?: ReadonlyArray<string> | undefined
  readonly search: string | undefined
}

interface Plan {
  readonly drive: Drive
  readonly bounds: ReadonlyArray<Fragment>
  readonly residual: ReadonlyArray<Fragment>
  /** The events whose attempts are listed, when the filter names them. */
  readonly events: ReadonlyArray<string> | null
}

const plan = Effect.fnUntraced(function* (
  team: string,
  filter: AttemptFilter
): Effect.fn.Return<Plan, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const bounds: Array<Fragment> = []
  const residual: Array<Fragment> = []
  let events = filter.events.length === 0 ? null : filter.events
  let destinations = filter.destinations
  const ofRequest = Effect.fnUntraced(function* (id: string) {
    const found = (yield* eventsOfRequests(team, [id])).map((event) => event.id)
    const before = events
    events = before === null ? found : found.filter((event) => before.includes(event))
  })
  if (filter.request !== undefined) yield* ofRequest(filter.request)

  const { search } = filter
  if (search !== undefined) {
    if (search.startsWith(prefixes.attempt)) bounds.push(sql`a.id >= ${search}`, sql`a.id < ${`${search}~`}`)
    else if (search.startsWith(prefixes.event)) {
      if (isId(prefixes.event, search) && events === null) events = [search]
      else residual.push(sql`a.event_id like ${likePrefix(search)}`)
    } else if (isId(prefixes.request, search)) yield* ofRequest(search)
    else if (search.startsWith(prefixes.request)) residual.push(sql`a.request_id like ${likePrefix(search)}`)
    else if (isId(prefixes.destination, search) && destinations.length === 0) destinations = [search]
    else if (search.startsWith(prefixes.destination)) residual.push(sql`a.destination_id like ${likePrefix(search)}`)
    else residual.push(sql`(a.error_code = ${search.toUpperCase()} or position(${search} in a.requested_url) > 0)`)
  }
  const { answers = [], connections, errorCodes = [] } = filter
  // No index: a connection can move to another destination, so its attempts are checked among those that the drive reads.
  if (connections.length > 0) residual.push(sql`a.connection_id = any(${Columns.text(connections)})`)
  if (errorCodes.length > 0) residual.push(sql`a.error_code = any(${Columns.text(errorCodes)})`)
  if (answers.length > 0) residual.push(answered(sql, sql.literal("a.response_status"), answers))
  if (filter.status !== undefined) residual.push(sql`a.status = ${filter.status}`)
  if (events !== null) {
    if (destinations.length > 0) residual.push(sql`a.destination_id = any(${Columns.text(destinations)})`)
    return { drive: { column: "event_id", values: [] }, bounds, residual, events }
  }
  const drive: Drive =
    destinations.length > 0 ? { column: "destination_id", values: destinations } : { column: "team_id", values: [team] }
  return { drive, bounds, residual, events }
})

/** All attempts of these events, ordered by id, read by the primary key. */
const ofEvents = Effect.fnUntraced(function* <Row extends AttemptRow = AttemptRow>(
  team: string,
  events: ReadonlyArray<string>,
  conditions: ReadonlyArray<Fragment>,
  dir: "asc" | "desc",
  limit: number,
  columns = "a.*"
): Effect.fn.Return<ReadonlyArray<Row>, SqlError.SqlError, SqlClient.SqlClient> {
  if (events.length === 0) return []
  const sql = yield* SqlClient.SqlClient
  return yield* sql<Row>`
    select ${sql.literal(columns)} from attempts a
    where ${sql.and([sql`a.event_id = any(${Columns.text(events)})`, sql`a.team_id = ${team}`, ...conditions])}
    ${sql.literal(`order by a.id ${dir} limit ${limit}`)}`.unprepared
})

/** The same rows with the bodies of their answers. */
const withBodies = Effect.fnUntraced(function* (
  team: string,
  rows: ReadonlyArray<ListedAttemptRow>
): Effect.fn.Return<ReadonlyArray<AttemptRow>, SqlError.SqlError, SqlClient.SqlClient> {
  if (rows.length === 0) return []
  const sql = yield* SqlClient.SqlClient
  const events = [...new Set(rows.map(({ event_id }) => event_id))]
  const [first, last] = Columns.bounds(events)
  const found = yield* sql<{ id: string; body: Uint8Array | null }>`
    select a.id, a.body from attempts a
    where a.event_id = any(${Columns.text(events)}) and a.team_id = ${team} and a.event_id >= ${first} and a.event_id <= ${last}
      and a.id = any(${Columns.text(rows.map(({ id }) => id))})`.unprepared
  const bodies = new Map(found.map(({ body, id }) => [id, body]))
  return rows.map((row) => ({ ...row, body: bodies.get(row.id) ?? null }))
})

/** A page of attempts in either direction, with cursors in both directions. */
export const list = Effect.fnUntraced(function* (
  team: string,
  filter: AttemptFilter,
  dir: "asc" | "desc",
  request: WindowedPage
) {
  const sql = yield* SqlClient.SqlClient
  // Without a window of the caller's, all attempts: those of an old event are found by its id.
  const { position, window } = yield* Effect.fromResult(
    resolvePage(request, yield* Clock.currentTimeMillis, Number.POSITIVE_INFINITY)
  )
  const back = position?.back ?? false
  // Towards the start, the page is read in reverse.
  const reading = back === (dir === "desc") ? "asc" : "desc"
  const range = idRange(prefixes.attempt, window)
  const found = yield* plan(team, filter)
  const bounds = [
    sql`a.id >= ${range.lower}`,
    sql`a.id < ${range.upper}`,
    ...found.bounds,
    ...(position === null ? [] : [reading === "desc" ? sql`a.id < ${position.id}` : sql`a.id > ${position.id}`]),
    // No attempt is older than its event, so later days of events have none.
    sql`a.event_id < ${idBound(prefixes.event, window.to + 1)}`
  ]
  const { limit } = request
  const part: Scanned<ListedAttemptRow> =
    found.events === null
      ? yield* scan<ListedAttemptRow>({
          team,
          table: attemptTable(sql),
          drive: found.drive,
          bounds,
          residual: found.residual,
          dir: reading,
          limit
        })
      : {
          rows: yield* ofEvents<ListedAttemptRow>(
            team,
            found.events,
            [...bounds, ...found.residual],
            reading,
            limit + 1,
            listedAttempt
          ),
          examinedTo: null
        }
  const page = cut(toPage([part], reading, limit), ({ bytes }) => bytes)
  const rows = back ? page.rows.toReversed() : page.rows
  const cursor = (id: string | undefined, towardsStart: boolean): string | null =>
    id === undefined ? null : writeCursor(request.key, { id, seen: 0, window, back: towardsStart })
  const onward = page.next ?? undefined
  const next = back ? cursor(rows.at(-1)?.id ?? position?.id, false) : cursor(onward, false)
  return {
    pagination: {
      order_by: "created_at",
      dir,
      limit,
      next,
      prev: back ? cursor(onward, true) : position === null ? null : cursor(rows[0]?.id ?? position.id, true)
    },
    ...listed((yield* withBodies(team, rows)).map(toAttempt), next)
  }
})

/** One attempt. `requestId` says where to look first; a wrong one costs a second read. */
export const get = Effect.fnUntraced(function* (
  team: string,
  id: string,
  requestId: string | undefined
): Effect.fn.Return<Attempt, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  if (requestId !== undefined) {
    const events = (yield* eventsOfRequests(team, [requestId])).map((event) => event.id)
    const [expected] = yield* ofEvents(team, events, [sql`a.id = ${id}`], "asc", 1)
    if (expected !== undefined) return toAttempt(expected)
  }
  const [row] = yield* sql<AttemptRow>`select * from attempts a where a.team_id = ${team} and a.id = ${id}`
  return row === undefined ? yield* notFound("attempt", id) : toAttempt(row)
})

/** The attempts of these events, oldest first, up to the size of an answer; `isCut`: there may be more. */
export const byEvents = Effect.fnUntraced(function* (team: string, events: ReadonlyArray<string>, limit: number) {
  const rows = yield* ofEvents<ListedAttemptRow>(team, events, [], "asc", limit, listedAttempt)
  const page = cut({ rows, next: rows.length === limit ? "" : null }, ({ bytes }) => bytes)
  return { attempts: (yield* withBodies(team, page.rows)).map(toAttempt), isCut: page.next !== null }
})
