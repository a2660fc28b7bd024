import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Predicate, type Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient, SqlError } from "effect/sql"
import { metrics } from "@tidegate/telemetry/Metrics"
import { columnTypes } from "./JsonColumns.ts"
import { withLockSession } from "./LockSession.ts"
import { makeTeamReads, type TeamReads } from "./TeamReads.ts"

/**
 * Four clients on one database. The ordinary one (`SqlClient`) is for transactions, control calls, lists and whatever may
 * take long. `HotSql` and `JournalSql` are for the event path's few fixed statements, planned once, and always by index: a plan made
 * while the tables were small must not turn into a scan of the whole when they are not. A test runs them by such plans.
 *
 * `HotSql` reads. Its statements want one row by its id, or the first of a connection queue: by nested subqueries, never by a join
 * that leaves open from which side to start.
 */
export class HotSql extends Context.Service<HotSql, PgClient.PgClient>()("@tidegate/storage/HotSql") {}

/**
 * `JournalSql` writes batches. Its statements name the rows they touch (`= any(ids)`) and join them with the batch by
 * hashing; without that the planner, who cannot know how long a batch is, compares each with each.
 */
export class JournalSql extends Context.Service<JournalSql, PgClient.PgClient>()("@tidegate/storage/JournalSql") {}

/**
 * `ReportSql` is for what reads many rows: counts, series, summaries, searches. It has few connections, and no list or change waits for one of them
 * (see asReport).
 */
export class ReportSql extends Context.Service<ReportSql, PgClient.PgClient>()("@tidegate/storage/ReportSql") {}

/**
 * Shares reading among the teams of this process. A list borrows a connection of the ordinary pool, a report one of the reports' own; of each,
 * one team holds at most half.
 */
export class ReadTurns extends Context.Service<ReadTurns, { readonly lists: TeamReads; readonly reports: TeamReads }>()(
  "@tidegate/storage/ReadTurns"
) {}

/**
 * What reads and writes need, as other packages say it: they hand it on and take no client from it, because statements stand
 * in this package alone.
 */
export type Database = SqlClient.SqlClient | HotSql | JournalSql | ReportSql | ReadTurns

export interface DatabaseOptions {
  readonly url: Redacted.Redacted
  /** Connections at the most: of the ordinary pool, of `HotSql`, of `JournalSql`, and of `ReportSql`. */
  readonly connections?: number
  readonly hotConnections?: number
  readonly journalConnections?: number
  readonly reportConnections?: number
}

const session = {
  timezone: "UTC",
  lock_timeout: "10s",
  idle_in_transaction_session_timeout: "30s",
  // A server of one's own may compile plans that look costly: for longer than any of these takes.
  jit: "off"
}

/** For what reads much: an index entry costs about what its neighbour costs, on flash and in memory. */
const reading = { ...session, random_page_cost: "1.1" }

/** What a report may take of the database, less than its caller waits (`read` of the API). */
const reportTimeout = "8s"

const planned = {
  ...session,
  statement_timeout: "20s",
  plan_cache_mode: "force_generic_plan",
  enable_seqscan: "off",
  enable_mergejoin: "off",
  random_page_cost: "1.1"
}

/** For pools of so many connections. Some of the ordinary one are left to calls that change something. */
const readTurns = (connections: number, reportConnections: number): Layer.Layer<ReadTurns> =>
  Layer.sync(ReadTurns, () => {
    const atOnce = Math.max(1, Math.floor(connections * 0.75))
    return {
      lists: makeTeamReads("lists", { atOnce, perTeam: Math.ceil(atOnce / 2), waiting: 1_000 }),
      reports: makeTeamReads("reports", {
        atOnce: reportConnections,
        perTeam: Math.ceil(reportConnections / 2),
        waiting: 20
      })
    }
  })

/**
 * A transaction that ends badly is rolled back, and a session that has been lost meanwhile cannot even do that: the client makes a defect of it,
 * which nobody takes for passing. Here it is the failure that it is, so that the transaction is taken again. Any other defect is one.
 */
const losingSessions = <Client extends SqlClient.SqlClient>(sql: Client): Client => {
  const { withTransaction } = sql
  return Object.assign(sql, {
    withTransaction: <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError.SqlError, R> =>
      Effect.catchDefect(withTransaction(effect), (defect) =>
        SqlError.isSqlError(defect) && isSessionLost(defect) ? Effect.fail(defect) : Effect.die(defect)
      )
  })
}

