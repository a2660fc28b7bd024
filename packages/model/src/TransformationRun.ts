import { Schema } from "effect"
import { ExecutionStats } from "./Execution.ts"
import { Timestamp } from "./Timestamp.ts"
import { Runtime } from "./Transformation.ts"
import { Values } from "./Message.ts"

/** A request sample as the code returned it: `query` in the form it was sent in, text or object. */
export const TransformedSample = Schema.Struct({
  headers: Values,
  body: Schema.Json,
  query: Schema.Union([Schema.String, Values]),
  parsed_query: Values,
  path: Schema.String,
  method: Schema.String
})

/**
 * What running a transformation against a sample answers. A sample's run is not an execution: nothing is stored or
 * counted. When the code fails, `request` is null and `error` says why; `line` is that of the code, from 1.
 */
export const TransformationRun = Schema.Struct({
  transformation_id: Schema.NullOr(Schema.String),
  runtime: Runtime,
  stats: ExecutionStats,
  log_level: Schema.Literals(["debug", "info", "warn", "error"]),
  console: Schema.Array(Schema.String),
  warnings: Schema.Array(Schema.String),
  request: Schema.NullOr(TransformedSample),
  error: Schema.NullOr(
    Schema.Struct({
      code: Schema.String,
      name: Schema.String,
      message: Schema.String,
      line: Schema.NullOr(Schema.Int)
    })
  ),
  transformation_run_time: Schema.Struct({
    started_at: Timestamp,
    finished_at: Timestamp,
    duration_ms: Schema.Finite
  })
}).annotate({ identifier: "TransformationRun" })

export interface TransformationRun extends Schema.Schema.Type<typeof TransformationRun> {}
