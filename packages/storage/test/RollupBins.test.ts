import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import * as Database from "@tidegate/storage/Database"
import { migrate } from "@tidegate/storage/Migrations"
import { freshDatabase } from "../../../test/postgres.ts"
import { quartersFrom, writeCounts } from "../src/journal/CountStatement.ts"
import { addUp } from "../src/journal/Counting.ts"
import { binsByMeasure } from "../src/retention/RollupBins.ts"

const world = Layer.effectDiscard(migrate).pipe(
  Layer.provideMerge(Layer.unwrap(Effect.map(freshDatabase, (url) => Database.layer({ url }))))
)

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const now = Date.UTC(2026, 10, 20, 10, 17, 23, 456)
const keys = ["web_a", "web_b"]
const measures = ["created", "failed"]

/** Writes a batch with a count for each of these minutes, keys and measures. */
const write = Effect.fnUntraced(function* (minutes: ReadonlyArray<number>) {
  const sql = yield* SqlClient.SqlClient
  for (const key of keys) {
    for (const measure of measures) {
      yield* sql`with made as (
        select ${key}::text as key_id, null::text as source_id, null::text as destination_id, ${measure}::text as measure,
          to_timestamp(at) as minute, 'tm_one'::text as team_id, (1 + (at / 60)::int8 % 7) as n
        from jsonb_array_elements_text(${JSON.stringify(minutes.map((at) => at / 1000))}::jsonb) as m (text)
          cross join lateral (select text::float8 as at) t
      ) ${sql.literal(writeCounts("made"))}`
    }
  }
})

/** The same bins, summed up from the single minutes of everything that is counted. */
const summed = Effect.fnUntraced(function* (at: number, bins: number) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ key_id: string; measure: string; at: number; n: number }>`
    select key_id, measure, extract(epoch from minute)::float8 * 1000 as at, sum(count)::float8 as n from counted
    where measure in ('created', 'failed') group by 1, 2, 3`
  const found = new Map<string, Array<number>>()
  for (const row of rows) {
    if (row.at <= at - day || row.at > at) continue
    const name = `${row.key_id} ${row.measure}`
    const of = found.get(name) ?? Array.from({ length: bins }, () => 0)
    of[Math.min(bins - 1, Math.floor(((row.at - at + day) / day) * bins))]! += row.n
    found.set(name, of)
  }
  return found
})

layer(world, { excludeTestServices: true })("Bins of a day", (it) => {
  it.effect("Quarters, minutes and batches together give what the single minutes give, wherever the day begins", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const whole = Math.floor(now / minute) * minute
      const minutes = Array.from({ length: 1_600 }, (_, n) => whole - n * minute)
      yield* write(minutes.filter((_, n) => n % 3 !== 0))
      yield* addUp(1)
      yield* write(minutes.filter((_, n) => n % 5 === 0))
      yield* addUp(2)
      // Not added up.
      yield* write(minutes.filter((_, n) => n % 11 === 0))
      const check = Effect.fnUntraced(function* () {
        // Full quarters, full minutes, and times between.
        for (const at of [
          now,
          whole,
          whole - 2 * minute,
          whole - 2 * minute + 1,
          now - 6 * minute,
          now + 40 * minute
        ]) {
          for (const bins of [1, 6, 24]) {
            const of = yield* binsByMeasure(sql, "tm_one", keys, measures, at, bins)
            const expected = yield* summed(at, bins)
            for (const key of keys)
              for (const measure of measures)
                expect([at, bins, of(key)(measure)]).toEqual([at, bins, expected.get(`${key} ${measure}`)])
          }
        }
      })
      yield* check()
      expect((yield* binsByMeasure(sql, "tm_two", keys, measures, now))("web_a")("created")).toEqual([0, 0, 0, 0, 0, 0])

      // A database of the previous version has no quarters before this time.
      const since = Math.floor(now / hour) * hour - 5 * hour
      yield* sql`delete from rollups where measure like '%/quarter' and minute < ${new Date(since)}`
      yield* sql`insert into settings (name, value) values (${quartersFrom}, ${String(since)})`
      yield* check()
    })
  )
})
