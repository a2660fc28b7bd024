import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { EventData } from "@tidegate/model/Event"
import type { RequestData } from "@tidegate/model/Request"
import { inReportSteps } from "@tidegate/runtime/ReportPace"
import type { Resumable } from "@tidegate/runtime/Resumable"
import * as Columns from "../journal/Columns.ts"
import { readCaptured } from "./AttemptRow.ts"
import type { EventRow } from "./EventRow.ts"
import { readHeaders } from "./Payload.ts"
import { requestPayloads } from "./RequestPayloads.ts"
import { anyBody, listedBody, repeatedly } from "./RequestRow.ts"
import { transformedPayloads } from "./TransformedPayloads.ts"

interface AnswerRow {
  readonly event_id: string
  readonly requested_url: string
  readonly http_method: string
  readonly response_status: number | null
  readonly response_headers: string | null
  readonly body: Uint8Array | null
}

/** The payload that each of these events sends, and the answer to its last attempt. An event whose payload is gone has none. */
export const eventData = Effect.fnUntraced(function* (
  team: string,
  events: ReadonlyArray<EventRow>,
  use: "list" | "detail"
): Effect.fn.Return<ReadonlyMap<string, EventData>, SqlError.SqlError, SqlClient.SqlClient> {
  if (events.length === 0) return new Map()
  const sql = yield* SqlClient.SqlClient
  const largest = use === "list" ? listedBody : anyBody
  // An event sends the payload of its request, unless a transformation has produced another one.
  const plain = events.flatMap(({ event_data_id, request_id }) => (event_data_id === null ? [request_id] : []))
  const made = events.flatMap(({ event_data_id }) => (event_data_id === null ? [] : [event_data_id]))
  const received = yield* requestPayloads(team, [...new Set(plain)], largest)
  const transformed = yield* transformedPayloads(team, [...new Set(made)], largest)
  const [first, last] = Columns.bounds(events.map(({ id }) => id))
  const answers = new Map(
    (yield* sql<AnswerRow>`
      select a.event_id, a.requested_url, a.http_method, a.response_status, a.response_headers, a.body
      from unnest(${Columns.text(events.map(({ id }) => id))}, ${Columns.int4(events.map(({ attempts }) => attempts))})
        as e (id, attempts)
      join attempts a on a.event_id = e.id and a.attempt_number = e.attempts
      where a.team_id = ${team} and a.event_id >= ${first} and a.event_id <= ${last}`.unprepared).map((row) => [
      row.event_id,
      row
    ])
  )
  return yield* inReportSteps(dataOf(events, { received, transformed, answers }))
})

interface Read {
  readonly received: ReadonlyMap<string, RequestData>
  readonly transformed: ReadonlyMap<string, RequestData>
  readonly answers: ReadonlyMap<string, AnswerRow>
}

function* dataOf(
  events: ReadonlyArray<EventRow>,
  { answers, received, transformed }: Read
): Resumable<ReadonlyMap<string, EventData>> {
  const found = new Map<string, EventData>()
  const repeat = repeatedly()
  for (const event of events) {
    yield
    const stored = event.event_data_id === null ? received.get(event.request_id) : transformed.get(event.event_data_id)
    if (stored === undefined) continue
    const payload = repeat(stored)
    const answer = answers.get(event.id)
    found.set(event.id, {
      request: {
        method: answer?.http_method ?? payload.method,
        url: answer?.requested_url ?? null,
        path: payload.path,
        query: payload.query,
        headers: payload.headers,
        body: payload.body,
        encoding: payload.encoding,
        is_large_payload: payload.is_large_payload,
        ...(payload.reason === undefined ? {} : { reason: payload.reason })
      },
      response:
        answer === undefined
          ? null
          : {
              status: answer.response_status,
              headers: answer.response_headers === null ? null : readHeaders(answer.response_headers),
              ...readCaptured(answer.body)
            }
    })
  }
  return found
}
