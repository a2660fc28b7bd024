import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { storedHeaders, type StoredHead } from "@tidegate/model/Message"
import * as Columns from "../journal/Columns.ts"
import { payloadGone } from "../Tables.ts"
import { query } from "../Transaction.ts"
import type { Replay } from "./Replays.ts"

/** Stored requests to be replayed. */

/** A stored request, ready to be replayed. */
export interface Original extends StoredHead {
  readonly id: string
  readonly team_id: string
  readonly source_id: string
  readonly rejection_cause: string | null
  readonly verified: boolean
  readonly presented: string | null
  readonly original_ip: string | null
  readonly external_id: string | null
  /** Null when it is gone, or was too large to be stored. */
  readonly body: Uint8Array | null
}

const originalColumns = `r.id, r.team_id, r.source_id, r.rejection_cause, r.verified, r.presented, r.original_ip, r.external_id,
  r.method, r.path, r.query, r.headers, r.body`

/**
 * These requests of the team whose payload is stored, ordered by id. Those beyond `bytes` of bodies are `left` (the first never
 * is).
 */
export const originals = Effect.fnUntraced(function* (
  team_id: string,
  ids: ReadonlyArray<string>,
  bytes: number
): Effect.fn.Return<
  { readonly found: ReadonlyArray<Original>; readonly left: ReadonlyArray<string> },
  SqlError.SqlError,
  SqlClient.SqlClient
> {
  const sql = yield* SqlClient.SqlClient
  const [first, last] = Columns.bounds(ids)
  const rows = yield* sql<Original & { readonly is_left: boolean }>`
    with wanted as (
      select id, sum(body_size) over (order by id) - body_size >= ${bytes} and body_size > 0 as is_left from requests
      where id = any(${Columns.text(ids)}) and id >= ${first} and id <= ${last} and team_id = ${team_id}
    )
    select ${sql.literal(originalColumns.replace("r.body", "case when not w.is_left then r.body end as body"))}, w.is_left
    from wanted w join requests r on r.id = w.id
    where r.id >= ${first} and r.id <= ${last} order by r.id`
  return {
    found: rows.filter(({ body, headers, is_left }) => !is_left && body !== null && headers !== payloadGone),
    left: rows.filter(({ is_left }) => is_left).map(({ id }) => id)
  }
})

/** One request of the team that can be replayed. */
export const original = Effect.fnUntraced(function* (
  team_id: string,
  id: string
): Effect.fn.Return<Original, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* query(sql<Original>`
    select ${sql.literal(originalColumns)} from requests r where r.id = ${id} and r.team_id = ${team_id}`)
  if (row === undefined) return yield* notFound("request", id)
  return row.body === null || row.headers === payloadGone
    ? yield* fail("PAYLOAD_UNAVAILABLE", "the payload of the request is not stored")
    : row
})

/** The replay of a stored request without changes. */
export const exactly = (
  of: Original,
  id: string,
  retry: Omit<NonNullable<Replay["retry"]>, "parent_request_id">
): Replay => ({
  team_id: of.team_id,
  source_id: of.source_id,
  id,
  message: {
    method: of.method,
    path: of.path,
    query: of.query,
    headers: storedHeaders(of),
    body: of.body ?? new Uint8Array()
  },
  presented: of.presented,
  presentedOf: of.id,
  verified: of.verified,
  original_ip: of.original_ip,
  external_id: of.external_id,
  retry: { ...retry, parent_request_id: of.id }
})
