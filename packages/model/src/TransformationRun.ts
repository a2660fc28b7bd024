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

const most = Schema.Int
const mostBytes = most.annotate({ description: "Bytes at the most" })

/** What code may use, and its limits. Bytes are of UTF-8. */
export const TransformationCapabilities = Schema.Struct({
  runtime: Runtime,
  runtimes: Schema.Array(Runtime),
  handlers: Schema.Array(Schema.Literal("transform")),
  isolations: Schema.Array(Isolation),
  globals: Schema.Array(Schema.String),
  limits: Schema.Struct({
    time_ms: most.annotate({ description: "Milliseconds at the most" }),
    memory_bytes: mostBytes,
    code_bytes: mostBytes,
    variables: most,
    variables_bytes: mostBytes,
    output_bytes: mostBytes,
    body_values: most,
    body_depth: most,
    headers: most,
    headers_bytes: mostBytes,
    header_name_bytes: mostBytes,
    header_value_bytes: mostBytes,
    path_bytes: mostBytes,
    query_bytes: mostBytes,
    query_values: most,
    log_lines: most,
    log_line_bytes: mostBytes
  })
}).annotate({ identifier: "TransformationCapabilities" })

export interface TransformationCapabilities extends Schema.Schema.Type<typeof TransformationCapabilities> {}
