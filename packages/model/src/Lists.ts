import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"

const Cursor = Schema.NullOr(Schema.String)

/**
 * What every list answers, with what one list has beside it. A page may be shorter than its limit, even empty, and still have a next page: a rare
 * match in a busy window is looked for in bounded steps, and a page of large records ends early.
 */
export const listOf = <Model extends Schema.Top, const Beside extends Schema.Struct.Fields>(
  model: Model,
  beside: Beside
) =>
  Schema.Struct({
    ...beside,
    count: Schema.Int.annotate({ description: "Rows of this page" }),
    next_cursor: Cursor.annotate({ description: "The `cursor` of the next page. Null: there is none" }),
    has_more: Schema.Boolean.annotate({ description: "Whether there are more rows" }),
    models: Schema.Array(model)
  })

/** What every list answers. */
export interface Listed<Model> {
  readonly count: number
  readonly next_cursor: string | null
  readonly has_more: boolean
  readonly models: ReadonlyArray<Model>
}

export const listed = <Model>(models: ReadonlyArray<Model>, next_cursor: string | null): Listed<Model> => ({
  count: models.length,
  next_cursor,
  has_more: next_cursor !== null,
  models
})

/** What a list was ordered by and how many rows it was asked for, as applied (a limit above the maximum is clamped). */
export const Pagination = Schema.Struct({
  order_by: Schema.String,
  dir: Schema.Literals(["asc", "desc"]),
  limit: Schema.Int
})

/** A window of time, both ends included. */
export const TimeRange = Schema.Struct({ from: Timestamp, to: Timestamp })

/** A list that has its cursors once more, under `next` and `prev`. */
const links = {
  next: Cursor.annotate({ description: "The same as next_cursor" }),
  prev: Cursor.annotate({ description: "Always null" })
}

/** What lists have beside the members of every list, as the contract names it. */
export const nothing = {}
export const ordered = { pagination: Pagination }
export const linked = { pagination: Pagination, ...links }
/** `total` is exact when `next_cursor` is null, else the rows seen so far. */
export const windowed = {
  total: Schema.Int,
  total_exact: Schema.Boolean,
  limit: Schema.Int,
  applied_range: TimeRange,
  ...linked
}
const partial = { partial: Schema.Boolean, unavailable_shard_count: Schema.Int }
/** Requests also tell whether every shard answered (there is one). */
export const whole = { ...windowed, ...partial }
export const totalled = { total: Schema.Int, total_exact: Schema.Boolean, applied_range: TimeRange }
/** Attempts: cursors both ways, inside `pagination`. */
export const bothWays = { pagination: Schema.Struct({ ...Pagination.fields, ...links, prev: Cursor }) }

const counted = { ...totalled, count: Schema.Int }

export const EventCount = Schema.Struct(counted).annotate({ identifier: "EventCount" })
export const RequestCount = Schema.Struct({ ...counted, ...partial }).annotate({ identifier: "RequestCount" })
