import { Schema } from "effect"
import { Destination } from "./Destination.ts"
import { Ordering } from "./Ordering.ts"
import { Source } from "./Source.ts"
import { Timestamp } from "./Timestamp.ts"

/** One rule as stored and shown. Its members depend on its type and were validated when it was written. */
export const ConnectionRule = Schema.JsonObject

/** A connection as the API shows it, with its source and destination in full. `rules` are in normalised order. */
export const Connection = Schema.Struct({
  id: Schema.String,
  team_id: Schema.String,
  name: Schema.String,
  description: Schema.NullOr(Schema.String),
  source_id: Schema.String,
  destination_id: Schema.String,
  source: Source,
  destination: Destination,
  rules: Schema.Array(ConnectionRule),
  /** Null: its events are delivered in any order. */
  ordering: Schema.NullOr(Ordering),
  disabled_at: Schema.NullOr(Timestamp),
  paused_at: Schema.NullOr(Timestamp),
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({ identifier: "Connection" })

export interface Connection extends Schema.Schema.Type<typeof Connection> {}
