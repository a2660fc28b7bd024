import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import * as Columns from "../journal/Columns.ts"
import type { EventRow } from "./EventRow.ts"
import { listedBody, startBytes } from "./RequestRow.ts"
import type { Page } from "./Scan.ts"

/**
 * A page ends early when its records have more bytes than this: reading, encoding and sending it delays all other work of the
 * process. It has at least one record.
 */
export const largestPage = 4 * 1024 * 1024

/** The page up to the record that reaches the limit; `weigh` returns the bytes of a record. */
export const cut = <Row extends { readonly id: string }>(page: Page<Row>, weigh: (row: Row) => number): Page<Row> => {
  let bytes = 0
  for (const [at, row] of page.rows.entries()) {
    bytes += weigh(row)
    if (at > 0 && bytes > largestPage) return { rows: page.rows.slice(0, at), next: page.rows[at - 1]!.id }
  }
  return page
}

/** The part of a body of that many bytes that a list reads. */
export const listedBytes = (size: number): number => (size <= listedBody ? size : startBytes)

/** The bytes of each event's payload and last answer, as a list shows them. */
export const eventBytes = Effect.fnUntraced(function* (
  team: string,
  events: ReadonlyArray<EventRow>
): Effect.fn.Return<ReadonlyMap<string, number>, SqlError.SqlError, SqlClient.SqlClient> {
  if (events.length === 0) return new Map()
  const sql = yield* SqlClient.SqlClient
  const [first, last] = Columns.bounds(events.map(({ id }) => id))
  const made = events.map(({ event_data_id }) => event_data_id ?? "")
  const rows = yield* sql<{ id: string; sent: number; answered: number }>`
    select e.id, coalesce(case when e.made = ''
        then (select r.body_size from requests r where r.id = e.request_id and r.team_id = ${team})
        else (select d.body_size from event_data d where d.id = e.made and d.team_id = ${team}) end, 0) as sent,
      coalesce((
        select octet_length(a.body) from attempts a
        where a.event_id = e.id and a.attempt_number = e.attempts and a.team_id = ${team}
          and a.event_id >= ${first} and a.event_id <= ${last}
      ), 0) as answered
    from unnest(${Columns.text(events.map(({ id }) => id))}, ${Columns.text(events.map(({ request_id }) => request_id))},
      ${Columns.text(made)}, ${Columns.int4(events.map(({ attempts }) => attempts))}) as e (id, request_id, made, attempts)`
    .unprepared
  return new Map(rows.map(({ answered, id, sent }) => [id, listedBytes(sent) + answered]))
})
