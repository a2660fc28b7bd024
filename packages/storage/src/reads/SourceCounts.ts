import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { rollupBins, total } from "../RollupBins.ts"

/** What became of a source's requests in the last 24 hours, and when the last one that is stored came. */
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
  const count = (measure: string) =>
    Effect.map(rollupBins(sql, [source_id], [measure], nowMs), (counts) => total(counts.get(source_id) ?? []))
  const [last] = yield* sql<{ ingested_at: Date }>`
    select ingested_at from requests where source_id = ${source_id} order by id desc limit 1`
  return {
    accepted: yield* count("accepted"),
    rejected: yield* count("rejected"),
    limited: yield* count("limited"),
    lastRequestAt: last?.ingested_at ?? null
  }
})
