import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { derivedId, newId, prefixes, sibling } from "@tidegate/model/Ids"

/** What a transformation's code is said to have made of a request. */
export interface TransformedFields {
  readonly team: string
  readonly connection: { readonly id: string; readonly source_id: string; readonly destination_id: string }
  readonly transformationId: string
  /** Unix milliseconds. */
  readonly at?: number
  /** The request's; null: retention took it. */
  readonly body?: string | null
  /** null: it changed nothing. The body "same": it left that alone. */
  readonly made?: { readonly body: string; readonly headers?: object; readonly path?: string } | null
  readonly error?: string
  readonly logLevel?: string
  readonly logs?: ReadonlyArray<{ readonly type: string; readonly message: string }>
}

/** A request, its execution, what that made, and (unless it failed) a delivered event of it: as the gateway stores them. */
export const insertTransformed = Effect.fnUntraced(function* (fields: TransformedFields) {
  const sql = yield* SqlClient.SqlClient
  const {
    at = Date.now(),
    body = '{"a":1}',
    connection,
    error,
    logs = [],
    made = null,
    team,
    transformationId
  } = fields
  const when = new Date(at)
  const failed = error !== undefined
  const level = fields.logLevel ?? (failed ? "fatal" : "info")
  const request = newId(prefixes.request, at)
  const execution = derivedId(prefixes.execution, request, connection.id)
  const event = failed ? null : derivedId(prefixes.event, request, connection.id)
  const eventData = made === null ? null : derivedId(prefixes.eventData, request, connection.id)
  yield* sql`
    insert into requests (id, team_id, source_id, status, verified, method, path, query, headers, body, body_size,
      events_count, ignored_count, ingested_at, created_at, updated_at)
    values (${request}, ${team}, ${connection.source_id}, 'accepted', false, 'POST', '/in', 'q=1',
      '{"content-type":"application/json"}', ${body === null ? null : Buffer.from(body)}, ${body?.length ?? 0}, 1, 0, ${when}, ${when},
      ${when})`
  if (made !== null) {
    const own = made.body === "same" ? null : Buffer.from(made.body)
    const headers = JSON.stringify(made.headers ?? { "content-type": "application/json" })
    yield* sql`
      insert into event_data (id, team_id, request_id, connection_id, method, path, query, headers, body, same_body, body_size,
        created_at)
      values (${eventData}, ${team}, ${request}, ${connection.id}, 'PUT', ${made.path ?? "/out"}, 'q=2', ${headers}, ${own},
        ${made.body === "same"}, ${own?.length ?? body?.length ?? 0}, ${when})`
  }
  yield* sql`
    insert into executions (id, team_id, transformation_id, request_id, connection_id, source_id, event_id, event_data_id,
      code_hash, error_code, error_message, log_level, failed, logs, duration, memory_bytes, created_at)
    values (${execution}, ${team}, ${transformationId}, ${request}, ${connection.id}, ${connection.source_id}, ${event},
      ${eventData}, 'hash', ${error ?? null}, ${failed ? "it threw" : null}, ${level},
      ${level === "error" || level === "fatal"}, ${JSON.stringify(logs)}, 1500, 4096, ${when})`
  if (event !== null) {
    yield* sql`
      insert into events (id, team_id, request_id, connection_id, source_id, destination_id, event_data_id, state, failed,
        trigger, ingested_at, created_at, updated_at)
      values (${event}, ${team}, ${request}, ${connection.id}, ${connection.source_id}, ${connection.destination_id},
        ${eventData}, 'FAILED', true, 'INITIAL', ${when}, ${when}, ${when})`
  }
  return { request, execution, event, eventData, originalData: sibling(prefixes.eventData, request) }
})

/** What a proxy source's upstream answered to a request; without a status: it did not. */
export const insertProxyExchange = Effect.fnUntraced(function* (
  team: string,
  sourceId: string,
  requestId: string,
  answer: { readonly status: number; readonly body: Uint8Array } | null
) {
  const sql = yield* SqlClient.SqlClient
  const id = sibling(prefixes.proxyExchange, requestId)
  const at = new Date()
  yield* sql`
    insert into proxy_exchanges (id, team_id, source_id, request_id, target_url, http_method, response_status,
      response_headers, response_body, response_body_truncated, error_code, error_text, started_at, responded_at,
      response_latency, created_at)
    values (${id}, ${team}, ${sourceId}, ${requestId}, 'https://upstream.test/in', 'POST', ${answer?.status ?? null},
      ${answer === null ? null : '{"x-a":["1","2"]}'}, ${answer?.body ?? null}, false,
      ${answer === null ? "TIMEOUT" : null}, ${answer === null ? "no answer in 10 s" : null}, ${at},
      ${answer === null ? null : at}, ${answer === null ? null : 12}, ${at})`
  return id
})
