import { Schema } from "effect"
import { RequestData } from "./Request.ts"
import { Timestamp } from "./Timestamp.ts"

/** A request that is kept to be replayed. Its copy never changes, and outlives the request. */
export const Fixture = Schema.Struct({
  id: Schema.String,
  team_id: Schema.String,
  name: Schema.String,
  description: Schema.NullOr(Schema.String),
  source_id: Schema.String,
  source_name: Schema.String,
  original_request_id: Schema.String,
  replay_count: Schema.Int,
  last_replayed_at: Schema.NullOr(Timestamp),
  created_at: Timestamp,
  updated_at: Timestamp,
  snapshot: Schema.optionalKey(RequestData)
}).annotate({ identifier: "Fixture" })

export interface Fixture extends Schema.Schema.Type<typeof Fixture> {}

/** An enabled connection that a fixture can be replayed through. */
export const FixtureTarget = Schema.Struct({
  connection_id: Schema.String,
  connection_name: Schema.String,
  source_id: Schema.String,
  source_name: Schema.String,
  destination_id: Schema.String,
  destination_name: Schema.String,
  destination_type: Schema.String
}).annotate({ identifier: "FixtureTarget" })

export interface FixtureTarget extends Schema.Schema.Type<typeof FixtureTarget> {}

export const FixtureReplayed = Schema.Struct({
  queued: Schema.Literal(true),
  fixture_id: Schema.String,
  connection_id: Schema.String,
  destination_id: Schema.String,
  message_id: Schema.String,
  replay_request_id: Schema.String,
  replayed_at: Timestamp
}).annotate({ identifier: "FixtureReplayed", description: "replay_request_id is the new request." })
