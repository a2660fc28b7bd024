import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { CapturedRequest } from "@tidegate/model/CapturedRequest"
import { idBound, prefixes } from "@tidegate/model/Ids"
import * as Columns from "../journal/Columns.ts"
import { requestPayloads } from "./RequestPayloads.ts"
import { listedBody } from "./RequestRow.ts"

/** Requests for those who watch their source, ordered by id. Requests of other teams are left out. */
export const captured = Effect.fnUntraced(function* (
  team: string,
  ids: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<CapturedRequest>, SqlError.SqlError, SqlClient.SqlClient> {
  if (ids.length === 0) return []
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ id: string; status: "accepted" | "rejected"; created_at: Date }>`
    select r.id, r.status, r.created_at from requests r
    where r.id = any(${Columns.text(ids)}) and r.team_id = ${team} order by r.id`.unprepared
  const payloads = yield* requestPayloads(
    team,
    rows.map(({ id }) => id),
    listedBody
  )
  return rows.map(({ created_at, id, status }) => ({
    id,
    status,
    created_at: created_at.toISOString(),
    data: payloads.get(id) ?? null
  }))
})

export interface WatchedSource {
  readonly source: string
  readonly team: string
}

/** The result for a watched source: whether it still belongs to that team, and its newest requests, oldest first. */
export interface Sighting {
  readonly present: boolean
  readonly ids: ReadonlyArray<string>
}

/** The newest requests of each source since that time (Unix ms), at most `limit` of each. */
export const newestRequests = Effect.fnUntraced(function* (
  watched: ReadonlyArray<WatchedSource>,
  since: number,
  limit: number
): Effect.fn.Return<ReadonlyArray<Sighting>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<Sighting>`
    select s.id is not null as present, coalesce(found.ids, '{}') as ids
    from unnest(${Columns.text(watched.map(({ source }) => source))}, ${Columns.text(watched.map(({ team }) => team))})
      with ordinality as w (source_id, team_id, place)
    left join sources s on s.id = w.source_id and s.team_id = w.team_id and s.deleted_at is null
    cross join lateral (
      select array_agg(r.id order by r.id) as ids from (
        select id from requests
        where source_id = w.source_id and team_id = w.team_id and id >= ${idBound(prefixes.request, since)}
        order by id desc limit ${limit}
      ) r
    ) found
    order by w.place`
})
