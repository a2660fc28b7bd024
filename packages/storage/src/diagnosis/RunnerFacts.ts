import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"

/** A runner as it has registered itself in the database. */
export interface RegisteredRunner {
  /** `host:port`, where the other processes reach it. */
  readonly address: string
  /** Whether the other runners find that it answers. */
  readonly healthy: boolean
  /** Seconds since it last wrote that it lives, by the database's clock. */
  readonly silent: number
}

/** The runners of this database. One that ended cleanly is not among them. */
export const registeredRunners: Effect.Effect<
  ReadonlyArray<RegisteredRunner>,
  SqlError.SqlError,
  SqlClient.SqlClient
> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<RegisteredRunner>`
    select address, healthy, extract(epoch from localtimestamp - last_heartbeat)::float8 as silent
    from cluster_runners order by address limit 1000`
})

/**
 * Removes the entries of all runners, and returns how many there were. Only for a database that no process of a gateway works on: a restored
 * one names the runners of the time of its backup.
 */
export const forgetRunners: Effect.Effect<number, SqlError.SqlError, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return (yield* sql`delete from cluster_runners returning address`).length
})
