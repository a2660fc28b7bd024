import { Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import type { StoredHead } from "@tidegate/model/Message"
import { payloadGone } from "../Tables.ts"

/** A sample for a dry run of a workflow, which also shows what its source provides: a request as it was received. */

export interface WorkflowSample extends StoredHead {
  readonly request_id: string
  readonly source_id: string
  readonly source_name: string
  readonly ingested_at: Date
  readonly body: Uint8Array | null
  /** Encrypted credentials, see `requests`. */
  readonly presented: string | null
}

const columns = (sql: SqlClient.SqlClient): Statement.Fragment => sql`r.id as request_id, r.source_id,
  coalesce((select name from sources where sources.id = r.source_id), '') as source_name,
  r.ingested_at, r.method, r.path, r.query, r.headers, r.body, r.presented`

/** A request of the team. Fails when it does not exist or its payload is gone. */
export const sampleOfRequest = Effect.fnUntraced(function* (
  team: string,
  id: string
): Effect.fn.Return<WorkflowSample, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [found] = yield* sql<WorkflowSample>`
    select ${columns(sql)} from requests r where r.id = ${id} and r.team_id = ${team}`
  if (found === undefined) return yield* notFound("request", id)
  if (found.headers === payloadGone || found.body === null) {
    return yield* fail("SAMPLE_UNAVAILABLE", "the payload of the request is not stored", { request_id: id })
  }
  return found
})

/** The last request that the source accepted, among its last hundred; null: none of them has a stored payload. */
export const latestSample = Effect.fnUntraced(function* (
  team: string,
  sourceId: string,
  largest: number
): Effect.fn.Return<WorkflowSample | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [latest] = yield* sql<WorkflowSample>`
    select ${columns(sql)} from requests r where r.id = (
      select l.id from (
        select id, status, headers <> ${payloadGone} and body is not null and body_size <= ${largest} as is_kept
        from requests where source_id = ${sourceId} and team_id = ${team} order by id desc limit 100
      ) l where l.status = 'accepted' and l.is_kept order by l.id desc limit 1
    )`
  return latest ?? null
})

/** The last requests that the source accepted and whose payload is stored, newest first, among its last ones. */
export const latestRequests = Effect.fnUntraced(function* (
  team: string,
  sourceId: string,
  { largest, limit }: { readonly largest: number; readonly limit: number }
): Effect.fn.Return<
  ReadonlyArray<{ readonly id: string; readonly size: number }>,
  SqlError.SqlError,
  SqlClient.SqlClient
> {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<{ id: string; size: number }>`
    select l.id, l.size from (
      select id, status, body_size as size, headers <> ${payloadGone} and body is not null and body_size <= ${largest} as is_kept
      from requests where source_id = ${sourceId} and team_id = ${team} order by id desc limit ${2 * limit}
    ) l where l.status = 'accepted' and l.is_kept order by l.id desc limit ${limit}`
})
