import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"

export const TeamRole = Schema.Literals(["owner", "member"])

/** How long a team's data is kept, in days. */
export const TeamRetention = Schema.Struct({
  payload_days: Schema.Int.annotate({ description: "Days for which bodies, headers, queries and logs are kept" }),
  record_days: Schema.Int.annotate({ description: "Days for which requests, events, attempts and runs are kept" }),
  most_payload_days: Schema.Int.annotate({ description: "Days that the operator allows at most for `payload_days`" }),
  most_record_days: Schema.Int.annotate({ description: "Days that the operator allows at most for `record_days`" })
}).annotate({ identifier: "TeamRetention" })

export const Team = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  members: Schema.Int.annotate({ description: "Number of members" }),
  retention: TeamRetention,
  on_failure_workflow_id: Schema.NullOr(Schema.String).annotate({
    description: "The workflow of which a run begins when a run of a workflow fails that has no `triggers.on_failure`"
  }),
  created_at: Timestamp
}).annotate({ identifier: "Team" })
export interface Team extends Schema.Schema.Type<typeof Team> {}

/** A team that a caller belongs to. */
export const OwnTeam = Schema.Struct({ id: Schema.String, name: Schema.String, role: TeamRole }).annotate({
  identifier: "OwnTeam"
})
export interface OwnTeam extends Schema.Schema.Type<typeof OwnTeam> {}

export const TeamMember = Schema.Struct({
  id: Schema.String.annotate({ description: "The role of the user" }),
  email: Schema.NullOr(Schema.String),
  name: Schema.NullOr(Schema.String),
  role: TeamRole,
  expected: Schema.Boolean.annotate({
    description: "Whether the member was added by e-mail address and has not signed in yet"
  }),
  created_at: Timestamp
}).annotate({ identifier: "TeamMember" })
export interface TeamMember extends Schema.Schema.Type<typeof TeamMember> {}
