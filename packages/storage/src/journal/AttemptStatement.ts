import type { PgTypes } from "@effect/sql-pg"
import { idTime } from "@tidegate/model/Ids"
import * as Columns from "./Columns.ts"
import { writeCounts } from "./CountStatement.ts"

/** A finished attempt, and what it makes of its event. Times are Unix milliseconds. */
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
  /** The tunnel's session that it went through; null: through none. */
  readonly cliId: string | null
  /** When the request had been prepared and was sent, and when its response was complete. */
  readonly deliveredAt: number
  readonly respondedAt: number | null
  readonly deliveryLatency: number
  readonly finishedAt: number
  /** When the event was created. */
  readonly eventCreatedAt: number
  /** The next attempt's time, or null when this was the last. */
  readonly retryAt: number | null
}

const types = [
  "text", // id
  "text", // event_id
  "int4", // attempt_number
  "int4", // response_status
  "bytea", // body
  "text", // response_headers
  "text", // requested_url
  "timestamptz", // delivered_at
  "timestamptz", // responded_at
  "int4", // delivery_latency
  "timestamptz", // finished_at
  "timestamptz", // event_minute
  "text", // http_method
  "text", // trigger
  "text", // bulk_retry_id
  "bool", // successful
  "text", // error_code
  "text", // failure_message
  "timestamptz", // retry_at
  "text" // cli_id
] as const

const columns = `id, event_id, n, status, body, response_headers, requested_url, delivered_at, responded_at, delivery_latency,
  finished_at, event_minute, http_method, trigger, bulk_retry_id, successful, error_code, failure_message, retry_at, cli_id`

/** So many of these columns, the last ones, say the same of most attempts: the first one, and it succeeded. */
const mostlyUniform = 8

/** Whose the attempt is stands in its event, which the statement has at hand. */
const ofEvent = ["team_id", "request_id", "connection_id", "source_id", "destination_id", "state", "cancelled_at"]
  .map((column) => `events.${column}`)
  .join(", ")

/** Whether a batch is of one attempt, some of it is retried, and its last columns are uniform. */
interface Shape {
  readonly single: boolean
  readonly retries: boolean
  readonly uniform: boolean
}

const uniformIn = ({ uniform }: Shape): number => (uniform ? mostlyUniform : 0)

/**
 * One statement, hence one transaction: the attempts, their events' new state, the queue rows, and the counts. The
 * attempt number is the fence: only the attempt that follows the last recorded one is taken, so a repeated or
 * overtaken writer changes nothing. An event cancelled while its delivery was on the wire keeps the attempt; a success
 * is a success (the target has it), a failure leaves it CANCELLED.
 */
const buildStatement = (shape: Shape): string => {
  const { retries, single } = shape
  const rows = `${Columns.rowsFrom(types, 1, single, uniformIn(shape))} as i (${columns})`
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
  from ${rows}
  where ${single ? "" : `events.id = any($2::text[]) and events.id >= $${types.length + 1} and events.id <= $${types.length + 2} and `}
    events.id = i.event_id and events.attempts = i.n - 1
    and events.state in ('PENDING', 'CANCELLED')
  returning i.*, ${ofEvent}
), a as (
  insert into attempts (id, team_id, event_id, request_id, connection_id, source_id, destination_id, attempt_number, trigger,
    status, response_status, error_code, body, response_headers, requested_url, http_method, bulk_retry_id, successful_at,
    delivered_at, responded_at, delivery_latency, response_latency, created_at)
  select id, team_id, event_id, request_id, connection_id, source_id, destination_id, n, trigger,
    case when successful then 'SUCCESSFUL' else 'FAILED' end, status, error_code, body, response_headers, requested_url,
    http_method, bulk_retry_id, case when successful then finished_at end, delivered_at, responded_at, delivery_latency,
    (date_part('epoch', responded_at - delivered_at) * 1000)::int4, finished_at
  from e
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
}

const statements = new Map<string, string>()

/** Each shape of the statement is built once. */
const statementFor = (shape: Shape): string => {
  const name = `${shape.single} ${shape.retries} ${shape.uniform}`
  let statement = statements.get(name)
  if (statement === undefined) {
    statement = buildStatement(shape)
    statements.set(name, statement)
  }
  return statement
}

const minute = (at: number): number => at - (at % 60_000)

/** The commit of a batch: the statement, in the shape that is enough for it, and its parameters. */
export const attemptCommit = (
  items: ReadonlyArray<AttemptRecord>
): { readonly statement: string; readonly parameters: ReadonlyArray<PgTypes.Parameter | string> } => {
  const table: Array<Array<unknown>> = types.map(() => [])
  for (const item of items) {
    const row = [
      item.id,
      item.eventId,
      item.attemptNumber,
      item.responseStatus,
      item.body,
      item.responseHeaders,
      item.requestedUrl,
      item.deliveredAt,
      item.respondedAt,
      item.deliveryLatency,
      item.finishedAt,
      // Where lists find the event: by its id.
      minute(idTime(item.eventId) ?? item.eventCreatedAt),
      item.httpMethod,
      item.trigger,
      item.bulkRetryId,
      item.successful,
      item.errorCode,
      item.failureMessage,
      item.retryAt,
      item.cliId
    ]
    for (let c = 0; c < row.length; c++) table[c]!.push(row[c])
  }
  const single = items.length === 1
  const shape = {
    single,
    retries: items.some((item) => item.retryAt !== null),
    uniform: !single && Columns.areUniform(table, mostlyUniform)
  }
  return {
    statement: statementFor(shape),
    parameters: [
      ...Columns.bind(types, table, single, uniformIn(shape)),
      ...(single ? [] : Columns.bounds(items.map(({ eventId }) => eventId)))
    ]
  }
}
