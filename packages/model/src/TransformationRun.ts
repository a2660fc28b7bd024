import { Schema } from "effect"
import { ExecutionStats } from "./Execution.ts"
import { Timestamp } from "./Timestamp.ts"
import { Isolation, Runtime } from "./Transformation.ts"
import { Values } from "./Message.ts"

/** A sample request as the code returned it: `query` as text or object, as it was sent. */
export const TransformedSample = Schema.Struct({
  headers: Values,
  body: Schema.Json,
  query: Schema.Union([Schema.String, Values]),
  parsed_query: Values,
  path: Schema.String,
  method: Schema.String
})

/** How code has failed; `line` is the line of the code, from 1. */
const CodeProblem = Schema.Struct({
  code: Schema.String,
  name: Schema.String,
  message: Schema.String,
  line: Schema.NullOr(Schema.Int)
})

/**
 * The result of running a transformation over a sample. Such a run is not an execution: nothing is stored or counted. When the
 * code fails, `request` is null and `error` has the reason; `line` is the line of the code, from 1.
 */
export const TransformationRun = Schema.Struct({
  transformation_id: Schema.NullOr(Schema.String),
  runtime: Runtime,
  stats: ExecutionStats,
  log_level: Schema.Literals(["debug", "info", "warn", "error"]),
  console: Schema.Array(Schema.String),
  warnings: Schema.Array(Schema.String),
  request: Schema.NullOr(TransformedSample),
  error: Schema.NullOr(CodeProblem),
  transformation_run_time: Schema.Struct({
    started_at: Timestamp,
    finished_at: Timestamp,
    duration_ms: Schema.Finite.annotate({ description: "Milliseconds from start to end" })
  })
}).annotate({ identifier: "TransformationRun" })

export interface TransformationRun extends Schema.Schema.Type<typeof TransformationRun> {}

/** Whether code compiles, loads, and has added a handler: `handlers` are those that it has added. */
export const TransformationValidation = Schema.Struct({
  valid: Schema.Boolean,
  runtime: Runtime,
  handlers: Schema.Array(Schema.Literal("transform")),
  console: Schema.Array(Schema.String),
  error: Schema.NullOr(CodeProblem)
}).annotate({ identifier: "TransformationValidation" })

export interface TransformationValidation extends Schema.Schema.Type<typeof TransformationValidation> {}

const maximum = Schema.Int
const maxBytes = maximum.annotate({ description: "Maximum bytes" })

/** What code may use, and its limits. Bytes are of UTF-8. */
export const TransformationCapabilities = Schema.Struct({
  runtime: Runtime,
  runtimes: Schema.Array(Runtime),
  handlers: Schema.Array(Schema.Literal("transform")),
  isolations: Schema.Array(Isolation),
  globals: Schema.Array(Schema.String),
  limits: Schema.Struct({
    time_ms: maximum.annotate({ description: "Maximum milliseconds" }),
    memory_bytes: maxBytes,
    code_bytes: maxBytes,
    variables: maximum,
    variables_bytes: maxBytes,
    output_bytes: maxBytes,
    body_values: maximum,
    body_depth: maximum,
    headers: maximum,
    headers_bytes: maxBytes,
    header_name_bytes: maxBytes,
    header_value_bytes: maxBytes,
    path_bytes: maxBytes,
    query_bytes: maxBytes,
    query_values: maximum,
    log_lines: maximum,
    log_line_bytes: maxBytes
  })
}).annotate({ identifier: "TransformationCapabilities" })

export interface TransformationCapabilities extends Schema.Schema.Type<typeof TransformationCapabilities> {}
