import { expect, layer } from "@effect/vitest"
import { Context, Effect, Layer, Option, Schedule } from "effect"
import { Runner, RunnerAddress, RunnerStorage, ShardId, ShardingConfig, SqlRunnerStorage } from "effect/cluster"
import { SqlClient } from "effect/sql"
import { freshDatabase } from "../../../test/postgres.ts"
import * as Database from "../src/Database.ts"

/** Two runners of one database, and somebody who looks at it. */
class World extends Context.Service<
  World,
  {
    readonly first: RunnerStorage.RunnerStorage["Service"]
    readonly second: RunnerStorage.RunnerStorage["Service"]
    readonly sql: SqlClient.SqlClient
  }
>()("World") {
  static readonly layer = Layer.effect(
    World,
    Effect.gen(function* () {
      const url = yield* freshDatabase
      const config = ShardingConfig.layer({
        shardsPerGroup: 8,
        shardLockExpiration: "4 seconds",
        shardLockRefreshInterval: "1300 millis"
      })
      const runner = Effect.map(
        Layer.build(
          Layer.fresh(SqlRunnerStorage.layer).pipe(Layer.provide([config, Layer.fresh(Database.layerCluster(url))]))
        ),
        (built) => Context.get(built, RunnerStorage.RunnerStorage)
      )
      const first = yield* runner
      const second = yield* runner
      const built = yield* Layer.build(Database.layer({ url, connections: 2, hotConnections: 1 }))
      return { first, second, sql: Context.get(built, SqlClient.SqlClient) }
    })
  )
}

const shards = [1, 2, 3].map((id) => ShardId.make("default", id))
const address = (port: number) => RunnerAddress.make("127.0.0.1", port)
const numbers = (held: ReadonlyArray<ShardId.ShardId>) => held.map(({ id }) => id).toSorted((a, b) => a - b)

const register = (storage: RunnerStorage.RunnerStorage["Service"], port: number) =>
  storage.register(Runner.make({ address: address(port), groups: ["default"], weight: 1 }), true)

/** The sessions that hold locks, with what each has asked last. */
const holders = Effect.flatMap(
  World,
  ({ sql }) => sql<{ pid: number; query: string }>`
    select distinct a.pid, a.query from pg_stat_activity a join pg_locks l on l.pid = a.pid
    where l.locktype = 'advisory' and l.granted and a.datname = current_database() and a.application_name = 'tidegate-cluster'`
)

layer(World.layer, { excludeTestServices: true })("Session of a runner's locks", (it) => {
  it.effect("One statement of the lock session both sends the heartbeat and reads the held shards", () =>
    Effect.gen(function* () {
      const { first, sql } = yield* World
      yield* register(first, 1)
      expect(numbers(yield* first.acquire(address(1), shards))).toEqual([1, 2, 3])
      yield* sql`update cluster_runners set last_heartbeat = now() - interval '1 hour'`
      expect(yield* first.getRunners).toEqual([])
      expect(numbers(yield* first.refresh(address(1), shards))).toEqual([1, 2, 3])
      expect((yield* first.getRunners).length).toBe(1)
      const [holder, ...others] = yield* holders
      expect(others).toEqual([])
      // As the library words the two; where it comes to word them otherwise, they are two again.
      expect(holder?.query).toMatch(/^with beat as \(.*last_heartbeat.*pg_locks/s)
    })
  )

  it.effect("A runner whose session ended holds no shards, and another runner takes them over", () =>
    Effect.gen(function* () {
      const { first, second, sql } = yield* World
      yield* register(second, 2)
      expect(yield* second.acquire(address(2), shards)).toEqual([])
      const [holder] = yield* holders
      yield* sql`select pg_terminate_backend(${holder?.pid ?? 0}, 5000)`
      expect(numbers(yield* second.acquire(address(2), shards))).toEqual([1, 2, 3])
      // It may notice by a failure first; it is never answered that it holds what it has lost.
      const told = yield* Effect.option(first.refresh(address(1), shards))
      expect(Option.getOrElse(told, () => [])).toEqual([])
      const again = yield* Effect.retry(first.refresh(address(1), shards), {
        schedule: Schedule.spaced("50 millis"),
        times: 1_200
      })
      expect(again).toEqual([])
      expect(yield* first.acquire(address(1), shards)).toEqual([])
      expect(numbers(yield* second.refresh(address(2), shards))).toEqual([1, 2, 3])
      expect((yield* second.getRunners).length).toBe(2)
    })
  )

  it.effect("A runner whose lock session gets no answer holds nothing that it can prove", () =>
    Effect.gen(function* () {
      const { first, second } = yield* World
      const [holder] = yield* holders
      const signal = (name: "SIGSTOP" | "SIGCONT") => Effect.sync(() => process.kill(holder!.pid, name))
      yield* Effect.acquireUseRelease(
        signal("SIGSTOP"),
        () =>
          Effect.gen(function* () {
            expect(Option.isNone(yield* Effect.option(second.refresh(address(2), shards)))).toBe(true)
            // The frozen session has the locks still: nobody holds them twice.
            expect(yield* first.acquire(address(1), shards)).toEqual([])
            // The runner has another session by now, which has none of them.
            expect(
              yield* Effect.retry(second.refresh(address(2), shards), {
                schedule: Schedule.spaced("50 millis"),
                times: 1_200
              })
            ).toEqual([])
          }),
        () => signal("SIGCONT")
      )
      const taken = yield* Effect.repeat(second.acquire(address(2), shards), {
        until: (held) => held.length === shards.length,
        schedule: Schedule.spaced("50 millis")
      }).pipe(Effect.timeout("60 seconds"))
      expect(numbers(taken)).toEqual([1, 2, 3])
    })
  )

  it.effect("A runner can release one shard, and sends heartbeats even without shards", () =>
    Effect.gen(function* () {
      const { first, second, sql } = yield* World
      yield* second.release(address(2), shards[0]!)
      expect(numbers(yield* second.refresh(address(2), shards))).toEqual([2, 3])
      expect(numbers(yield* first.acquire(address(1), shards))).toEqual([1])
      yield* second.releaseAll(address(2))
      yield* sql`update cluster_runners set last_heartbeat = now() - interval '1 hour'`
      expect(yield* second.refresh(address(2), [])).toEqual([])
      expect((yield* second.getRunners).length).toBe(1)
      expect(numbers(yield* first.acquire(address(1), shards))).toEqual([1, 2, 3])
    })
  )
})
