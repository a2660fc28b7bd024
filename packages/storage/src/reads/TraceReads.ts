import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import type { IgnoredEvent } from "@tidegate/model/IgnoredEvent"
import type { Request } from "@tidegate/model/Request"
import {
  type NoEventReason,
  type SkippedConnection,
  type TimelineItem,
  timelineKinds,
  type Trace
} from "@tidegate/model/Trace"
import type { WorkflowRun } from "@tidegate/model/WorkflowRun"
import * as AttemptReads from "./AttemptReads.ts"
import * as EventReads from "./EventReads.ts"
import * as ExecutionReads from "./ExecutionReads.ts"
import * as IgnoredEventReads from "./IgnoredEventReads.ts"
import * as RequestReads from "./RequestReads.ts"
import * as RunReads from "./RunReads.ts"

/** The largest number of records of each kind in a trace; attempts and transformations are limited by the size of the answer. */
const showAtMost = 300

/** A connection of the request's source that existed when the request was received. */
interface Candidate {
  readonly id: string
  readonly name: string
  readonly destination_id: string
  readonly disabled_at: Date | null
  readonly destination_disabled_at: Date | null
  readonly destination_deleted_at: Date | null
}

/** The connections that the request could have been routed to; those that are off come first. */
const candidatesOf = Effect.fnUntraced(function* (team: string, request: Request) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<Candidate>`
    select c.id, c.name, c.destination_id, c.disabled_at, d.disabled_at as destination_disabled_at, d.deleted_at as destination_deleted_at
    from connections c join destinations d on d.id = c.destination_id
    where c.source_id = ${request.source_id} and c.team_id = ${team} and c.deleted_at is null
      and c.created_at <= ${new Date(request.created_at)}
    order by c.disabled_at is null, c.id ${sql.literal(`limit ${showAtMost}`)}`.unprepared
})

/** Why a connection did not take a request of that time; null: nothing known now explains it. */
const offSince = (candidate: Candidate, at: string): Pick<SkippedConnection, "cause" | "since"> | null => {
  const causes = [
    ["CONNECTION_DISABLED", candidate.disabled_at],
    ["DESTINATION_DISABLED", candidate.destination_disabled_at],
    ["DESTINATION_DELETED", candidate.destination_deleted_at]
  ] as const
  for (const [cause, since] of causes) {
    if (since !== null && since.toISOString() <= at) return { cause, since: since.toISOString() }
  }
  return null
}

/** Why there is no event, in words for people. */
const noEventReason = (
  request: Request,
  ignored: ReadonlyArray<IgnoredEvent>,
  candidates: ReadonlyArray<Candidate>,
  skipped: ReadonlyArray<SkippedConnection>,
  runs: ReadonlyArray<WorkflowRun>
): NoEventReason => {
  if (request.status === "rejected") {
    const message = `it was rejected (${request.rejection_cause ?? "no cause is known"}), and what is rejected is routed nowhere`
    return { code: "REJECTED", message }
  }
  if (ignored.length > 0) {
    const causes = [...new Set(ignored.map(({ cause }) => cause))].join(", ")
    const others = skipped.length === 0 ? "" : `; ${skipped.length} of the source's connections were off`
    return { code: "IGNORED", message: `each connection that it was routed to ignored it (${causes})${others}` }
  }
  const began = runs.length === 0 ? "" : "; it began runs of workflows"
  if (candidates.length === 0) {
    return { code: "NO_CONNECTION", message: `the source had no connection when it came${began}` }
  }
  return skipped.length === candidates.length
    ? { code: "DISABLED", message: `no connection of the source, with its destination, was on when it came${began}` }
    : { code: "PENDING", message: `its connections have not decided about it yet${began}` }
}

