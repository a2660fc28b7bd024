import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { freshDatabase } from "../../../test/postgres.ts"
import * as Database from "../src/Database.ts"
import { migrate } from "../src/Migrations.ts"
import { rollupBins } from "../src/retention/RollupBins.ts"
import { compactRollups } from "../src/retention/RollupCompaction.ts"
import { quarterMeasure } from "../src/journal/CountStatement.ts"
import { addQuarters } from "./quarterCounts.ts"

const world = Layer.unwrap(Effect.map(freshDatabase, (url) => Database.layer({ url }))).pipe((database) =>
  Layer.provideMerge(Layer.effectDiscard(migrate), database)
)

const now = Date.UTC(2026, 10, 20, 10, 17)
const hours = 3_600_000

/** The first hour that is kept whole. */
const kept = new Date(Math.floor((now - 31 * 24 * hours) / hours) * hours)

/** What is counted in whole hours, by counter. */
const byHour = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* sql`
    select key_id, measure, team_id, date_trunc('hour', minute) as hour, sum(count)::int8 as count from rollups
    where minute >= ${kept} group by 1, 2, 3, 4 order by 1, 2, 3, 4`
})

const rows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ minutes: number; hours: number; old: number }>`
    select count(*) filter (where slot >= 0)::int4 as minutes, count(*) filter (where slot < 0)::int4 as hours,
      count(*) filter (where minute < ${kept})::int4 as old
    from rollups`
  return row!
})

/** Counts of every ten minutes by two writers, for 35 days. */
const fill = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`truncate rollups`
  yield* sql`insert into rollups (key_id, measure, minute, slot, team_id, count)
    select key, measure, to_timestamp(${now / 1000}) - interval '10 minutes' * i, slot, 'tm_one', 1 + i % 7
    from generate_series(0, 35 * 144) i, unnest(array['web_a', 'web_b']) key,
      unnest(array['created', 'successful']) measure, generate_series(1, 2) slot`
})

layer(world, { excludeTestServices: true })("Old counts", (it) => {
  it.effect("Old counts become hourly counts with the same sums and are removed after a month", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* fill
      const before = yield* byHour
      const bins = yield* rollupBins(sql, ["web_a"], ["created"], now)
      expect(yield* compactRollups(now)).toBeGreaterThan(10_000)
      expect(yield* byHour).toEqual(before)
      expect(yield* rollupBins(sql, ["web_a"], ["created"], now)).toEqual(bins)
      const left = yield* rows
      // 52 hours and up to another of minutes, and the rest of 31 days in hours, of four counters.
      expect(left.minutes).toBeLessThanOrEqual(4 * 2 * 6 * 53)
      expect(left.hours).toBeLessThanOrEqual(4 * (31 * 24 - 52) + 4)
      expect(left.old).toBe(0)
      expect(yield* compactRollups(now)).toBe(0)
    })
  )

  it.effect("Quarters of old hours are removed and do not become hours", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* fill
      yield* addQuarters
      const bins = yield* rollupBins(sql, ["web_a"], ["created"], now)
      expect(bins.get("web_a")?.every((count) => count > 0)).toBe(true)
      yield* compactRollups(now)
      expect(yield* rollupBins(sql, ["web_a"], ["created"], now)).toEqual(bins)
      expect(
        yield* sql`select count(*)::int4 as count, bool_and(slot >= 0 and minute > ${new Date(now - 54 * hours)}) as fresh
          from rollups where measure = ${quarterMeasure("created")} and key_id = 'web_a'`
      ).toEqual([{ count: expect.any(Number), fresh: true }])
      expect(yield* compactRollups(now)).toBe(0)
    })
  )

  it.effect("A late count for a compacted hour is added to it", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* fill
      yield* compactRollups(now)
      const at = new Date(now - 100 * hours)
      const hour = sql`select sum(count)::int4 as count from rollups where key_id = 'web_a' and measure = 'created'
        and date_trunc('hour', minute) = date_trunc('hour', ${at}::timestamptz)`
      const [before] = yield* hour
      // A cancelled event that was delivered after all is counted back.
      yield* sql`insert into rollups (key_id, measure, minute, slot, team_id, count)
        values ('web_a', 'created', date_trunc('minute', ${at}::timestamptz), 5, 'tm_one', 3),
          ('web_a', 'created', date_trunc('minute', ${at}::timestamptz), 6, 'tm_one', -1)`
      expect(yield* compactRollups(now)).toBe(2)
      expect(yield* hour).toEqual([{ count: Number(before!["count"]) + 2 }])
    })
  )

  it.effect("Compaction skips a row that a writer has locked, and the next run takes it", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* fill
      const before = yield* byHour
      const outside = yield* Effect.context<SqlClient.SqlClient>()
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`update rollups set count = count where key_id = 'web_a' and measure = 'created' and slot = 1
            and minute < ${new Date(now - 400 * hours)} and minute > ${new Date(now - 402 * hours)}`
          // On another connection.
          yield* Effect.promise(() => Effect.runPromiseWith(outside)(compactRollups(now)))
        })
      )
      const held = yield* rows
      expect(yield* compactRollups(now)).toBe(11)
      expect((yield* rows).minutes).toBe(held.minutes - 11)
      expect(yield* byHour).toEqual(before)
    })
  )
})
