import { Schema } from "effect"
import { RequestData } from "./Request.ts"
import { Timestamp } from "./Timestamp.ts"
import { Runtime } from "./Transformation.ts"

/** The highest level in an execution's log; `fatal`: the code threw or was stopped. `error` and `fatal` count as failed. */
export const LogLevel = Schema.Literals(["debug", "info", "warn", "error", "fatal"])
export type LogLevel = typeof LogLevel.Type

/** What the code wrote to its console. */
export const LogLine = Schema.Struct({
  type: Schema.Literals(["debug", "log", "info", "warn", "error"]),
  message: Schema.String
})

/** `duration_ms` is the time in the code itself, with parts of a millisecond. */
export const ExecutionStats = Schema.Struct({
  duration_ms: Schema.Finite.annotate({ description: "Milliseconds that the call took" }),
  memory_bytes: Schema.Finite.annotate({ description: "Bytes of memory that the call used" })
})

const fields = {
  id: Schema.String,
  team_id: Schema.String,
  event_id: Schema.NullOr(Schema.String),
  webhook_id: Schema.String,
  connection_id: Schema.String,
  source_id: Schema.String,
  request_id: Schema.String,
  transformation_id: Schema.String,
  original_event_data_id: Schema.String,
  transformed_event_data_id: Schema.NullOr(Schema.String),
  runtime: Runtime,
  code_hash: Schema.String,
  error_code: Schema.NullOr(Schema.String),
  error_message: Schema.NullOr(Schema.String),
  stats: ExecutionStats,
  log_level: LogLevel,
  logs: Schema.Array(LogLine),
  logs_truncated: Schema.Boolean,
  created_at: Timestamp,
  updated_at: Timestamp
}

/**
 * One run of a transformation for one request on one connection, as the API shows it; `webhook_id` repeats `connection_id`.
 * `event_id` is null when there is no event. `transformed_event_data_id` is null when the code failed, and the original's id when
 * it changed nothing. `error_code` is one of SYNTAX_ERROR, RUNTIME_ERROR, TIMEOUT, MEMORY_LIMIT, OUTPUT_TOO_LARGE,
 * INVALID_OUTPUT, NO_HANDLER, ASYNC_NOT_SUPPORTED. Lists and traces show the first lines of a long log (`logs_truncated`); the
 * detail has all of it.
 */
export const Execution = Schema.Struct(fields).annotate({ identifier: "Execution" })

export interface Execution extends Schema.Schema.Type<typeof Execution> {}

/** An execution with the input and the result of the code; null when retention has removed it, or the code failed. */
export const ExecutionDetail = Schema.Struct({
  ...fields,
  original_event_data: Schema.NullOr(RequestData),
  transformed_event_data: Schema.NullOr(RequestData)
}).annotate({ identifier: "ExecutionDetail" })

export interface ExecutionDetail extends Schema.Schema.Type<typeof ExecutionDetail> {}
