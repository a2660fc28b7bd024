import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"

/**
 * `searching`: what is to be deleted is looked for. `counting`: the rows of it are counted. `planned`: the plan waits for its
 * confirmation. `stopping`: deliveries and runs of it are cancelled. `removing`: rows are deleted. The last three are final.
 */
export const dataDeletionStages = [
  "searching",
  "counting",
  "planned",
  "stopping",
  "removing",
  "done",
  "cancelled",
  "failed"
] as const
export type DataDeletionStage = (typeof dataDeletionStages)[number]

/** The lengths of the text that a deletion looks for, in characters. A shorter one would be in everything. */
export const searchedLength = { minimum: 3, maximum: 200 }

/** The requests that a deletion without a text selects. Absent members select all. */
export const DataDeletionFilter = Schema.Struct({
  from: Schema.optionalKey(Timestamp),
  to: Schema.optionalKey(Timestamp),
  source_id: Schema.optionalKey(Schema.Array(Schema.String)),
  status: Schema.optionalKey(Schema.Literals(["accepted", "rejected"])),
  verified: Schema.optionalKey(Schema.Boolean)
}).annotate({ identifier: "DataDeletionFilter" })
export type DataDeletionFilter = typeof DataDeletionFilter.Type

const Counts = Schema.Record(Schema.String, Schema.Int)

/** A deletion of data: its plan, its progress, and in the end the proof. It never contains the text that was looked for. */
export const DataDeletion = Schema.Struct({
  id: Schema.String,
  team_id: Schema.String,
  stage: Schema.Literals(dataDeletionStages).annotate({
    description:
      "`searching`: data is looked for. `counting`: its rows are counted. `planned`: the plan waits for its confirmation. `stopping`: deliveries and runs are cancelled. `removing`: rows are deleted. `done`, `cancelled`, `failed`: it has ended"
  }),
  filter: DataDeletionFilter,
  text_hash: Schema.NullOr(Schema.String).annotate({
    description:
      "The text that was looked for, as `scrypt:<salt>:<hash>`. Null: the deletion selects by its filter. The text itself is removed when the deletion ends"
  }),
  requested_by: Schema.NullOr(Schema.String).annotate({ description: "The user who asked for it. Null: a key" }),
  requested_at: Timestamp,
  confirmed_by: Schema.NullOr(Schema.String).annotate({
    description: "The user who confirmed it. Null: a key, or nobody yet"
  }),
  confirmed_at: Schema.NullOr(Timestamp).annotate({ description: "What was received later is not deleted" }),
  planned: Counts.annotate({ description: "The rows that the plan found, by table" }),
  planned_total: Schema.Int,
  deleted: Counts.annotate({ description: "The rows that were deleted, by table" }),
  deleted_total: Schema.Int,
  unreadable_count: Schema.Int.annotate({
    description: "Compressed bodies that could not be decompressed, so the text was not looked for in them"
  }),
  looked_at_count: Schema.Int.annotate({ description: "The rows that were looked at, in all passes" }),
  current_table: Schema.NullOr(Schema.String).annotate({ description: "The table that is looked at now. Null: none" }),
  error: Schema.NullOr(Schema.Struct({ code: Schema.String, message: Schema.String })),
  cancelable: Schema.Boolean,
  finished_at: Schema.NullOr(Timestamp)
}).annotate({ identifier: "DataDeletion", description: "A deletion of data by a filter, or by a person's text." })
export type DataDeletion = typeof DataDeletion.Type
