import type { PgTypes } from "@effect/sql-pg"
import { idTime } from "@tidegate/model/Ids"
import * as Columns from "./Columns.ts"
import { writeCounts } from "./CountStatement.ts"
import { writeFailedAttempts } from "./OccurrenceStatement.ts"
import { type Given, Rows, texts } from "./Rows.ts"

/** A finished attempt, and the new state of its event. Times are Unix milliseconds. */
export interface AttemptRecord {
  readonly id: string
  readonly teamId: string
  readonly eventId: string
  readonly requestId: string
  readonly connectionId: string
  readonly sourceId: string
  readonly destinationId: string
  readonly attemptNumber: number
  readonly trigger: string
  readonly successful: boolean
  readonly responseStatus: number | null
  readonly errorCode: string | null
  readonly failureMessage: string | null
  readonly body: Uint8Array | null
  /** JSON object, or null when there was no response. */
  readonly responseHeaders: string | null
  readonly requestedUrl: string
  readonly httpMethod: string
  readonly bulkRetryId: string | null
  /** The session of the tunnel that it went through; null: none. */
  readonly cliId: string | null
  /** When the request was sent, and when its response was complete. */
  readonly deliveredAt: number
  readonly respondedAt: number | null
  readonly deliveryLatency: number
  readonly finishedAt: number
  /** For a retry: the first event that it repeats. */
  readonly rootEventId: string | null
  /** When the event was created. */
  readonly eventCreatedAt: number
  /** The time of the next attempt; null: this was the last one. */
  readonly retryAt: number | null
  /** Its event follows from a system event, so its failure is not reported. */
  readonly silent?: boolean
}

/**
 * The result of an attempt: the event's state after it, or `superseded` when the event has progressed without it (another runner
 * has recorded this attempt number, or the event is gone).
 */
export type Recorded = "PENDING" | "SUCCESSFUL" | "FAILED" | "CANCELLED" | "superseded"

const minute = (at: number): number => at - (at % 60_000)

/** The rows of a batch. The statement joins them with their events as `e`. */
const attempts = new Rows<AttemptRecord>(
  "i",
  [
    ["id", "text", ({ id }) => id],
    "team_id",
    ["event_id", "text", ({ eventId }) => eventId],
    "request_id",
    "connection_id",
    "source_id",
    "destination_id",
    ["n", "int4", ({ attemptNumber }) => attemptNumber, ["attempt_number"]],
    ["trigger", "text", ({ trigger }) => trigger],
    ["successful", "bool", ({ successful }) => successful, []],
    { status: "case when successful then 'SUCCESSFUL' else 'FAILED' end" },
    ["status", "int4", ({ responseStatus }) => responseStatus, ["response_status"]],
    ["error_code", "text", ({ errorCode }) => errorCode],
    ["failure_message", "text", ({ failureMessage }) => failureMessage, []],
    ["body", "bytea", ({ body }) => body],
    ["response_headers", "text", ({ responseHeaders }) => responseHeaders],
    ["requested_url", "text", ({ requestedUrl }) => requestedUrl],
    ["http_method", "text", ({ httpMethod }) => httpMethod],
    ["bulk_retry_id", "text", ({ bulkRetryId }) => bulkRetryId],
    { successful_at: "case when successful then finished_at end" },
    ["delivered_at", "timestamptz", ({ deliveredAt }) => deliveredAt],
    ["responded_at", "timestamptz", ({ respondedAt }) => respondedAt],
    ["delivery_latency", "int4", ({ deliveryLatency }) => deliveryLatency],
    { response_latency: "(date_part('epoch', responded_at - delivered_at) * 1000)::int4" },
    ["finished_at", "timestamptz", ({ finishedAt }) => finishedAt, ["created_at"]],
    // Where lists find the event: by its id.
    ["event_minute", "timestamptz", ({ eventCreatedAt, eventId }) => minute(idTime(eventId) ?? eventCreatedAt), []],
    ["retry_at", "timestamptz", ({ retryAt }) => retryAt, []],
    ["cli_id", "text", ({ cliId }) => cliId, []]
  ],
  // Most batches are of first attempts that succeed.
  ["http_method", "trigger", "bulk_retry_id", "successful", "error_code", "failure_message", "retry_at", "cli_id"]
)

/** Columns that the attempt takes from its event. */
const ofEvent = ["team_id", "request_id", "connection_id", "source_id", "destination_id", "state", "cancelled_at"]
  .map((column) => `events.${column}`)
  .join(", ")

/** The form of a batch, whether some attempts have failed or are retried, and whether some retries have succeeded. */
interface Shape {
  readonly given: Given
  readonly fails: boolean
  readonly resolves: boolean
  readonly retries: boolean
}

/**
 * Resolves the events before successful retries: the first event, which failed or was cancelled, and failed retries in between.
 * All have the same payload, and the target now has it. `first`: the number of the first parameter: the ids of the first
 * events, the smallest and the largest.
 */
