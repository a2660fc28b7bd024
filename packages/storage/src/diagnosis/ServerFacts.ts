import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"

/* What `tidegate doctor` asks the PostgreSQL server about itself. Everything here only reads, and any role may read it. */

type Read<A> = Effect.Effect<A, SqlError.SqlError, SqlClient.SqlClient>

/** Settings of the server as they hold for the gateway's own sessions, by name. A server without a setting leaves it out. */
export const serverSettings = Effect.fnUntraced(function* (
  names: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyMap<string, string>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ name: string; value: string }>`
    select name, current_setting(name) as value from pg_settings where name = any(${[...names]})`
  return new Map(rows.map(({ name, value }) => [name, value]))
})

export interface ServerState {
  /** As a number: 150004 is 15.4. */
  readonly version: number
  readonly encoding: string
  /** Whether the server is a standby, which accepts no writes. */
  readonly isStandby: boolean
  readonly bytes: number
  /** Connections that ordinary roles can have, and all that are open. */
  readonly allowed: number
  readonly open: number
  /** Transactions since the oldest row that is not frozen; at two thousand million the server stops accepting writes. */
  readonly age: number
  /** Seconds since the oldest transaction began, of the sessions that this role may see. */
  readonly oldestTransaction: number
  /** The write-ahead log (bytes) that the server keeps for a replica that is not connected. */
  readonly heldLog: number
}

export const serverState: Read<ServerState> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Record<keyof ServerState, string>>`
    select current_setting('server_version_num') as version, pg_encoding_to_char(d.encoding) as encoding,
      pg_is_in_recovery()::text as "isStandby", pg_database_size(d.oid)::text as bytes,
      (current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
        - coalesce(current_setting('reserved_connections', true)::int, 0))::text as allowed,
      (select count(*)::text from pg_stat_activity where backend_type = 'client backend') as open,
      age(d.datfrozenxid)::text as age,
      (select coalesce(max(extract(epoch from now() - xact_start)), 0)::int::text from pg_stat_activity
        where datname = d.datname and pid <> pg_backend_pid()) as "oldestTransaction",
      (select coalesce(max(pg_wal_lsn_diff(
          case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end, restart_lsn)), 0)::text
        from pg_replication_slots where not active) as "heldLog"
    from pg_database d where d.datname = current_database()`
  const found = row!
  return {
    version: Number(found.version),
    encoding: found.encoding,
    isStandby: found.isStandby === "true",
    bytes: Number(found.bytes),
    allowed: Number(found.allowed),
    open: Number(found.open),
    age: Number(found.age),
    oldestTransaction: Number(found.oldestTransaction),
    heldLog: Number(found.heldLog)
  }
})

export interface Skew {
  /** How far the database's clock is ahead of this process's (ms). */
  readonly ms: number
  /** The largest error of that number (ms): half of the time of the question. */
  readonly error: number
}

/** The difference between the clocks: the fastest of three questions, because its answer is the most exact. */
export const clockSkew: Read<Skew> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ask = Effect.gen(function* () {
    const asked = yield* Clock.currentTimeMillis
    const since = performance.now()
    const [row] = yield* sql<{ now: string }>`select (extract(epoch from clock_timestamp()) * 1000)::text as now`
    const error = (performance.now() - since) / 2
    return { ms: Number(row!.now) - (asked + error), error }
  })
  const asked = yield* Effect.all([ask, ask, ask])
  return asked.reduce((best, next) => (next.error < best.error ? next : best))
})

export interface BloatedTable {
  readonly name: string
  readonly dead: number
  readonly live: number
}

/** Tables with more than a hundred thousand dead rows, and more of them than living ones. Vacuum does not keep up with these. */
export const bloatedTables: Read<ReadonlyArray<BloatedTable>> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<BloatedTable>`
    select relname as name, n_dead_tup::float8 as dead, n_live_tup::float8 as live from pg_stat_user_tables
    where n_dead_tup > 100000 and n_dead_tup > n_live_tup order by n_dead_tup desc limit 5`
})
