import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"

/** The order and limit of a list as applied (a limit above the maximum is reduced to it). */
export const Pagination = Schema.Struct({
  order_by: Schema.String,
  dir: Schema.Literals(["asc", "desc"]),
  limit: Schema.Int
})

const Cursor = Schema.NullOr(Schema.String)

/** A window of time, both ends included. */
export const TimeRange = Schema.Struct({ from: Timestamp, to: Timestamp })

/** Sources, destinations, connections: one page without a cursor. `has_more`: there are more than it shows. */
export const ResourceList = <S extends Schema.Top>(model: S) =>
  Schema.Struct({
    pagination: Pagination,
    count: Schema.Int,
    has_more: Schema.Boolean,
    models: Schema.Array(model)
  })

const paged = {
  total: Schema.Int,
  total_exact: Schema.Boolean,
  limit: Schema.Int,
  applied_range: TimeRange,
  next_cursor: Cursor,
  next: Cursor,
  prev: Cursor,
  pagination: Pagination,
  count: Schema.Int
}

const partial = { partial: Schema.Boolean, unavailable_shard_count: Schema.Int }

/**
 * `count` is the number of rows of this page; `total` is exact when `next_cursor` is null, otherwise the rows seen so far. A page
 * may be shorter than its limit, even empty, and still have a `next_cursor`: rare matches in a busy window are searched in
 * limited steps.
 */
export const EventList = <S extends Schema.Top>(model: S) =>
  Schema.Struct({
    ...paged,
    has_more: Schema.optionalKey(
      Schema.Boolean.annotate({ description: "Of a feed: whether there are more to be read now" })
    ),
    models: Schema.Array(model)
  })

/** As `EventList`; lists of requests also say whether every shard answered (there is one). */
export const RequestList = <S extends Schema.Top>(model: S) =>
  Schema.Struct({ ...paged, ...partial, models: Schema.Array(model) })

const counted = {
  total: Schema.Int,
  count: Schema.Int,
  total_exact: Schema.Boolean,
  applied_range: TimeRange
}

export const EventCount = Schema.Struct(counted).annotate({ identifier: "EventCount" })
export const RequestCount = Schema.Struct({ ...counted, ...partial }).annotate({ identifier: "RequestCount" })

/** Attempts: cursors in both directions, inside `pagination`. */
export const AttemptList = <S extends Schema.Top>(model: S) =>
  Schema.Struct({
    pagination: Schema.Struct({ ...Pagination.fields, next: Cursor, prev: Cursor }),
    count: Schema.Int,
    models: Schema.Array(model)
  })

/** The events or ignored events of one request. */
export const SubList = <S extends Schema.Top>(model: S) =>
  Schema.Struct({
    pagination: Pagination,
    next: Cursor,
    prev: Cursor,
    count: Schema.Int,
    models: Schema.Array(model)
  })