/** A request with everything that followed from it, and a timeline. */
export const get = Effect.fnUntraced(function* (
  team: string,
  id: string
): Effect.fn.Return<Trace, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const request = yield* RequestReads.detail(team, id)
  const anything = { ids: [], statuses: [], sources: [], connections: [], destinations: [] }
  const page = { key: "trace", cursor: undefined, limit: showAtMost }
  const { models: events } = yield* EventReads.ofRequest(team, id, anything, page)
  const { models: ignored_events } = yield* IgnoredEventReads.ofRequest(team, id, anything, page)
  const { attempts, isCut: areAttemptsCut } = yield* AttemptReads.byEvents(
    team,
    events.map((event) => event.id),
    showAtMost
  )
  const { executions: transformations, isCut: areExecutionsCut } = yield* ExecutionReads.ofRequest(team, id, showAtMost)
  const workflow_runs = yield* RunReads.ofRequest(team, id, showAtMost)
  const candidates = request.status === "rejected" ? [] : yield* candidatesOf(team, request)
  const reached = new Set([...events, ...ignored_events].map(({ connection_id }) => connection_id))
  const skipped_connections = candidates.flatMap((candidate): ReadonlyArray<SkippedConnection> => {
    const off = reached.has(candidate.id) ? null : offSince(candidate, request.created_at)
    const { destination_id, id: connection_id, name: connection_name } = candidate
    return off === null ? [] : [{ connection_id, connection_name, destination_id, ...off }]
  })
  const proxy_exchange = request.proxy_exchange ?? null
  return {
    request,
    proxy_exchange,
    events,
    ignored_events,
    attempts,
    attempts_by_event_id: Object.fromEntries(
      events.map((event) => [event.id, attempts.filter((attempt) => attempt.event_id === event.id)])
    ),
    skipped_connections,
    no_event_reason:
      events.length > 0 ? null : noEventReason(request, ignored_events, candidates, skipped_connections, workflow_runs),
    workflow_runs,
    transformations,
    transformations_by_event_id: Object.fromEntries(
      events.map((event) => [event.id, transformations.filter((execution) => execution.event_id === event.id)])
    ),
    timeline: timeline({
      request,
      ignored_events,
      skipped_connections,
      workflow_runs,
      transformations,
      events,
      attempts
    }),
    truncated:
      areAttemptsCut ||
      areExecutionsCut ||
      [events, ignored_events, candidates, workflow_runs].some((found) => found.length === showAtMost),
    counts: {
      events: events.length,
      ignored_events: ignored_events.length,
      attempts: attempts.length,
      skipped_connections: skipped_connections.length,
      workflow_runs: workflow_runs.length,
      transformations: transformations.length,
      proxy_exchanges: proxy_exchange === null ? 0 : 1
    }
  }
})

const rank = new Map<string, number>(timelineKinds.map((kind, index) => [kind, index]))

const timeline = ({
  attempts,
  events,
  ignored_events: ignored,
  request,
  skipped_connections,
  transformations: executions,
  workflow_runs
}: Pick<
  Trace,
  "request" | "ignored_events" | "skipped_connections" | "workflow_runs" | "transformations" | "events" | "attempts"
>): ReadonlyArray<TimelineItem> => {
  const request_id = request.id
  const exchange = request.proxy_exchange ?? null
  const items: Array<Omit<TimelineItem, "id">> = [
    {
      kind: "request",
      label: request.status === "accepted" ? "Request accepted" : "Request rejected",
      at: request.created_at,
      status: request.status,
      request_id
    },
    ...(exchange === null
      ? []
      : [
          {
            kind: "proxy_exchange" as const,
            label: exchange.response_status === null ? "No answer from upstream" : "Answered by upstream",
            at: exchange.started_at,
            status:
              exchange.response_status === null ? (exchange.error_code ?? "FAILED") : `${exchange.response_status}`,
            request_id,
            proxy_exchange_id: exchange.id
          }
        ]),
    ...skipped_connections.map(({ cause, connection_id, destination_id }) => ({
      kind: "skipped_connection" as const,
      label: "Not routed: switched off",
      at: request.created_at,
      status: cause,
      request_id,
      connection_id,
      destination_id
    })),
    ...workflow_runs.map(({ created_at, id, status, workflow_id }) => ({
      kind: "workflow_run" as const,
      label: "Workflow run begun",
      at: created_at,
      status,
      request_id,
      workflow_id,
      workflow_run_id: id
    })),
    // By when they were stored: their `created_at` is the time of the request.
    ...ignored.map(({ cause, connection_id, id, updated_at }) => ({
      kind: "ignored_event" as const,
      label: "Event ignored",
      at: updated_at,
      status: cause,
      request_id,
      ignored_event_id: id,
      connection_id
    })),
    ...executions.map(({ connection_id, error_code, event_id, id, updated_at }) => ({
      kind: "transformation" as const,
      label: error_code === null ? "Transformed" : "Transformation failed",
      at: updated_at,
      status: error_code ?? "SUCCESSFUL",
      request_id,
      transformation_execution_id: id,
      connection_id,
      ...(event_id === null ? {} : { event_id })
    })),
    ...events.map(({ connection_id, destination_id, id, is_retry, status, stored_at }) => ({
      kind: "event" as const,
      label: is_retry ? "Event retried" : "Event created",
      at: stored_at,
      status,
      request_id,
      event_id: id,
      connection_id,
      destination_id
    })),
    ...attempts.map((attempt) => ({
      kind: "attempt" as const,
      label: `Attempt ${attempt.attempt_number} ${attempt.status === "SUCCESSFUL" ? "successful" : "failed"}`,
      at: attempt.delivered_at,
      status: attempt.status,
      request_id,
      event_id: attempt.event_id,
      attempt_id: attempt.id,
      connection_id: attempt.connection_id,
      destination_id: attempt.destination_id
    }))
  ]
  return items
    .sort((a, b) => (a.at === b.at ? (rank.get(a.kind) ?? 0) - (rank.get(b.kind) ?? 0) : a.at < b.at ? -1 : 1))
    .map((item, index) => Object.assign({ id: `tl_${index + 1}` }, item))
}
