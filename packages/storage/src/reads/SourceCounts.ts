import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { day } from "../retention/Partitions.ts"

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
  const rows = yield* sql<{ measure: string; count: number }>`
    select measure, sum(count)::float8 as count from counted
    where key_id = ${source_id} and measure = any(${["accepted", "rejected", "limited"]})
      and minute > ${new Date(nowMs - day)} and minute <= ${new Date(nowMs)}
    group by measure`
  const count = (measure: string) => rows.find((row) => row.measure === measure)?.count ?? 0
  const [last] = yield* sql<{ ingested_at: Date }>`
    select ingested_at from requests where source_id = ${source_id} order by id desc limit 1`
  return {
    accepted: count("accepted"),
    rejected: count("rejected"),
    limited: count("limited"),
    lastRequestAt: last?.ingested_at ?? null
  }
})
