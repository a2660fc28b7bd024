import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { binsByMeasure, total } from "../retention/RollupBins.ts"

/** The results of a source's requests in the last 24 hours, and the time of its last stored request. */
export interface SourceCounts {
  readonly accepted: number
  readonly rejected: number
  readonly limited: number
  readonly lastRequestAt: Date | null
}

export const readSourceCounts = Effect.fnUntraced(function* (
  source_id: string,
  nowMs: number
): Effect.fn.Return<SourceCounts, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const of = (yield* binsByMeasure(sql, null, [source_id], ["accepted", "rejected", "limited"], nowMs, 1))(source_id)
  const [last] = yield* sql<{ ingested_at: Date }>`
    select ingested_at from requests where source_id = ${source_id} order by id desc limit 1`
  return {
    accepted: total(of("accepted")),
    rejected: total(of("rejected")),
    limited: total(of("limited")),
    lastRequestAt: last?.ingested_at ?? null
  }
})
