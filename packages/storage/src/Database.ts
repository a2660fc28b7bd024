import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, type Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import type { SqlClient, SqlError } from "effect/sql"

/**
 * Two clients on one database. The ordinary one (`SqlClient`) is for transactions, control calls, lists and whatever may
 * take long. `HotSql` is for the event path's few fixed statements: it plans them once, and always by index, because a
 * plan made while the tables were small must not turn into a sequential scan when they are not.
 */
export class HotSql extends Context.Service<HotSql, PgClient.PgClient>()("@tidegate/storage/HotSql") {}

export interface DatabaseOptions {
  readonly url: Redacted.Redacted
  /** Connections of the ordinary pool; the hot pool has `hotConnections` more. */
  readonly connections?: number
  readonly hotConnections?: number
}

const session = {
  timezone: "UTC",
  lock_timeout: "10s",
  idle_in_transaction_session_timeout: "30s"
}

export const layer = (
  options: DatabaseOptions
): Layer.Layer<PgClient.PgClient | SqlClient.SqlClient | HotSql, SqlError.SqlError> =>
  Layer.merge(
    PgClient.layer({
      url: options.url,
      maxConnections: options.connections ?? 12,
      applicationName: "tidegate",
      transformJson: false,
      startupParameters: { ...session, statement_timeout: "60s" }
    }),
    Layer.effect(
      HotSql,
      PgClient.make({
        url: options.url,
        maxConnections: options.hotConnections ?? 12,
        applicationName: "tidegate-hot",
        transformJson: false,
        startupParameters: {
          ...session,
          statement_timeout: "20s",
          plan_cache_mode: "force_generic_plan",
          enable_seqscan: "off",
          enable_hashjoin: "off",
          enable_mergejoin: "off"
        }
      })
    ).pipe(Layer.provide(Reactivity.layer))
  )

/** Whether the database could not be reached or gave up for a passing reason: the same call may work later. */
export const isTransient = (error: SqlError.SqlError): boolean => error.reason.isRetryable

/** One row, to see that the database answers. */
export const ping = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  yield* sql`select 1`
})
