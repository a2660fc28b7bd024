import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Predicate, type Redacted, type Scope } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient, type SqlConnection, SqlError } from "effect/sql"
import { restingAsLong } from "@tidegate/runtime/ReportPace"
import { metrics } from "@tidegate/telemetry/Metrics"
import { connectionTo } from "./DatabaseUrl.ts"
import { columnTypes } from "./JsonColumns.ts"
import { withLockSession } from "./LockSession.ts"
import { lowerPriority } from "./LowPriority.ts"
import { makeTeamReads, type TeamReads } from "./TeamReads.ts"

/**
 * Four clients on one database. The ordinary one (`SqlClient`) is for transactions, control calls, lists and anything that may
 * take long. `HotSql` and `JournalSql` are for the few fixed statements of the event path. Those are planned once and always use
 * an index: a plan that was made while tables were small must not become a full scan later. A test runs them with such plans.
 *
 * `HotSql` reads. Its statements read one row by its id, or the first rows of a connection queue, by nested subqueries and never
 * by a join that could start from either side.
 */
export class HotSql extends Context.Service<HotSql, PgClient.PgClient>()("@tidegate/storage/HotSql") {}

/**
 * `JournalSql` writes batches. Its statements name the rows they touch (`= any(ids)`) and hash-join them with the batch.
 * Otherwise the planner, which cannot know the length of a batch, would compare each row with each.
 */
export class JournalSql extends Context.Service<JournalSql, PgClient.PgClient>()("@tidegate/storage/JournalSql") {}

/** `session` takes a connection for one report until the scope closes. */
export interface ReportClient extends PgClient.PgClient {
  readonly session: Effect.Effect<SqlConnection.Connection, SqlError.SqlError, Scope.Scope>
}

/**
 * `ReportSql` is for reading many rows: counts, series, summaries, searches, lists with data. It has few connections, and no other list or
 * change waits for one of them (see asReport).
 */
export class ReportSql extends Context.Service<ReportSql, ReportClient>()("@tidegate/storage/ReportSql") {}

/**
 * The fair semaphores for reads in this process. A list takes a connection of the ordinary pool, a report one of the reports'
 * pool; one team has at most half of either.
 */
export class ReadSemaphores extends Context.Service<
  ReadSemaphores,
  { readonly lists: TeamReads; readonly reports: TeamReads }
>()("@tidegate/storage/ReadSemaphores") {}

/** The services that reads and writes need, as a type for other packages. Other packages only pass it on, because only this package contains SQL. */
export type Database = SqlClient.SqlClient | HotSql | JournalSql | ReportSql | ReadSemaphores

export interface DatabaseOptions {
  readonly url: Redacted.Redacted
  /** The largest number of connections: of the ordinary pool, of `HotSql`, of `JournalSql`, and of `ReportSql`. */
  readonly connections?: number
  readonly hotConnections?: number
  readonly journalConnections?: number
  readonly reportConnections?: number
  /** Whether the server is the embedded one: its processes are on this machine, and this process may change their priority. */
  readonly isEmbedded?: boolean
}

/** Read back at the start: a pooler may drop the settings of a session without a word. */
export const lockTimeout = "10s"

const session = {
  timezone: "UTC",
  lock_timeout: lockTimeout,
  idle_in_transaction_session_timeout: "30s",
  // A dedicated server may compile plans that look expensive, which takes longer than any of these statements.
  jit: "off"
}

/** For large reads: on flash and in memory, a random page costs about as much as the next one. */
const reading = { ...session, random_page_cost: "1.1" }

/** The time-out of a report, less than its caller waits (`read` of the API). */
const reportTimeout = "8s"

/** While requests of senders arrive, the connection of a report rests for as long as the report took, up to this time (ms). */
const maxReportRest = 1_000

/** The server starts parallel workers by itself, and they have the usual priority: reports of the embedded server have none. */
const lowered = { max_parallel_workers_per_gather: "0" }

const planned = {
  ...session,
  statement_timeout: "20s",
  plan_cache_mode: "force_generic_plan",
  enable_seqscan: "off",
  enable_mergejoin: "off",
  random_page_cost: "1.1"
}

/**
 * For reads of the first rows of a queue. A table that was almost empty when it was planned for makes sorting all of its rows look as cheap
 * as reading a few of them in the order of an index.
 */
const inIndexOrder = { enable_sort: "off", enable_bitmapscan: "off" }