const resolve = (first: number): string => `successes as materialized (
  select event_id, request_id, root_event_id, finished_at from e where successful and root_event_id is not null
), resolved as (
  update events set resolved_at = s.finished_at, resolved_by_event_id = s.event_id, updated_at = s.finished_at
  from successes s
  where events.id = any($${first}::text[]) and events.id >= $${first + 1} and events.id <= $${first + 2} and events.id = s.root_event_id
    and events.state <> 'SUCCESSFUL' and events.resolved_at is null and events.id <> all(array(select event_id from e))
), resolved_between as (
  update events set resolved_at = s.finished_at, resolved_by_event_id = s.event_id, updated_at = s.finished_at
  from successes s
  where events.request_id = any(array(select request_id from successes)) and events.retry_parent_event_id is not null
    and events.id >= $${first + 1} and events.request_id = s.request_id and events.root_event_id = s.root_event_id
    and events.failed and events.resolved_at is null and events.id <> all(array(select event_id from e))
), `

/**
 * One statement, so one transaction: the attempts, the new states of their events, the queue rows and the counts. The attempt
 * number is the fence: only the attempt after the last recorded one is accepted, so a repeated or outdated write changes
 * nothing. An event that was cancelled during its delivery keeps the attempt: after a success it is SUCCESSFUL, because the
 * target has it; after a failure it stays CANCELLED.
 */
const statementFor = texts(({ fails, given, resolves, retries }: Shape): string => {
  const { width } = attempts
  const next = width + (given.single ? 1 : 3)
  return `
with e as (
  update events set
    state = case when i.successful then 'SUCCESSFUL' when events.state = 'CANCELLED' then 'CANCELLED'
      when i.retry_at is null then 'FAILED' else 'PENDING' end,
    failed = not i.successful and (i.retry_at is null or events.state = 'CANCELLED'),
    attempts = i.n,
    due_at = case when events.state = 'CANCELLED' then null else i.retry_at end,
    response_status = i.status,
    error_code = case when i.successful then null when events.state = 'CANCELLED' then events.error_code else i.error_code end,
    failure_message = case when i.successful then null else i.failure_message end,
    first_attempt_at = coalesce(events.first_attempt_at, i.delivered_at),
    last_attempt_at = i.delivered_at,
    successful_at = case when i.successful then i.finished_at end,
    cli_id = coalesce(i.cli_id, events.cli_id),
    updated_at = i.finished_at
  from ${attempts.from(1, given)}
  where ${given.single ? "" : `events.id = any($2::text[]) and events.id >= $${width + 1} and events.id <= $${width + 2} and `}
    events.id = i.event_id and events.attempts = i.n - 1
    and events.state in ('PENDING', 'CANCELLED')
  returning i.*, ${ofEvent}${resolves ? ", events.root_event_id" : ""}
), a as (
  ${attempts.insertInto("attempts", "e")}
), finished as (
  delete from deliveries where event_id = any(array(select event_id from e where state <> 'PENDING'))
), ${
    retries
      ? `waiting as (
  update deliveries set due_at = e.retry_at, started_at = e.delivered_at, ready_at = null,
    place = case when place is null then null
      when (select ordering ->> 'on_failure' from connections where connections.id = e.connection_id) = 'skip' then null
      else place end
  from e where deliveries.event_id = any(array(select event_id from e where state = 'PENDING'))
    and deliveries.event_id = e.event_id
), `
      : ""
  }${resolves ? resolve(next) : ""}${
    fails ? `failing as (\n  ${writeFailedAttempts(`$${next + (resolves ? 3 : 0)}::text[]`)}\n), ` : ""
  }counted as (
  select destination_id as key_id, null::text as source_id, null::text as destination_id,
    case when successful then 'attempt_successful' else 'attempt_failed' end as measure,
    date_trunc('minute', finished_at) as minute, team_id, 1 as n from e
  union all
  select connection_id, source_id, destination_id, case state when 'SUCCESSFUL' then 'successful' else 'failed' end, event_minute,
    team_id, 1
  from e where state in ('SUCCESSFUL', 'FAILED')
  union all
  select connection_id, source_id, destination_id, 'cancelled', event_minute, team_id, -1
  from e where state = 'SUCCESSFUL' and cancelled_at is not null
), written as (
  ${writeCounts(
    `(select key_id, source_id, destination_id, measure, minute, team_id, sum(n) as n from counted group by 1, 2, 3, 4, 5, 6) as c`
  )}
)
select event_id, state from e`
})

/** The commit of a batch: the statement in the smallest sufficient shape, and its parameters. */
export const attemptCommit = (
  items: ReadonlyArray<AttemptRecord>
): { readonly statement: string; readonly parameters: ReadonlyArray<PgTypes.Parameter | string> } => {
  const { given, parameters } = attempts.bind(items)
  const roots = items.flatMap(({ rootEventId, successful }) =>
    successful && rootEventId !== null ? [rootEventId] : []
  )
  const retries = items.some((item) => item.retryAt !== null)
  const resolves = roots.length > 0
  const failed = items.flatMap(({ eventId, silent, successful }) => (successful || silent === true ? [] : [eventId]))
  const fails = failed.length > 0
  const name = `${given.single} ${given.uniform} ${resolves} ${retries} ${fails}`
  return {
    statement: statementFor(name, { given, fails, resolves, retries }),
    parameters: [
      ...parameters,
      ...(given.single ? [] : Columns.bounds(items.map(({ eventId }) => eventId))),
      ...(resolves ? [Columns.text(roots), ...Columns.bounds(roots)] : []),
      ...(fails ? [Columns.text(failed)] : [])
    ]
  }
}
