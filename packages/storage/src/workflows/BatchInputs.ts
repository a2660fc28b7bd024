import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { StoredHead } from "@tidegate/model/Message"
import { payloadGone } from "../Tables.ts"
import * as Columns from "../journal/Columns.ts"

/** The inputs of the runs of a batch: requests, or stored inputs of runs. */

/** `headers` is empty when retention has removed it. */
export interface BatchedInput extends StoredHead {
  readonly request_id: string
  readonly ingested_at: Date
  readonly body: Uint8Array | null
}

/** How much of a batch an input is. */
export const inputBytes = ({
  body,
  headers,
  path,
  query
}: Pick<BatchedInput, "body" | "headers" | "path" | "query">): number =>
  (body?.length ?? 0) + headers.length + path.length + query.length

/** The inputs of these batches, by their ids, in the order in which their runs were made. One that retention has removed has none. */
export const batchInputs = Effect.fnUntraced(function* (
  teamId: string,
  batchIds: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyMap<string, ReadonlyArray<BatchedInput>>, SqlError.SqlError, SqlClient.SqlClient> {
  if (batchIds.length === 0) return new Map()
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<BatchedInput & { readonly batch_id: string }>`
    select b.run_id as batch_id, b.request_id, coalesce(q.ingested_at, i.ingested_at, b.created_at) as ingested_at,
      coalesce(q.method, i.method, '') as method, coalesce(q.path, i.path, '') as path, coalesce(q.query, i.query, '') as query,
      coalesce(q.headers, i.headers, ${payloadGone}) as headers, coalesce(q.body, i.body) as body
    from workflow_batched b
      left join lateral (select * from requests where requests.id = b.request_id limit 1) q on true
      left join workflow_inputs i on i.run_id = b.request_id
    where b.run_id = any(${Columns.text(batchIds)}) and b.team_id = ${teamId}
    order by b.run_id, b.created_at, b.member_id`
  return Map.groupBy(rows, ({ batch_id }) => batch_id)
})
