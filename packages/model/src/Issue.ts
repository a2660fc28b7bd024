import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"

export const IssueStatus = Schema.Literals(["open", "acknowledged", "dismissed", "resolved"])
export type IssueStatus = typeof IssueStatus.Type

/** The statuses of an issue that is not over. */
export const unresolved = ["open", "acknowledged", "dismissed"] as const satisfies ReadonlyArray<IssueStatus>

/** Ids of events that an issue keeps. */
export const maxIssueEvents = 10

/** Deliveries to a destination that fail with an error code. */
export const Issue = Schema.Struct({
  id: Schema.String,
  team_id: Schema.String,
  destination_id: Schema.String,
  destination_name: Schema.String,
  error_code: Schema.String,
  response_status: Schema.NullOr(Schema.Int).annotate({ description: "Of the last answer, if there was one" }),
  status: IssueStatus,
  count: Schema.Int.annotate({ description: "Failed attempts since the issue opened" }),
  event_ids: Schema.Array(Schema.String).annotate({
    description: `At most ${maxIssueEvents} of the events, the latest first`
  }),
  first_seen_at: Timestamp.annotate({ description: "Also of earlier times that the issue was open" }),
  opened_at: Timestamp,
  last_seen_at: Timestamp,
  changed_by: Schema.NullOr(Schema.String).annotate({
    description: "The user who acknowledged or dismissed it last; null: nobody, or an API key"
  }),
  resolved_at: Schema.NullOr(Timestamp)
}).annotate({ identifier: "Issue" })

export interface Issue extends Schema.Schema.Type<typeof Issue> {}
