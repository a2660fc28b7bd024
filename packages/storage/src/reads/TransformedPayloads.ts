import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { RequestData } from "@tidegate/model/Request"
import * as Columns from "../journal/Columns.ts"
import { type PayloadRow, payloadsOf, startBytes } from "./RequestRow.ts"

/**
 * The results of transformations by the id of the event data. A row whose payload is gone has none. Bodies larger than `largest`
 * bytes are not read. A body that the code did not change is the request's own.
 */
export const transformedPayloads = Effect.fnUntraced(function* (
  team: string,
  ids: ReadonlyArray<string>,
  largest: number
): Effect.fn.Return<ReadonlyMap<string, RequestData>, SqlError.SqlError, SqlClient.SqlClient> {
  if (ids.length === 0) return new Map()
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<PayloadRow>`
    select d.id, d.method, d.path, d.query, d.headers, d.body_size,
      case when d.body_size <= ${largest} then case when d.same_body then r.body else d.body end end as body,
      case when d.body_size > ${largest} then
        substring(case when d.same_body then r.body else d.body end for ${sql.literal(String(startBytes))}) end as start,
      case when d.same_body then r.body is not null else d.body is not null end as kept,
      null as rejection_cause
    from event_data d left join requests r on d.same_body and r.id = d.request_id
    where d.id = any(${Columns.text(ids)}) and d.team_id = ${team}`.unprepared
  return yield* payloadsOf(rows)
})
