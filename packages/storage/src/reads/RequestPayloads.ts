import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { RequestData } from "@tidegate/model/Request"
import * as Columns from "../journal/Columns.ts"
import { payloadColumns, type PayloadRow, payloadsOf } from "./RequestRow.ts"

/** The input of a run that no request began, in the form of a request. Undefined: it is gone. */
export const inputPayload = Effect.fnUntraced(function* (
  team: string,
  runId: string,
  largest: number
): Effect.fn.Return<RequestData | undefined, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<PayloadRow>`
    select ${sql.literal(payloadColumns(largest))} from (
      select run_id as id, method, path, query, headers, body, body_size, null::text as rejection_cause
      from workflow_inputs where run_id = ${runId} and team_id = ${team}
    ) r`.unprepared
  return (yield* payloadsOf(rows)).get(runId)
})

/** The received payloads by request id. A request whose payload is gone has none. Larger bodies are not read. */
export const requestPayloads = Effect.fnUntraced(function* (
  team: string,
  ids: ReadonlyArray<string>,
  largest: number
): Effect.fn.Return<ReadonlyMap<string, RequestData>, SqlError.SqlError, SqlClient.SqlClient> {
  if (ids.length === 0) return new Map()
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<PayloadRow>`
    select ${sql.literal(payloadColumns(largest))} from requests r
    where r.id = any(${Columns.text(ids)}) and r.team_id = ${team}`.unprepared
  return yield* payloadsOf(rows)
})
