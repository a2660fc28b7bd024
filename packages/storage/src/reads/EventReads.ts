import { Clock, Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import type { Event } from "@tidegate/model/Event"
import { type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import { inReportSteps } from "@tidegate/runtime/ReportPace"
import { mapped } from "@tidegate/runtime/Resumable"
import * as Columns from "../journal/Columns.ts"
import { type FeedPage, follow } from "./EventFeed.ts"
import { eventData } from "./EventPayloads.ts"
import { dimensions, type EventFilter, hasStatus, plan } from "./EventPlan.ts"
import { type EventRow, eventTable, toEvent } from "./EventRow.ts"
import { countEvents } from "./EventTally.ts"
import { cut, eventBytes } from "./PageSize.ts"
import {
  cutToLimit,
  envelope,
  type PageRequest,
  positionOf,
  resolvePage,
  subList,
  type WindowedPage
} from "./Paging.ts"
import { eventsOfRequests, gatherAtMost, pendingEvents } from "./Relations.ts"
import { countAll } from "./Tally.ts"
import { type Page, pick, scan, type Scanned, toPage } from "./Scan.ts"
import { appliedRange, idRange, type IdRange, parseWindow, type WindowInput } from "./Window.ts"

type Fragment = Statement.Fragment

export type { EventFilter } from "./EventPlan.ts"

/** With a filter by request the default window is unlimited. */
const spanFor = ({ requests = [] }: EventFilter): number | undefined =>
  requests.length === 0 ? undefined : Number.POSITIVE_INFINITY

/**
 * A page of events. The status is a function of several rows. So waiting events are found by the table of waiting deliveries
 * while it is short, and failed events by the index over failures.
 */
export const list = Effect.fnUntraced(function* (
  team: string,
  filter: EventFilter,
  request: WindowedPage,
  include: { readonly data: boolean }
) {
  const now = yield* Clock.currentTimeMillis
  const at = yield* Effect.fromResult(resolvePage(request, now, spanFor(filter)))
  const { lower, upper } = idRange(prefixes.event, at.window)
  let page = yield* pageOf(team, filter, { lower, upper: at.position?.id ?? upper }, request.limit, now)
  // None of the gathered events may meet the rest of the filter.
  while (page.rows.length === 0 && page.next !== null) {
    page = yield* pageOf(team, filter, { lower, upper: page.next }, request.limit, now)
  }
  if (include.data) {
    const bytes = yield* eventBytes(team, page.rows)
    page = cut(page, ({ id }) => bytes.get(id) ?? 0)
  }
  return envelope(request, at, page, yield* show(team, page.rows, include.data ? "list" : null))
})

/** The newest events in the range, from one gathered set. */
const pageOf = Effect.fnUntraced(function* (
  team: string,
  filter: EventFilter,
  range: IdRange,
  limit: number,
  now: number
): Effect.fn.Return<Page<EventRow>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const table = eventTable(sql, now)
  const { bounds, drive, driven, ids, idsTo, residual } = yield* plan(team, filter, range)
  const { statuses } = filter
  const options = { team, table, bounds, dir: "desc" as const, limit }
  const status = statuses.length === 0 ? [] : hasStatus(sql, table.status, statuses)

  const parts: Array<Scanned<EventRow>> = []
  if (ids !== null) {
    const { rows } = yield* pick<EventRow>({ ...options, ids, residual: [...residual, ...driven, ...status] })
    parts.push({ rows, examinedTo: idsTo })
  } else if (statuses.length === 0 || statuses.includes("SUCCESSFUL")) {
    parts.push(yield* scan<EventRow>({ ...options, drive, residual: [...residual, ...status] }))
  } else {
    const waiting = statuses.some((name) => name !== "FAILED") ? yield* pendingEvents(team, range) : []
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
  return toPage(parts, "desc", limit)
})

/** Converts rows to records, with their data for a list or a detail. */
const show = Effect.fnUntraced(function* (
  team: string,
  rows: ReadonlyArray<EventRow>,
  data: "list" | "detail" | null
): Effect.fn.Return<ReadonlyArray<Event>, SqlError.SqlError, SqlClient.SqlClient> {
  const found = data === null ? null : yield* eventData(team, rows, data)
  return yield* inReportSteps(
    mapped(rows, (row) => toEvent(row, found === null ? {} : { data: found.get(row.id) ?? null }))
  )
})

/** The events stored after a cursor, in that order: a reader gets each exactly once. */
export const feed = Effect.fnUntraced(function* (
  team: string,
  filter: EventFilter,
  page: FeedPage,
  include: { readonly data: boolean }
) {
  const { cursor, more, rows } = yield* follow(team, filter, page, include.data)
  const models = yield* show(team, rows, include.data ? "list" : null)
  const to = yield* Clock.currentTimeMillis
  return {
    total: models.length,
    total_exact: !more,
    limit: page.limit,
    applied_range: appliedRange({ from: 0, to }),
    next_cursor: cursor,
    next: cursor,
    prev: null,
    pagination: { order_by: "stored_at", dir: "asc" as const, limit: page.limit },
    count: models.length,
    has_more: more,
    models
  }
})

/** How many events of the window meet the filter. */
export const count = Effect.fnUntraced(function* (team: string, filter: EventFilter, input: WindowInput) {
  const now = yield* Clock.currentTimeMillis
  const window = yield* Effect.fromResult(parseWindow(input, now, spanFor(filter)))
  const whole = { from: window.from, to: window.to + 1 }
  const { exact, total } = yield* countAll((atMost) => countEvents(team, filter, whole, atMost))
  return { total, count: total, total_exact: exact, applied_range: appliedRange(window) }
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

/** A page of the events of one request, oldest first, by the filter. */
export const ofRequest = Effect.fnUntraced(function* (
  team: string,
  requestId: string,
  filter: Pick<EventFilter, "statuses" | "sources" | "connections" | "destinations"> & {
    readonly ids: ReadonlyArray<string>
  },
  page: PageRequest
) {
  const sql = yield* SqlClient.SqlClient
  const residual: Array<Fragment> =
    filter.statuses.length === 0
      ? []
      : [...hasStatus(sql, eventTable(sql, yield* Clock.currentTimeMillis).status, filter.statuses)]
  for (const [column, name] of dimensions) {
    if (filter[name].length > 0) residual.push(sql`${sql.literal(`e.${column}`)} = any(${Columns.text(filter[name])})`)
  }
  let examinedTo: string | null = (yield* Effect.fromResult(positionOf(page)))?.id ?? ""
  let matching: ReadonlyArray<EventRow> = []
  // None of one gathered set may match.
  while (examinedTo !== null && matching.length === 0) {
    const found: ReadonlyArray<string> = (yield* eventsOfRequests(team, [requestId], gatherAtMost, examinedTo)).map(
      ({ id }) => id
    )
    const ids = filter.ids.length === 0 ? found : found.filter((id) => filter.ids.includes(id))
    matching = yield* byIds(team, ids, residual, page.limit + 1)
    // There may be more behind the gathered set.
    examinedTo = found.length < gatherAtMost ? null : found.at(-1)!
  }
  const { last, page: rows } = cutToLimit(matching, page.limit)
  return subList(page, yield* show(team, rows, null), last?.id ?? examinedTo)
})
