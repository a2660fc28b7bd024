import { expect, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { newId, prefixes } from "@tidegate/model/Ids"
import { next } from "@tidegate/runtime/TestSignal"
import * as Database from "@tidegate/storage/Database"
import { Journal } from "@tidegate/storage/Journal"
import { migrate } from "@tidegate/storage/Migrations"
import { freshDatabase } from "../../../test/postgres.ts"
import { isOfQuarters, minuteOfId, quarterMeasure, quarterOf } from "../src/journal/CountStatement.ts"
import { addUp } from "../src/journal/Counting.ts"
import { attemptRecord } from "./attempts.ts"
import { requestRecord } from "./requests.ts"

const world = Layer.effectDiscard(migrate).pipe(
  Layer.provideMerge(Layer.unwrap(Effect.map(freshDatabase, (url) => Database.layer({ url }))))
)

/** What is counted, and what there is to count, by counter. They may differ at no moment, so they are read as of one. */
const disagreements = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* sql`
    with told as (
      select key_id, measure, minute, team_id, sum(count)::int4 as n from counted group by 1, 2, 3, 4
      union all
      select key_id, measure, minute, team_id, sum(count)::int4 from rollups
      where ${sql.literal(isOfQuarters("measure"))} group by 1, 2, 3, 4
    ), added as (
      select key_id, measure || ${quarterMeasure("")} as measure, ${sql.literal(quarterOf("minute"))} as minute, team_id, sum(count)::int4 as n
      from rollups where not ${sql.literal(isOfQuarters("measure"))} group by 1, 2, 3, 4
    ), actual as (
      select * from added union all
      select k.key_id, status as measure, ${sql.literal(minuteOfId("id"))} as minute, team_id, count(*)::int4 as n
        from requests cross join lateral (values (source_id), (team_id)) as k (key_id) group by 1, 2, 3, 4
      union all select k.key_id, m.measure, ${sql.literal(minuteOfId("id"))}, team_id, count(*)::int4
        from events cross join lateral (values
            (connection_id), (source_id), (destination_id), (source_id || '>' || destination_id), (team_id)
          ) as k (key_id)
          cross join lateral (values ('created'), (nullif(lower(state), 'pending'))) as m (measure)
        where m.measure is not null group by 1, 2, 3, 4
      union all select k.key_id, 'attempt_' || lower(status), date_trunc('minute', created_at), team_id, count(*)::int4
        from attempts cross join lateral (values (destination_id), (team_id)) as k (key_id) group by 1, 2, 3, 4
    )
    select key_id, measure, team_id, told.n as told, actual.n as actual
    from told full join actual using (key_id, measure, minute, team_id) where told.n is distinct from actual.n`
})

const waitingToBeAdded = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ count: number }>`select count(*)::int4 as count from rollup_batches`
  return row!.count
})

const makeSource = Effect.fnUntraced(function* (team: string) {
  const sql = yield* SqlClient.SqlClient
  const id = newId(prefixes.source, Date.now())
  yield* sql`insert into teams (id, name) values (${team}, ${team}) on conflict do nothing`
  yield* sql`insert into sources (id, team_id, name, type, config, created_at, updated_at)
    values (${id}, ${team}, ${id}, 'WEBHOOK', '{}', now(), now())`
  return { source: id, team, connection: newId(prefixes.connection, 0), destination: newId(prefixes.destination, 0) }
})

/** A request, its event and the attempt that delivers it, or fails. */
const one = Effect.fnUntraced(function* (ends: Effect.Success<ReturnType<typeof makeSource>>, successful: boolean) {
  const journal = yield* Journal
  const of = requestRecord({ teamId: ends.team, sourceId: ends.source }, ends)
  yield* Effect.callback<void>((resume) => journal.accept(of, () => resume(Effect.void)))
  const attempt = attemptRecord({
    teamId: ends.team,
    eventId: of.events[0]!.id,
    requestId: of.id,
    connectionId: ends.connection,
    sourceId: ends.source,
    destinationId: ends.destination,
    successful
  })
  yield* Effect.callback<void>((resume) => journal.record(attempt, true, () => resume(Effect.void)))
})

layer(world, { excludeTestServices: true })("Counts of requests and events", (it) => {
  it.effect("Counts are exact at every moment, with any number of adders and cut connections", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ends = [yield* makeSource("tm_one"), yield* makeSource("tm_one"), yield* makeSource("tm_two")]
      const load = yield* Effect.forkChild(
        Effect.forEach(
          Array.from({ length: 240 }, (_, i) => i),
          (i) => one(ends[i % 3]!, i % 7 > 0),
          { concurrency: 30 }
        ).pipe(Effect.provide(Journal.layer))
      )
      // Each round of what follows waits for the load to have gone on.
      const nextCommit = Effect.promise(() => next("commit"))
      const adders = yield* Effect.forkChild(
        Effect.forever(
          Effect.andThen(
            nextCommit,
            Effect.all(
              [1, 2, 3].map((slot) => Effect.exit(addUp(slot))),
              { concurrency: "unbounded" }
            )
          )
        )
      )
      let looked = 0
      while (load.pollUnsafe() === undefined) {
        expect(yield* disagreements).toEqual([])
        if (looked++ % 3 === 0) {
          yield* sql`select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'tidegate-journal'
            and datname = current_database()`
        }
        yield* Effect.raceFirst(nextCommit, Fiber.await(load))
      }
      expect((yield* Fiber.await(load))._tag).toBe("Success")
      yield* Fiber.interrupt(adders)
      expect(looked).toBeGreaterThan(0)
      expect(yield* disagreements).toEqual([])
      // Connections that were cut are still in the pool.
      yield* Effect.retry(addUp(4), { times: 20 })
      expect(yield* waitingToBeAdded).toBe(0)
      expect(yield* disagreements).toEqual([])
    })
  )

  it.effect("Counts of a process that is gone are added up by a later process", () =>
    Effect.gen(function* () {
      // It has added up what was there before, and goes down before it adds up again: its clock stands.
      const begun = Effect.promise(() => next("count"))
      const counts = Effect.andThen(begun, one(yield* makeSource("tm_three"), true))
      yield* counts.pipe(Effect.provide(Journal.layer), Effect.provide(TestClock.layer()))
      expect(yield* waitingToBeAdded).toBeGreaterThan(0)
      const added = Effect.promise(() => next("count"))
      yield* Effect.provide(Effect.andThen(Journal, added), Journal.layer)
      expect(yield* waitingToBeAdded).toBe(0)
      expect(yield* disagreements).toEqual([])
    })
  )
})
