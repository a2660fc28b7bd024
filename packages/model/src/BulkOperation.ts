import { Schema } from "effect"
import {
  eventFilters,
  ignoredEventFilters,
  type RecordFilter,
  type RecordFilters,
  requestFilters,
  runBulkFilters
} from "./RecordFilter.ts"
import { Timestamp } from "./Timestamp.ts"

/**
 * What an operation does: retries requests or events, cancels waiting events, replays ignored events, retries the failed steps of
 * runs, or cancels runs.
 */
export const BulkKind = Schema.Literals([
  "request_bulk_retry",
  "event_bulk_retry",
  "event_bulk_cancel",
  "ignored_event_bulk_retry",
  "workflow_run_bulk_retry",
  "workflow_run_bulk_cancel"
])
export type BulkKind = typeof BulkKind.Type

/** The kind of records of an operation. */
export type BulkOf = "requests" | "events" | "ignored_events" | "workflow_runs"

/** The kinds of operations for each kind of records. */
export const kindsOf: { readonly [of in BulkOf]: ReadonlyArray<BulkKind> } = {
  requests: ["request_bulk_retry"],
  events: ["event_bulk_retry", "event_bulk_cancel"],
  ignored_events: ["ignored_event_bulk_retry"],
  workflow_runs: ["workflow_run_bulk_retry", "workflow_run_bulk_cancel"]
}

/** The filters for each kind of records: those of its list. */
export const filtersOf = {
  requests: requestFilters,
  events: eventFilters,
  ignored_events: ignoredEventFilters,
  workflow_runs: runBulkFilters
} as const satisfies { readonly [of in BulkOf]: RecordFilters }

/**
 * PLANNED: the targets are being collected, then the plan waits for confirmation if it needs one. RUNNING: the targets are being
 * processed. The other three are final.
 */
export const BulkStatus = Schema.Literals(["PLANNED", "RUNNING", "COMPLETED", "FAILED", "CANCELLED"])
export type BulkStatus = typeof BulkStatus.Type

const stored = ({ kind }: RecordFilter) =>
  kind === "flag" ? Schema.Boolean : kind === "word" || kind === "text" ? Schema.String : Schema.Array(Schema.String)

const filters = Object.entries<RecordFilter>({
  ...ignoredEventFilters,
  ...requestFilters,
  ...eventFilters,
  ...runBulkFilters
}).map(([name, declared]) => [name, Schema.optionalKey(stored(declared))] as const)

/** A validated filter: the values of the list's filters, by the filters' own names. */
export type BulkNarrowing = { readonly [name: string]: boolean | string | ReadonlyArray<string> }

/** The filter as validated. Its times are resolved when the operation is created. */
export const BulkFilter = Schema.Struct({
  from: Timestamp,
  to: Timestamp,
  ...(Object.fromEntries(filters) as {
    readonly [name: string]: Schema.optionalKey<Schema.Codec<BulkNarrowing[string]>>
  })
}).annotate({ identifier: "BulkFilter" })

/** A filter as it is stored and shown. */
export type BulkFilter = { readonly from: string; readonly to: string } & BulkNarrowing

/** The range of an operation's own rate, in targets per second. */
export const rateBounds = { minimum: 1, maximum: 2_000 }
/** How many targets of a plan are shown. */
export const sampleSize = 10

/**
 * An operation on everything that a filter found. Once `planned_at` is set, `total_count` is the number of targets and `sample`
 * has some of them. `queued_count` of them were processed (`done_count` repeats it: what is queued is stored). `failed_count`
 * could not be processed, because their source, connection, destination or workflow is disabled, their payload is gone, or their
 * state has changed.
 */
export const BulkOperation = Schema.Struct({
  id: Schema.String,
  team_id: Schema.String,
  type: BulkKind,
  status: BulkStatus,
  filter: BulkFilter,
  rate: Schema.NullOr(Schema.Int).annotate({
    description: "Maximum targets per second. Null: as many as live traffic allows"
  }),
  confirmed: Schema.Boolean.annotate({ description: "false: the operation is a plan that waits for its confirmation" }),
  requested_by: Schema.NullOr(Schema.String),
  total_count: Schema.Int,
  queued_count: Schema.Int,
  done_count: Schema.Int,
  failed_count: Schema.Int,
  sample: Schema.Array(Schema.String).annotate({
    description: "Ids of some targets of the plan, the newest first"
  }),
  error: Schema.NullOr(Schema.Struct({ code: Schema.String, message: Schema.String })).annotate({
    description:
      "Why the operation was given up. Null: it was not. PROCESS_ENDED: processes ended repeatedly while they ran it. The remaining targets are unchanged"
  }),
  cancelable: Schema.Boolean,
  created_at: Timestamp,
  planned_at: Schema.NullOr(Timestamp).annotate({ description: "When the plan was complete" }),
  started_at: Schema.NullOr(Timestamp),
  finished_at: Schema.NullOr(Timestamp)
}).annotate({ identifier: "BulkOperation" })

export interface BulkOperation extends Schema.Schema.Type<typeof BulkOperation> {}

/** All operations, unfinished ones, or finished ones. */
export const BulkBucket = Schema.Literals(["all", "ongoing", "history"])
export type BulkBucket = typeof BulkBucket.Type
