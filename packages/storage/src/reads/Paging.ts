import { Result } from "effect"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { type FilterKey, type Position, readCursor, writeCursor } from "./Cursor.ts"
import type { Page } from "./Scan.ts"
import { appliedRange, parseWindow, type Window, type WindowInput } from "./Window.ts"

/** The page that a caller requests. */
export interface PageRequest {
  readonly key: FilterKey
  readonly window: WindowInput
  readonly cursor: string | undefined
  /** A cursor towards the start; only for lists that can be read in both directions. */
  readonly prev?: string | undefined
  readonly limit: number
}

/** The page of a list without a window, oldest first: the records of one request. */
export interface SubPageRequest {
  readonly key: FilterKey
  readonly cursor: string | undefined
  readonly limit: number
}

/** The last id of the previous page; empty for the first page. */
export const startOf = ({ cursor, key }: SubPageRequest): Result.Result<string, GatewayError> =>
  cursor === undefined ? Result.succeed("") : Result.map(readCursor(key, cursor), ({ id }) => id)

export const noWindow: Window = { from: 0, to: 0 }

/** The envelope of such a list; `next` is the last id of the page when there are more. */
export const subList = <Model>({ key, limit }: SubPageRequest, models: ReadonlyArray<Model>, next: string | null) => ({
  pagination: { order_by: "created_at", dir: "asc" as const, limit },
  next: next === null ? null : writeCursor(key, { id: next, seen: 0, window: noWindow, back: false }),
  prev: null,
  count: models.length,
  models
})

/** The window (default: of that span) and, after the first page, the position where it continues. */
export const resolvePage = (
  request: PageRequest,
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

/** The envelope of lists of requests and events, newest first. Both have the same members, except for those that requests add. */
export const envelope = <Row, Model>(
  request: PageRequest,
  at: { readonly window: Window; readonly position: Position | null },
  page: Page<Row>,
  models: ReadonlyArray<Model>
) => {
  const total = (at.position?.seen ?? 0) + models.length
  const next_cursor =
    page.next === null ? null : writeCursor(request.key, { id: page.next, seen: total, window: at.window, back: false })
  return {
    total,
    total_exact: next_cursor === null,
    limit: request.limit,
    applied_range: appliedRange(at.window),
    next_cursor,
    next: next_cursor,
    prev: null,
    pagination: { order_by: "created_at", dir: "desc" as const, limit: request.limit },
    count: models.length,
    models
  }
}
