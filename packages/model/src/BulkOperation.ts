import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"

/** What an operation retries. */
export const BulkKind = Schema.Literals(["request_bulk_retry", "event_bulk_retry"])
export type BulkKind = typeof BulkKind.Type

/** PLANNED: what it is of is looked for. RUNNING: that is retried. The other three are final. */
export const BulkStatus = Schema.Literals(["PLANNED", "RUNNING", "COMPLETED", "FAILED", "CANCELLED"])
export type BulkStatus = typeof BulkStatus.Type

const Some = Schema.optionalKey(Schema.Array(Schema.String))

/** What it is of: the filters of the list of requests or events, as they were taken; times are those of the creation. */
export const BulkFilter = Schema.Struct({
  from: Timestamp,
  to: Timestamp,
  status: Some,
  source_id: Some,
  connection_id: Some,
  destination_id: Some,
  q: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "BulkFilter" })

export interface BulkFilter extends Schema.Schema.Type<typeof BulkFilter> {}

/**
 * A retry of all that a filter found. `total_count` is how many that are; of them `queued_count` have been retried (`done_count` repeats
 * it: what is queued is stored), `failed_count` could not be, because their source, connection or destination is switched off, or their payload is gone.
 */
export const BulkOperation = Schema.Struct({
  id: Schema.String,
  team_id: Schema.String,
  type: BulkKind,
  status: BulkStatus,
  filter: BulkFilter,
  requested_by: Schema.NullOr(Schema.String),
  total_count: Schema.Int,
  queued_count: Schema.Int,
  done_count: Schema.Int,
  failed_count: Schema.Int,
  cancelable: Schema.Boolean,
  created_at: Timestamp,
  started_at: Schema.NullOr(Timestamp),
  finished_at: Schema.NullOr(Timestamp)
}).annotate({ identifier: "BulkOperation" })

export interface BulkOperation extends Schema.Schema.Type<typeof BulkOperation> {}

/** All, those that are not at their end, or those that are. */
export const BulkBucket = Schema.Literals(["all", "ongoing", "history"])
export type BulkBucket = typeof BulkBucket.Type