/** The semaphores for pools of this size. Some connections of the ordinary pool are left for calls that change something. */
const readSemaphores = (connections: number, reportConnections: number): Layer.Layer<ReadSemaphores> =>
  Layer.sync(ReadSemaphores, () => {
    const atOnce = Math.max(1, Math.floor(connections * 0.75))
    return {
      lists: makeTeamReads("lists", { atOnce, perTeam: Math.ceil(atOnce / 2), waiting: 1_000 }),
      reports: makeTeamReads("reports", {
        atOnce: reportConnections,
        perTeam: Math.ceil(reportConnections / 2),
        waiting: 20,
        resting: restingAsLong(maxReportRest)
      })
    }
  })

/**
 * A failed transaction is rolled back. When the session has been lost meanwhile, the rollback fails, and the client makes a
 * defect of it, which would not count as transient. This restores the original failure, so that the transaction is repeated.
 * Other defects stay defects.
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

const usual = { connections: 10, hotConnections: 6, journalConnections: 9, reportConnections: 3 } as const
const clusterConnections = 4

/** The most connections that a process of the gateway has open. */
export const connectionsPerProcess = Object.values(usual).reduce((sum, size) => sum + size, clusterConnections)

export const layer = (options: DatabaseOptions): Layer.Layer<PgClient.PgClient | Database, SqlError.SqlError> => {
  const {
    connections,
    hotConnections,
    isEmbedded = false,
    journalConnections,
    reportConnections
  } = { ...usual, ...options }
  const client = (applicationName: string, maxConnections: number, startupParameters: Record<string, string>) =>
    Effect.map(
      PgClient.make({
        ...connectionTo(options.url),
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
    Layer.effect(HotSql, client("tidegate-hot", hotConnections, { ...planned, ...inIndexOrder })),
    Layer.effect(JournalSql, client("tidegate-journal", journalConnections, { ...planned, enable_nestloop: "off" })),
    Layer.effect(
      ReportSql,
      Effect.map(
        client("tidegate-reports", reportConnections, {
          ...reading,
          ...(isEmbedded ? lowered : {}),
          statement_timeout: reportTimeout
        }),
        (sql) => Object.assign(sql, { session: isEmbedded ? Effect.tap(sql.reserve, lowerPriority) : sql.reserve })
      )
    ),
    readSemaphores(connections, reportConnections)
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
        ...connectionTo(url),
        maxConnections: clusterConnections,
        applicationName: "tidegate-cluster",
        startupParameters: { timezone: "UTC", statement_timeout: "5s" }
      })
    )
  )

/** The time-out of the check whether the database answers. */
const patience = "2 seconds"

/** Whether the database answers, and accepts writes: a standby does not. */
export const answers: Effect.Effect<boolean, never, SqlClient.SqlClient> = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql<{ reads: boolean }>`select pg_is_in_recovery() as reads`.pipe(
    Effect.timeout(patience),
    Effect.match({ onSuccess: ([row]) => row?.reads === false, onFailure: () => false })
  )
)

/** Takes a connection of each pool and returns it, for the metrics of how long that takes. It sends nothing to the server. */
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
 * SQLSTATEs that are not about the statement, but say that the server could not run it now: connection (08), resources (53), the
 * server stopping, crashing or starting (57P), input and output (58), a session ended for its transaction (25P), a standby that is
 * not the primary server yet or no longer (25006).
 */
const passing = /^(08|25006|25P0[34]|53|57P|58)/

/** Whether the session is lost or never existed: the server ended it, crashed, or is starting. */
export const isSessionLost = ({ reason }: SqlError.SqlError): boolean =>
  reason._tag === "ConnectionError" || /^(08|57P)/.test(sqlStateOf(reason.cause))

/**
 * Whether the database could not be reached or failed for a transient reason: the same call may work later. Any failure to
 * connect counts, because then nothing was executed.
 */
export const isTransient = ({ reason }: SqlError.SqlError): boolean =>
  reason.isRetryable || reason.operation === "connect" || passing.test(sqlStateOf(reason.cause))

/** Whether the server ended a statement because of its time-out, or because it was cancelled. */
export const isTimedOut = ({ reason }: SqlError.SqlError): boolean => sqlStateOf(reason.cause) === "57014"

/**
 * Whether a row had no partition. The server reports it with the SQLSTATE of a violated check but no constraint name; its message
 * may be in any language.
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
