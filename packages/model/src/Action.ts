import { Schema } from "effect"
import { RatePeriod } from "./Destination.ts"
import { Timestamp } from "./Timestamp.ts"

const Config = Schema.Struct({
  auth_mode: Schema.String,
  provider_account_id: Schema.NullOr(Schema.String),
  credentials_configured: Schema.Boolean,
  schema_version: Schema.String,
  schema_provenance: Schema.Literal("catalog"),
  inputs: Schema.JsonObject.check(Schema.isMaxProperties(200)),
  rate_limit: Schema.NullOr(Schema.Int).annotate({ description: "Calls per `rate_limit_period`. Null: no limit" }),
  rate_limit_period: RatePeriod
}).annotate({ identifier: "ActionConfig" })

/** A saved action: an action of a provider with its credentials, which workflow steps name. */
export const Action = Schema.Struct({
  id: Schema.String,
  team_id: Schema.String,
  name: Schema.String,
  type: Schema.Literal("ACTION"),
  status: Schema.Literals(["enabled", "disabled"]),
  disabled_at: Schema.NullOr(Timestamp),
  held_until: Schema.NullOr(
    Timestamp.annotate({
      description:
        "Time until which no step calls the action, because its target accepts no calls. Null: it accepts calls"
    })
  ),
  provider_key: Schema.String,
  action_key: Schema.String,
  config: Config,
  workflow_steps_count: Schema.Int,
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({ identifier: "Action" })

export interface Action extends Schema.Schema.Type<typeof Action> {}
