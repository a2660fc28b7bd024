import { Context, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"

/** A runner of this version, and whether it needs others of its host beside it. */
export interface RunnerLoad {
  /** `host:port`, as the cluster names it. */
  readonly address: string
  /** Whether it may be on standby. */
  readonly standby: boolean
  /** When its process started, by the database's clock (Unix ms). */
  readonly joined: number
  readonly busy: boolean
}

/** Rows of processes that have crashed are removed after this time, if the cluster no longer knows them. */
const forgotten = "1 day"

/** The order in which the runners of a host take part in its work, and which of them are busy. */
export class RunnerLoads extends Context.Service<
  RunnerLoads,
  {
    /** A process starts at this address. What an earlier process at the same address has written does not count. */
    readonly join: (address: string, standby: boolean) => Effect.Effect<void, SqlError.SqlError>
    /** The process registers again, for example after its database was away for long. Its place among the others stays, if its row does. */
    readonly rejoin: (address: string, standby: boolean) => Effect.Effect<void, SqlError.SqlError>
    readonly leave: (address: string) => Effect.Effect<void, SqlError.SqlError>
    /** Records that the runner is busy, for some seconds. */
    readonly busy: (address: string, seconds: number) => Effect.Effect<void, SqlError.SqlError>
    /** All rows, also of runners that have crashed. */
    readonly all: Effect.Effect<ReadonlyArray<RunnerLoad>, SqlError.SqlError>
  }
>()("@tidegate/storage/RunnerLoads") {
  static readonly layer: Layer.Layer<RunnerLoads, never, SqlClient.SqlClient> = Layer.effect(
    RunnerLoads,
    Effect.suspend(() => make)
  )
}

const make = Effect.map(SqlClient.SqlClient, (sql) => {
  const insert = (address: string, standby: boolean) =>
    sql`insert into runner_loads (address, standby, joined_at) values (${address}, ${standby}, clock_timestamp())`
  return RunnerLoads.of({
    join: (address, standby) =>
      Effect.asVoid(
        Effect.andThen(
          sql`
            delete from runner_loads l
            where joined_at < now() - ${forgotten}::interval
              and not exists (select from cluster_runners r where r.address = l.address)`,
          sql`${insert(address, standby)} on conflict (address) do update
            set standby = excluded.standby, joined_at = excluded.joined_at, busy_until = null`
        )
      ),
    rejoin: (address, standby) => Effect.asVoid(sql`${insert(address, standby)} on conflict (address) do nothing`),
    leave: (address) => Effect.asVoid(sql`delete from runner_loads where address = ${address}`),
    busy: (address, seconds) =>
      Effect.asVoid(sql`
        update runner_loads set busy_until = now() + ${seconds}::int * interval '1 second' where address = ${address}`),
    all: sql<RunnerLoad>`
      select address, standby, extract(epoch from joined_at)::float8 * 1000 as joined, coalesce(busy_until > now(), false) as busy
      from runner_loads limit 1000`
  })
})
