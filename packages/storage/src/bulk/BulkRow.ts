import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import {
  type BulkFilter,
  type BulkOf,
  type BulkOperation,
  type BulkStatus,
  kindsOf
} from "@tidegate/model/BulkOperation"
import { notFound } from "@tidegate/model/GatewayError"
import * as Columns from "../journal/Columns.ts"

/** How long a finished operation can be looked up. */
const keptMs = 30 * 86_400_000

/** A row of `bulk_operations`. */
export interface Row extends Omit<
  BulkOperation,
  "filter" | "done_count" | "cancelable" | "created_at" | "planned_at" | "started_at" | "finished_at"
> {
  readonly filter: BulkFilter
  readonly plan_cursor: string | null
  readonly created_at: Date
  readonly planned_at: Date | null
  readonly started_at: Date | null
  readonly finished_at: Date | null
}

export const recordOf = (row: Row): BulkOperation => ({
  id: row.id,
  team_id: row.team_id,
  type: row.type,
  status: row.status,
  filter: row.filter,
  rate: row.rate,
  confirmed: row.confirmed,
  requested_by: row.requested_by,
  total_count: row.total_count,
  queued_count: row.queued_count,
  done_count: row.queued_count,
  failed_count: row.failed_count,
  sample: row.sample,
  error: row.error,
  cancelable: row.finished_at === null,
  created_at: row.created_at.toISOString(),
  // The previous version has not stored it.
  planned_at: (row.planned_at ?? row.started_at)?.toISOString() ?? null,
  started_at: row.started_at?.toISOString() ?? null,
  finished_at: row.finished_at?.toISOString() ?? null
})

/** Identifies an operation: its team and its kind of records. */
export interface Which {
  readonly team_id: string
  readonly of: BulkOf
  readonly id: string
}

/** Its row; `lock`: until the transaction ends. */
export const find = Effect.fnUntraced(function* ({ id, of, team_id }: Which, locking: "lock" | "look") {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Row>`
    select * from bulk_operations where id = ${id} and team_id = ${team_id} and type = any(${Columns.text(kindsOf[of])})
    ${sql.literal(locking === "lock" ? "for update" : "")}`
  return row ?? (yield* notFound("bulk operation", id))
})

/** Ends an operation. */
export const finish = Effect.fnUntraced(function* (
  id: string,
  status: BulkStatus,
  error: BulkOperation["error"] = null
) {
  const sql = yield* SqlClient.SqlClient
  const now = yield* Clock.currentTimeMillis
  yield* sql`
    update bulk_operations set status = ${status}, finished_at = ${new Date(now)}, expires_at = ${new Date(now + keptMs)},
      error = ${error === null ? null : JSON.stringify(error)}::text::jsonb
    where id = ${id}`
})

/** The operation starts, or completes at once when it has no targets. Returns whether it has completed. */
export const begin = Effect.fnUntraced(function* (id: string, total: number) {
  const sql = yield* SqlClient.SqlClient
  const now = new Date(yield* Clock.currentTimeMillis)
  yield* sql`update bulk_operations set status = 'RUNNING', started_at = ${now}, expires_at = null where id = ${id}`
  if (total === 0) yield* finish(id, "COMPLETED")
  return total === 0
})
