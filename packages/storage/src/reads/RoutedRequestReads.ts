import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type MessageHead, type StoredHead, messageHead } from "@tidegate/model/Message"

/** Stored requests as the rules of a connection read them. */

/** An accepted request of a source, without its content. */
export interface RoutedRequest {
  readonly id: string
  readonly ingested_at: Date
  readonly is_replay: boolean
  readonly body_size: number
  /** Whether its content is stored. */
  readonly kept: boolean
}

/** The accepted requests of a source, newest first, among its last thousand. */
export const newestRouted = Effect.fnUntraced(function* (
  team: string,
  sourceId: string,
  limit: number
): Effect.fn.Return<ReadonlyArray<RoutedRequest>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<RoutedRequest>`
    select r.id, r.ingested_at, r.retry_kind is not null as is_replay, r.body_size, r.body is not null as kept from (
      select * from requests r where r.source_id = ${sourceId} and r.team_id = ${team} order by r.id desc limit 1000
    ) r where r.status = 'accepted' order by r.id desc limit ${limit}`
})

/** The content of such a request; null: it is not stored any more. */
export const routedContent = Effect.fnUntraced(function* (
  team: string,
  id: string
): Effect.fn.Return<
  { readonly head: MessageHead; readonly body: Uint8Array } | null,
  SqlError.SqlError,
  SqlClient.SqlClient
> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<StoredHead & { readonly body: Uint8Array | null }>`
    select r.method, r.path, r.query, r.headers, r.body from requests r where r.id = ${id} and r.team_id = ${team}`
  if (row === undefined || row.body === null) return null
  return { head: messageHead(row), body: row.body }
})
