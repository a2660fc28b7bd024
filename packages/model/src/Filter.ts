import { Schema } from "effect"
import { Condition, FilterConditions } from "./Rule.ts"
import { Timestamp } from "./Timestamp.ts"

/** A connection whose rules link a stored filter. */
export const FilterConnection = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  source_id: Schema.String,
  destination_id: Schema.String,
  disabled_at: Schema.NullOr(Timestamp),
  paused_at: Schema.NullOr(Timestamp)
}).annotate({ identifier: "FilterConnection" })

export interface FilterConnection extends Schema.Schema.Type<typeof FilterConnection> {}

const listed = {
  id: Schema.String,
  team_id: Schema.String,
  name: Schema.String,
  conditions: FilterConditions,
  headers: Schema.NullOr(Condition),
  body: Schema.NullOr(Condition),
  query: Schema.NullOr(Condition),
  path: Schema.NullOr(Condition),
  connections_count: Schema.Int,
  sample_connection_id: Schema.NullOr(Schema.String),
  workflow_steps_count: Schema.Int
}

const times = { created_at: Timestamp, updated_at: Timestamp }

/**
 * A stored filter as lists show it. Each of its conditions appears twice: in `conditions`, and as a member of its own, which is
 * null without a condition.
 */
export const ListedFilter = Schema.Struct({ ...listed, ...times }).annotate({ identifier: "ListedFilter" })

/** A stored filter, with a limited number of the connections that link it. */
export const Filter = Schema.Struct({
  ...listed,
  connections: Schema.Array(FilterConnection),
  ...times
}).annotate({ identifier: "Filter" })

export interface Filter extends Schema.Schema.Type<typeof Filter> {}
