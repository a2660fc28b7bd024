import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"

export const deletionStages = ["stopping", "removing", "checking", "done"] as const

/** The deletion of a team: its progress, and in the end what was deleted. It contains nothing of the team but its id. */
export const TeamDeletion = Schema.Struct({
  team_id: Schema.String,
  stage: Schema.Literals(deletionStages).annotate({
    description:
      "`stopping`: actors stop, and channels unsubscribe. `removing`: rows are deleted. `checking`: every table is looked through once more. `done`: nothing is left"
  }),
  requested_by: Schema.NullOr(Schema.String).annotate({
    description: "The user who requested it. Null: the operator, by a command"
  }),
  requested_at: Timestamp,
  finished_at: Schema.NullOr(Timestamp),
  current_table: Schema.NullOr(Schema.String).annotate({
    description: "The table that is looked through now. Null: none"
  }),
  deleted: Schema.Record(Schema.String, Schema.Int).annotate({
    description: "The number of rows that were deleted, by table. Tables without rows of the team are absent"
  }),
  deleted_total: Schema.Int.annotate({ description: "The sum of these numbers" })
}).annotate({ identifier: "TeamDeletion", description: "The deletion of a team." })
export type TeamDeletion = typeof TeamDeletion.Type