export const layer = (options: DatabaseOptions): Layer.Layer<PgClient.PgClient | Database, SqlError.SqlError> => {
  const { connections = 10, hotConnections = 6, journalConnections = 9, reportConnections = 3 } = options
  const client = (applicationName: string, maxConnections: number, startupParameters: Record<string, string>) =>
    Effect.map(
      PgClient.make({
        url: options.url,
        maxConnections,
        applicationName,
        transformJson: false,
        types: columnTypes(),
        startupParameters
      }),
      losingSessions
    )
  return Layer.mergeAll(
    PgClient.layerFrom(client("tidegate", connections, { ...reading, statement_timeout: "60s" })),
    Layer.effect(HotSql, client("tidegate-hot", hotConnections, planned)),
    Layer.effect(JournalSql, client("tidegate-journal", journalConnections, { ...planned, enable_nestloop: "off" })),
    Layer.effect(
      ReportSql,
      client("tidegate-reports", reportConnections, { ...reading, statement_timeout: reportTimeout })
    ),
    readTurns(connections, reportConnections)
  ).pipe(Layer.provide(Reactivity.layer))
}

/** The cluster's own connections: one holds the shard locks for life, and no list or report may delay its refresh. */
export const layerCluster = (url: Redacted.Redacted): Layer.Layer<SqlClient.SqlClient, SqlError.SqlError> =>
  Layer.effect(
    SqlClient.SqlClient,
    Effect.map(SqlClient.SqlClient, (sql) => withLockSession(losingSessions(sql)))
  ).pipe(
    Layer.provide(
      PgClient.layer({
        url,
        maxConnections: 4,
        applicationName: "tidegate-cluster",
        startupParameters: { timezone: "UTC", statement_timeout: "5s" }
      })
    )
  )

/** How long it may take to say that it is there. */
const patience = "2 seconds"

/** Whether the database answers. */
export const answers: Effect.Effect<boolean, never, SqlClient.SqlClient> = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql`select 1`.pipe(Effect.timeout(patience), Effect.isSuccess)
)

/** Borrows a connection of each pool and gives it back, for the metrics of how long they are waited for. It asks the server nothing. */
export const tryPools: Effect.Effect<void, SqlError.SqlError, Database> = Effect.gen(function* () {
  const pools = {
    ordinary: yield* SqlClient.SqlClient,
    hot: yield* HotSql,
    journal: yield* JournalSql,
    reports: yield* ReportSql
  }
  yield* Effect.forEach(
    Object.entries(pools),
    ([pool, sql]) =>
      Effect.suspend(() => {
        const since = performance.now()
        return Effect.tap(Effect.scoped(sql.reserve), () =>
          Effect.sync(() => metrics.sqlWaitSeconds.at(pool).observe((performance.now() - since) / 1_000))
        )
      }),
    { discard: true, concurrency: "unbounded" }
  )
})

/**
 * SQLSTATEs that say nothing about the statement but that the server could not carry it out now: connection (08), resources
 * (53), the server stopping, crashing or starting (57P), input and output (58), a session ended for its transaction (25P).
 */
const passing = /^(08|25P0[34]|53|57P|58)/

/** Whether the session is gone, or there was none: the server ended it, crashed, or is about to start. */
export const isSessionLost = ({ reason }: SqlError.SqlError): boolean =>
  reason._tag === "ConnectionError" || /^(08|57P)/.test(sqlStateOf(reason.cause))

/**
 * Whether the database could not be reached or gave up for a passing reason: the same call may work later. Whatever keeps a
 * connection from being made is one, because then nothing was asked.
 */
export const isTransient = ({ reason }: SqlError.SqlError): boolean =>
  reason.isRetryable || reason.operation === "connect" || passing.test(sqlStateOf(reason.cause))

/** Whether the server ended a statement that took longer than it may, or that somebody had cancelled. */
export const isTimedOut = ({ reason }: SqlError.SqlError): boolean => sqlStateOf(reason.cause) === "57014"

/**
 * Whether a row had no partition to go to. The server says so by the SQLSTATE of a violated check, but names no constraint;
 * its message is in whatever language it speaks.
 */
export const isPartitionMissing = (error: unknown): boolean =>
  SqlError.isSqlError(error) &&
  sqlStateOf(error.reason.cause) === "23514" &&
  fieldOf(error.reason.cause, "constraint") === ""

const sqlStateOf = (cause: unknown): string => fieldOf(cause, "code")

/** A field of the server's error; empty when it has none. */
const fieldOf = (cause: unknown, name: "code" | "constraint"): string => {
  const value = Predicate.hasProperty(cause, name) ? cause[name] : undefined
  return typeof value === "string" ? value : ""
}
