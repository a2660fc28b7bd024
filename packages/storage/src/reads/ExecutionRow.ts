import { Option, Schema } from "effect"
import type { SqlClient } from "effect/sql"
import { type Execution, LogLine, type LogLevel } from "@tidegate/model/Execution"
import { prefixes, sibling } from "@tidegate/model/Ids"
import { runtime } from "@tidegate/model/Transformation"
import type { Table } from "./Scan.ts"
import { timeOf } from "./Window.ts"

/** A row of `executions`. */
export interface ExecutionRow {
  readonly id: string
  readonly team_id: string
  readonly transformation_id: string
  readonly request_id: string
  readonly connection_id: string
  readonly source_id: string
  readonly event_id: string | null
  readonly event_data_id: string | null
  readonly code_hash: string
  readonly error_code: string | null
  readonly error_message: string | null
  readonly log_level: LogLevel
  /** JSON. */
  readonly logs: string
  /** Whether these are the first lines only. */
  readonly logs_cut: boolean
  /** Microseconds. */
  readonly duration: number
  readonly memory_bytes: number
  readonly created_at: Date
}

/** A log has up to 100 lines of 4 KiB. A list shows it up to this many bytes; of a longer one, this many lines. */
const listedLog = { bytes: 16 * 1024, lines: 4 }

const wholeLog = "x.logs, false as logs_cut"
const firstLines = `case when octet_length(x.logs) <= ${listedLog.bytes} then x.logs else (
    select json_agg(line.value order by line.n)::text from json_array_elements(x.logs::json) with ordinality line (value, n)
    where line.n <= ${listedLog.lines}) end as logs, octet_length(x.logs) > ${listedLog.bytes} as logs_cut`

/** Executions for a list or a detail. */
export const executionTable = (sql: SqlClient.SqlClient, use: "list" | "detail"): Table => ({
  name: "executions",
  alias: "x",
  columns: sql`x.id, x.team_id, x.transformation_id, x.request_id, x.connection_id, x.source_id, x.event_id,
    x.event_data_id, x.code_hash, x.error_code, x.error_message, x.log_level, ${sql.literal(use === "list" ? firstLines : wholeLog)}, x.duration,
    x.memory_bytes::float8 as memory_bytes, x.created_at`,
  joins: ""
})

const decodeLogs = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Array(LogLine)))

/** The id of the stored input of a row's code. */
export const originalOf = (row: ExecutionRow): string => sibling(prefixes.eventData, row.request_id)

/** The id of its stored result: the input's when nothing was changed, null when it failed. */
export const transformedOf = (row: ExecutionRow): string | null =>
  row.event_data_id ?? (row.error_code === null ? originalOf(row) : null)

export const toExecution = (row: ExecutionRow): Execution => ({
  id: row.id,
  team_id: row.team_id,
  event_id: row.event_id,
  webhook_id: row.connection_id,
  connection_id: row.connection_id,
  source_id: row.source_id,
  request_id: row.request_id,
  transformation_id: row.transformation_id,
  original_event_data_id: originalOf(row),
  transformed_event_data_id: transformedOf(row),
  runtime,
  code_hash: row.code_hash,
  error_code: row.error_code,
  error_message: row.error_message,
  stats: { duration_ms: row.duration / 1000, memory_bytes: row.memory_bytes },
  log_level: row.log_level,
  logs: Option.getOrElse(decodeLogs(row.logs), () => []),
  logs_truncated: row.logs_cut,
  created_at: timeOf(row),
  // Rows never change.
  updated_at: row.created_at.toISOString()
})
