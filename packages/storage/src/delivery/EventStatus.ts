import type { Statement } from "effect/sql"
import type { SqlClient } from "effect/sql"
import type { EventStatus } from "@tidegate/model/Event"

/** The columns of an event that determine its status. */
export interface EventState {
  readonly state: "PENDING" | "SUCCESSFUL" | "FAILED" | "CANCELLED"
  readonly created_at: Date
  readonly due_at: Date | null
}

/** The columns of a connection or destination that determine the status of pending events. */
export interface Gate {
  readonly disabled_at: Date | null
  readonly deleted_at: Date | null
  readonly cancel_before: Date | null
}

const cancels = (gate: Gate, event: EventState): boolean =>
  gate.disabled_at !== null ||
  gate.deleted_at !== null ||
  (gate.cancel_before !== null && event.created_at <= gate.cancel_before)

/**
 * The status of an event. A final status is in its row. The status of a pending event follows from its connection, its
 * destination and the time, so pausing or disabling a connection with a million waiting events writes one row.
 */
export const eventStatus = (
  event: EventState,
  connection: Gate & { readonly paused_at: Date | null },
  destination: Gate,
  now: Date
): EventStatus => {
  if (event.state !== "PENDING") return event.state
  if (cancels(connection, event) || cancels(destination, event)) return "CANCELLED"
  if (connection.paused_at !== null) return "HOLD"
  return event.due_at !== null && event.due_at > now ? "SCHEDULED" : "QUEUED"
}

/** Whether a pending event is CANCELLED; `e`, `c`, `d` are rows of events, connections and destinations. */
export const isCancelled = (sql: SqlClient.SqlClient): Statement.Fragment =>
  sql.literal(`(c.disabled_at is not null or c.deleted_at is not null or coalesce(e.created_at <= c.cancel_before, false)
    or d.disabled_at is not null or d.deleted_at is not null or coalesce(e.created_at <= d.cancel_before, false))`)

/** `eventStatus` as an SQL expression over the same rows. A test keeps both equal. */
export const eventStatusSql = (sql: SqlClient.SqlClient, now: Date): Statement.Fragment =>
  sql`case
    when e.state <> 'PENDING' then e.state
    when ${isCancelled(sql)} then 'CANCELLED'
    when c.paused_at is not null then 'HOLD'
    when e.due_at > ${now} then 'SCHEDULED'
    else 'QUEUED' end`
