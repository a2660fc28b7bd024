import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { Execution, ExecutionDetail, LogLevel } from "@tidegate/model/Execution"
import { type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import * as Columns from "../journal/Columns.ts"
import { type ExecutionRow, executionTable, originalOf, toExecution, transformedOf } from "./ExecutionRow.ts"
import { cut, listedBytes } from "./PageSize.ts"
import { envelope, resolvePage, type WindowedPage } from "./Paging.ts"
import { timeRange } from "./Relations.ts"
import { anyBody, listedBody, repeatedly } from "./RequestRow.ts"
import { requestPayloads } from "./RequestPayloads.ts"
import { scan, toPage } from "./Scan.ts"
import { transformedPayloads } from "./TransformedPayloads.ts"
import { idRange } from "./Window.ts"

/** The filter of a list of executions. Empty lists do not filter. */
export interface ExecutionFilter {
  readonly logLevels: ReadonlyArray<LogLevel>
}

const checkTransformation = Effect.fnUntraced(function* (team: string, id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql`
    select 1 from transformations where id = ${id} and team_id = ${team} and deleted_at is null`
  if (row === undefined) yield* notFound("transformation", id)
})

/** A page of a transformation's executions, newest first; without a window, of all. */
export const list = Effect.fnUntraced(function* (
  team: string,
  transformationId: string,
  filter: ExecutionFilter,
  request: WindowedPage
) {
  const sql = yield* SqlClient.SqlClient
  const at = yield* Effect.fromResult(resolvePage(request, yield* Clock.currentTimeMillis, Number.POSITIVE_INFINITY))
  yield* checkTransformation(team, transformationId)
  const range = idRange(prefixes.execution, at.window)
  const part = yield* scan<ExecutionRow>({
    team,
    table: executionTable(sql, "list"),
    drive: { column: "transformation_id", values: [transformationId] },
    bounds: [sql`x.id >= ${range.lower}`, sql`x.id < ${at.position?.id ?? range.upper}`],
    residual: filter.logLevels.length === 0 ? [] : [sql`x.log_level = any(${Columns.text(filter.logLevels)})`],
    dir: "desc",
    limit: request.limit
  })
  const page = toPage([part], "desc", request.limit)
  return envelope<ExecutionRow, Execution>(request, at, page, page.rows.map(toExecution))
})

/** Rows with the input and the result of the code; bodies larger than `largest` bytes are left out. */
const show = Effect.fnUntraced(function* (
  team: string,
  rows: ReadonlyArray<ExecutionRow>,
  largest: number
): Effect.fn.Return<ReadonlyArray<ExecutionDetail>, SqlError.SqlError, SqlClient.SqlClient> {
  const originals = yield* requestPayloads(team, [...new Set(rows.map((row) => row.request_id))], largest)
  const transformed = yield* transformedPayloads(
    team,
    rows.flatMap(({ event_data_id }) => (event_data_id === null ? [] : [event_data_id])),
    largest
  )
  const repeat = repeatedly()
  return rows.map((row) => {
    const received = originals.get(row.request_id)
    const original = received === undefined ? null : repeat(received)
    const made = transformedOf(row)
    return Object.assign(toExecution(row), {
      original_event_data: original,
      transformed_event_data:
        made === null ? null : made === originalOf(row) ? original : (transformed.get(made) ?? null)
    })
  })
})

/** One execution of a transformation with its complete data. Its id determines its day's partition. */
export const get = Effect.fnUntraced(function* (
  team: string,
  transformationId: string,
  id: string
): Effect.fn.Return<ExecutionDetail, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  yield* checkTransformation(team, transformationId)
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<ExecutionRow>`
    select ${executionTable(sql, "detail").columns} from executions x
    where x.id = ${id} and x.transformation_id = ${transformationId} and x.team_id = ${team}`
  const [execution] = yield* show(team, rows, anyBody)
  return execution ?? (yield* notFound("execution", id))
})

/**
 * The executions of one request, oldest first, with bodies as lists show them, up to the size of an answer; `isCut`: there may be
 * more.
 */
export const ofRequest = Effect.fnUntraced(function* (
  team: string,
  requestId: string,
  limit: number
): Effect.fn.Return<
  { readonly executions: ReadonlyArray<ExecutionDetail>; readonly isCut: boolean },
  SqlError.SqlError,
  SqlClient.SqlClient
> {
  const range = timeRange(prefixes.execution, requestId)
  if (range === null) return { executions: [], isCut: false }
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<ExecutionRow & { readonly received: number; readonly made: number }>`
    select ${executionTable(sql, "list").columns},
      coalesce((select r.body_size from requests r where r.id = x.request_id and r.team_id = ${team}), 0) as received,
      coalesce((select d.body_size from event_data d where d.id = x.event_data_id and d.team_id = ${team}), 0) as made
    from executions x
    where x.id >= ${range.lower} and x.id < ${range.upper} and x.request_id = ${requestId} and x.team_id = ${team}
    ${sql.literal(`order by x.id limit ${limit}`)}`.unprepared
  const page = cut(
    { rows, next: rows.length === limit ? "" : null },
    ({ logs, made, received }) => listedBytes(received) + listedBytes(made) + logs.length
  )
  return { executions: yield* show(team, page.rows, listedBody), isCut: page.next !== null }
})
