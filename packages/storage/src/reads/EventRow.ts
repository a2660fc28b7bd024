import type { SqlClient, Statement } from "effect/sql"
import { prefixes, sibling } from "@tidegate/model/Ids"
import type { Event, EventStatus } from "@tidegate/model/Event"
import { eventStatusSql } from "../delivery/EventStatus.ts"
import type { Table } from "./Scan.ts"
import { timeOf } from "./Window.ts"

/** A row of `events` with its status. */
export interface EventRow {
  readonly id: string
  readonly team_id: string
  readonly request_id: string
  readonly connection_id: string
  readonly source_id: string
  readonly destination_id: string
  readonly cli_id: string | null
  readonly event_data_id: string | null
  readonly status: EventStatus
  readonly state: string
  readonly attempts: number
  readonly due_at: Date | null
  readonly response_status: number | null
  readonly error_code: string | null
  readonly failure_message: string | null
  readonly last_attempt_at: Date | null
  readonly successful_at: Date | null
  readonly retry_kind: "single" | "bulk" | null
  readonly retry_parent_event_id: string | null
  readonly retry_operation_id: string | null
  readonly retried_at: Date | null
  readonly resolved_at: Date | null
  readonly resolved_by_event_id: string | null
  readonly ingested_at: Date
  readonly created_at: Date
  readonly updated_at: Date
}

/** The events, joined with the rows that determine their status at `now`. */
export const eventTable = (sql: SqlClient.SqlClient, now: number): Table & { readonly status: Statement.Fragment } => {
  const status = eventStatusSql(sql, new Date(now))
  return {
    name: "events",
    alias: "e",
    columns: sql`e.id, e.team_id, e.request_id, e.connection_id, e.source_id, e.destination_id, e.cli_id, e.event_data_id,
      e.state, e.attempts, e.due_at, e.response_status, e.error_code, e.failure_message, e.last_attempt_at,
      e.successful_at, e.retry_kind, e.retry_parent_event_id, e.retry_operation_id, e.retried_at, e.resolved_at, e.resolved_by_event_id,
      e.ingested_at, e.created_at, e.updated_at, ${status} as status`,
    joins: "left join connections c on c.id = e.connection_id left join destinations d on d.id = e.destination_id",
    status
  }
}

const iso = (at: Date | null): string | null => at?.toISOString() ?? null

export const toEvent = (row: EventRow, shown: Pick<Event, "data"> = {}): Event => {
  // A cancelled event has that status even before its row is updated.
  const overdueCancel = row.status === "CANCELLED" && row.state === "PENDING"
  return {
    id: row.id,
    team_id: row.team_id,
    request_id: row.request_id,
    connection_id: row.connection_id,
    webhook_id: row.connection_id,
    source_id: row.source_id,
    destination_id: row.destination_id,
    cli_id: row.cli_id,
    event_data_id: row.event_data_id ?? sibling(prefixes.eventData, row.request_id),
    status: row.status,
    rejection_cause: null,
    failure_message: row.failure_message,
    ignored_reason: null,
    attempts: row.attempts,
    response_status: row.response_status,
    error_code: overdueCancel ? "CANCELLED" : row.error_code,
    last_attempt_at: iso(row.last_attempt_at),
    next_attempt_at: row.status === "SCHEDULED" ? iso(row.due_at) : null,
    successful_at: iso(row.successful_at),
    is_retry: row.retry_kind !== null,
    retry_kind: row.retry_kind,
    retry_parent_event_id: row.retry_parent_event_id,
    retry_operation_id: row.retry_operation_id,
    retried_at: iso(row.retried_at),
    resolved_at: iso(row.resolved_at),
    resolved_by_event_id: row.resolved_by_event_id,
    ingested_at: row.ingested_at.toISOString(),
    created_at: timeOf(row),
    stored_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    ...shown
  }
}
