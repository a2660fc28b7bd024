import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"

/** The runtime of a transformation's code. Its name changes when the same code could behave differently. */
export const Runtime = Schema.Literal("js-v1")
export const runtime = "js-v1" as const

/** Variables of a transformation, by name. */
export const Env = Schema.Record(Schema.String, Schema.String)
export type Env = typeof Env.Type

/** Where code runs: `sealed` in a reused isolate, `fresh` in a fresh context for each call; see the sandbox. */
export const Isolation = Schema.Literals(["sealed", "fresh"])
export type Isolation = typeof Isolation.Type

const count = Schema.Int
const bins = Schema.Array(Schema.Int)

/**
 * A transformation as the API shows it. `code_hash`: SHA-256 of the code, hex. The counts are of the last 24 hours; bins are six
 * buckets of four hours, oldest first, the last one ending now. `connections_count`: connections whose rules name it.
 * `isolation`: the requested one, null for the default. `isolation_reason`: why its code runs in a fresh context although that
 * was not requested; null when it does not. A list without requested counts shows zeros.
 */
export const Transformation = Schema.Struct({
  id: Schema.String,
  team_id: Schema.String,
  name: Schema.String,
  code: Schema.String,
  env: Env,
  runtime: Runtime,
  code_hash: Schema.String,
  isolation: Schema.NullOr(Isolation),
  isolation_reason: Schema.NullOr(Schema.String),
  deleted_at: Schema.NullOr(Timestamp),
  executions_24h_count: count,
  executions_24h_successful_count: count,
  executions_24h_failed_count: count,
  executions_24h_successful_bins: bins,
  executions_24h_failed_bins: bins,
  connections_count: count,
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({ identifier: "Transformation" })

export interface Transformation extends Schema.Schema.Type<typeof Transformation> {}
