import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { binLimits } from "@tidegate/model/PublicBin"
import type { RequestRecord } from "../journal/RequestRecord.ts"
import { withPartitions } from "../retention/Partitions.ts"

/**
 * The result for a request to a bin. `moved`: the bin was claimed or is gone. `full`: nothing more is stored before that time
 * (Unix ms).
 */
export type Captured =
  | { readonly kind: "stored" }
  | { readonly kind: "moved" }
  | { readonly kind: "expired" }
  | { readonly kind: "full"; readonly until: number }

const minuteMs = 60_000

/**
 * Stores a request to a bin in a transaction of its own instead of the journal, so that anonymous traffic takes no capacity of
 * the journal's batches. The same statement increases the count in the bin's row, so its limits are exact, however many processes
 * take its requests. A claim locks that row: it gets every request before it and none after it. No metrics are counted, because
 * nobody can read a bin's metrics before it is claimed, and the claim counts its requests.
 */
export const captureInBin = Effect.fnUntraced(function* (
  record: RequestRecord
): Effect.fn.Return<Captured, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const at = new Date(record.ingestedAt)
  const minute = new Date(record.ingestedAt - (record.ingestedAt % minuteMs))
  const stored = yield* withPartitions(sql)(sql`
    with taken as (
      update public_bins set captured = captured + 1, minute = greatest(minute, ${minute}),
        minute_count = case when minute < ${minute} then 1 else minute_count + 1 end
      where source_id = ${record.sourceId} and claimed_at is null and expires_at > ${at} and captured < ${binLimits.requests}
        and (minute < ${minute} or minute_count < ${binLimits.perMinute})
      returning source_id, team_id
    )
    insert into requests (id, team_id, source_id, status, verified, rejection_cause, method, path, query, headers, presented, body,
      body_size, external_id, original_ip, events_count, ignored_count, ingested_at, created_at, updated_at)
    select ${record.id}, team_id, source_id, ${record.status}, ${record.verified}, ${record.rejectionCause}, ${record.method},
      ${record.path}, ${record.query}, ${record.headers}, ${record.presented}, ${record.body}::bytea, ${record.bodySize}::int4,
      ${record.externalId}, ${record.originalIp}, 0, 0, ${at}, ${at}, ${at}
    from taken returning 1`)
  return stored.length > 0 ? { kind: "stored" } : yield* refusalOf(record)
})

interface State {
  readonly captured: number
  readonly minute: Date
  readonly expires_at: Date
  readonly claimed_at: Date | null
}

const refusalOf = Effect.fnUntraced(function* ({
  ingestedAt,
  sourceId
}: RequestRecord): Effect.fn.Return<Captured, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [bin] = yield* sql<State>`
    select captured, minute, expires_at, claimed_at from public_bins where source_id = ${sourceId}`
  if (bin === undefined || bin.claimed_at !== null) return { kind: "moved" }
  const expiresAt = bin.expires_at.getTime()
  if (expiresAt <= ingestedAt) return { kind: "expired" }
  return { kind: "full", until: bin.captured >= binLimits.requests ? expiresAt : bin.minute.getTime() + minuteMs }
})
