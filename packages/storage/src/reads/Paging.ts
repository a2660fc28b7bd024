import { Result } from "effect"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { type FilterKey, type Position, readCursor, writeCursor } from "./Cursor.ts"
import type { Page } from "./Scan.ts"
import { appliedRange, parseWindow, type Window, type WindowInput } from "./Window.ts"

/** The page of a list that a caller asks for. */
export interface PageRequest {
  readonly key: FilterKey
  readonly window: WindowInput
  readonly cursor: string | undefined
  /** A cursor towards the start; only lists that can be read both ways take it. */
  readonly prev?: string | undefined
  readonly limit: number
}

/** The page of a list that has no window, oldest first: what one request became. */
export interface SubPageRequest {
  readonly key: FilterKey
  readonly cursor: string | undefined
  readonly limit: number
}

/** The id that the page before ended with; the empty one before the first page. */
export const startOf = ({ cursor, key }: SubPageRequest): Result.Result<string, GatewayError> =>
  cursor === undefined ? Result.succeed("") : Result.map(readCursor(key, cursor), ({ id }) => id)

export const noWindow: Window = { from: 0, to: 0 }

/** The envelope of such a list; `next` is the id that the page ends with when it is not the last one. */
export const subList = <Model>({ key, limit }: SubPageRequest, models: ReadonlyArray<Model>, next: string | null) => ({
  pagination: { order_by: "created_at", dir: "asc" as const, limit },
  next: next === null ? null : writeCursor(key, { id: next, seen: 0, window: noWindow, back: false }),
  prev: null,
  count: models.length,
  models
})

/** The window (of that span unless told) and, after the first page, the position it goes on from. */
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

/** The envelope of requests and events, newest first; the same for both but for what requests add. */
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
