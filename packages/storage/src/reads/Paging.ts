import { Result } from "effect"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { listed } from "@tidegate/model/Lists"
import { type FilterKey, type Position, readCursor, writeCursor } from "./Cursor.ts"
import type { Page } from "./Scan.ts"
import { appliedRange, parseWindow, type Window, type WindowInput } from "./Window.ts"

/** The page that a caller requests. */
export interface PageRequest {
  readonly key: FilterKey
  readonly cursor: string | undefined
  readonly limit: number
}

/** The page of a list that has a window. */
export interface WindowedPage extends PageRequest {
  readonly window: WindowInput
  /** A cursor towards the start; only lists that can be read both ways take it. */
  readonly prev?: string | undefined
}

const noWindow: Window = { from: 0, to: 0 }

/** Where the page goes on; null on the first one. */
export const positionOf = ({ cursor, key }: PageRequest): Result.Result<Position | null, GatewayError> =>
  cursor === undefined ? Result.succeed(null) : readCursor(key, cursor)

/** The cursor of the page that follows a row, of a list without a window; null when the row is none. */
export const cursorAfter = (key: FilterKey, last: Pick<Position, "id" | "value"> | null | undefined): string | null =>
  last === null || last === undefined ? null : writeCursor(key, { ...last, seen: 0, window: noWindow, back: false })

/** The rows of a page, of one row more than its limit, and the last of them when there are more. */
export const cutToLimit = <Row>(rows: ReadonlyArray<Row>, limit: number) => {
  const page = rows.slice(0, limit)
  return { page, last: rows.length > limit ? page.at(-1)! : null }
}

/** The answer with the records that one request led to, oldest first. `next`: the last id of the page, if it is not the last page. */
export const subList = <Model>({ key, limit }: PageRequest, models: ReadonlyArray<Model>, next: string | null) => {
  const page = listed(models, cursorAfter(key, next === null ? null : { id: next }))
  return {
    pagination: { order_by: "created_at", dir: "asc" as const, limit },
    next: page.next_cursor,
    prev: null,
    ...page
  }
}

/** The window (default: of that span) and, after the first page, the position where it continues. */
export const resolvePage = (
  request: WindowedPage,
  now: number,
  span?: number
): Result.Result<{ readonly window: Window; readonly position: Position | null }, GatewayError> => {
  const { cursor, key, prev } = request
  if (cursor !== undefined && prev !== undefined) {
    return Result.fail(fail("INVALID_CURSOR", "give next or prev, not both"))
  }
  const text = cursor ?? prev
  if (text === undefined) {
    return Result.map(parseWindow(request.window, now, span), (window) => ({ window, position: null }))
  }
  return Result.flatMap(readCursor(key, text), (position) =>
    position.back === (prev !== undefined)
      ? Result.succeed({ window: position.window, position })
      : Result.fail(fail("INVALID_CURSOR", "the cursor points the other way"))
  )
}

interface At {
  readonly window: Window
  readonly position: Position | null
}

/** A page of a list that has a window; `next` is the id that it ends with when it is not the last one. */
export const windowedList = <Model>(
  { key }: PageRequest,
  { position, window }: At,
  models: ReadonlyArray<Model>,
  next: string | null
) => {
  const total = (position?.seen ?? 0) + models.length
  const cursor = next === null ? null : writeCursor(key, { id: next, seen: total, window, back: false })
  return { total, total_exact: next === null, applied_range: appliedRange(window), ...listed(models, cursor) }
}

/** The answer of requests and events, newest first; the same for both but for what requests add. */
export const envelope = <Row, Model>(
  request: WindowedPage,
  at: At,
  { next }: Page<Row>,
  models: ReadonlyArray<Model>
) => {
  const page = windowedList(request, at, models, next)
  return {
    ...page,
    limit: request.limit,
    next: page.next_cursor,
    prev: null,
    pagination: { order_by: "created_at", dir: "desc" as const, limit: request.limit }
  }
}
