import { Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import type { StoredHead } from "@tidegate/model/Message"
import { payloadGone } from "../Tables.ts"

/** What a workflow is tried on, and what is shown of what its source gives: requests as they were received. */

export interface WorkflowSample extends StoredHead {
  readonly request_id: string
  readonly source_id: string
  readonly source_name: string
  readonly ingested_at: Date
  readonly body: Uint8Array | null
  /** Sealed credentials, see `requests`. */
  readonly presented: string | null
}

const columns = (sql: SqlClient.SqlClient): Statement.Fragment => sql`r.id as request_id, r.source_id,
  coalesce((select name from sources where sources.id = r.source_id), '') as source_name,
  r.ingested_at, r.method, r.path, r.query, r.headers, r.body, r.presented`

/** A request of the team; fails where there is none, or its payload is gone. */
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

/** The last request that the source accepted, of its last hundred; null: there is none whose payload is stored. */
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
