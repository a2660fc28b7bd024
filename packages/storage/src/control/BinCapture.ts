import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { binLimits } from "@tidegate/model/PublicBin"
import type { RequestRecord } from "../journal/AcceptStatement.ts"
import { withPartitions } from "../retention/Partitions.ts"

/**
 * What became of a request that a bin has received. `moved`: the bin is none any more, because it was claimed or is gone. `full`: nothing more is
 * stored before that time (Unix ms).
 */
export type Captured =
  | { readonly kind: "stored" }
  | { readonly kind: "moved" }
  | { readonly kind: "expired" }
  | { readonly kind: "full"; readonly until: number }

const minuteMs = 60_000

/**
 * Stores what a bin receives, in a transaction of its own, apart from the journal: what strangers send to each other takes no place in its batches. The
 * row of the bin is counted up by the same statement, so its limits are exact, however many processes take its requests; and a claim, which
 * holds that row, has every request that came before it, and none after it. Nothing is counted for metrics: nobody can ask for those of a bin
 * before it is claimed, and the claim counts them.
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
