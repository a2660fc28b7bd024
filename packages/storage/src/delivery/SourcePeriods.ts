import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { RatePeriod } from "@tidegate/model/Destination"
import { addToRollups } from "../journal/CountStatement.ts"
import { Rows } from "../journal/Rows.ts"
import { HotSql } from "../Database.ts"
import { controlSlot } from "../retention/RollupBins.ts"
import { configOf, type StoredConfig } from "../control/Sources.ts"

/** The rate limit of a source's requests. */
export interface IngestSettings {
  readonly team_id: string
  readonly version: number
  /** The largest number of requests accepted in a period; null: unlimited. */
  readonly limit: number | null
  readonly period: RatePeriod
}

/** The limit of a source; null: there is no such source. */
export const readIngestSettings = Effect.fnUntraced(function* (
  source_id: string
): Effect.fn.Return<IngestSettings | null, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  const [row] = yield* sql<{ team_id: string; version: bigint; config: StoredConfig }>`
    select team_id, version, config from sources where id = ${source_id} and deleted_at is null`
  if (row === undefined) return null
  const { rate_limit, rate_limit_period } = configOf(row.config)
  const period = rate_limit_period ?? "second"
  return { team_id: row.team_id, version: Number(row.version), limit: rate_limit, period }
})

/** A period of a source, for the process that has taken it over. */
export interface SourcePeriod {
  /** The number of its owner: it increases with each take-over, so that an earlier owner can no longer write. */
  readonly revision: bigint
  /** The number of leased requests; of a new period, leased in advance. */
  readonly leased: number
  readonly isNew: boolean
  readonly remainingMs: number
}

/**
 * Takes over the current period of a source. If it is over or has another length, a new one starts with `ahead` requests
 * leased. Times are those of the database: processes get the remaining time of a period, so their clocks need not agree.
 */
export const takePeriod = Effect.fnUntraced(function* (options: {
  readonly source_id: string
  readonly team_id: string
  readonly periodMs: number
  readonly ahead: number
}): Effect.fn.Return<SourcePeriod, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  const { ahead, periodMs, source_id, team_id } = options
  const length = sql`make_interval(secs => ${periodMs / 1_000}::float8)`
  const [row] = yield* sql<{ revision: bigint; leased: number; is_new: boolean; remaining: number }>`
    insert into source_periods as p (source_id, team_id, started_at, ends_at, leased, revision)
    values (${source_id}, ${team_id}, now(), now() + ${length}, ${ahead}::int8, 1)
    on conflict (source_id) do update set
      (started_at, ends_at, leased, revision) = (
        select case when is_over then excluded.started_at else p.started_at end,
          case when is_over then excluded.ends_at else p.ends_at end,
          case when is_over then excluded.leased else p.leased end,
          p.revision + 1
        from (select p.ends_at <= now() or p.ends_at <> p.started_at + ${length} as is_over) o
      )
    returning revision, leased::float8 as leased, started_at = now() as is_new,
      (extract(epoch from ends_at - now()) * 1000)::float8 as remaining`
  return { revision: row!.revision, leased: row!.leased, isNew: row!.is_new, remainingMs: row!.remaining }
})

/** Stores the number of leased requests of a period before they are used; false: another process has taken over the period. */
export const noteLeased = Effect.fnUntraced(function* (
  source_id: string,
  revision: bigint,
  leased: number
): Effect.fn.Return<boolean, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  const rows = yield* sql`
    update source_periods set leased = ${leased}::int8 where source_id = ${source_id} and revision = ${revision}::int8
    returning 1`
  return rows.length > 0
})

/** The number of requests of a source beyond its limit in a minute. */
export interface Limited {
  readonly source_id: string
  readonly team_id: string
  /** Unix ms. */
  readonly minute: number
  readonly count: number
}

const limited = new Rows<Limited>("l", [
  ["source_id", "text", ({ source_id }) => source_id],
  ["minute", "timestamptz", ({ minute }) => minute],
  ["team_id", "text", ({ team_id }) => team_id],
  ["n", "int8", ({ count }) => BigInt(count)]
])

/** Counts requests beyond their source's limit; nothing else of them is stored. */
export const countLimited = Effect.fnUntraced(function* (
  rows: ReadonlyArray<Limited>
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    with limited as materialized (
      select source_id as key_id, 'limited' as measure, minute, team_id, n as count, ${controlSlot}::int2 as slot
      from ${limited.unnest(sql, rows)}
    ), ${sql.literal(addToRollups("limited", "max(slot)"))} select`
})
