import { describe, expect, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { newId, prefixes } from "@tidegate/model/Ids"
import * as Database from "@tidegate/storage/Database"
import { day, ensurePartitions } from "../src/retention/Partitions.ts"
import { growing } from "../src/Tables.ts"
import { fill, hotStatements, world } from "./HotStatements.ts"
import { planned } from "./Planned.ts"
import { withoutAutovacuum } from "./withoutAutovacuum.ts"

/**
 * Rows and index entries that tables of the event path have been read for, by this database so far. A connection reports its counts
 * once a second, and when it has been idle for ten, so each one is asked to report now.
 */
const reads = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const client of [sql, yield* Database.HotSql, yield* Database.JournalSql]) {
    yield* client.unsafe("select pg_stat_force_next_flush()")
    yield* client.unsafe("select 1")
  }
  const [row] = yield* sql<{ count: number }>`
    select ((select coalesce(sum(seq_tup_read), 0) from pg_stat_user_tables) +
      (select coalesce(sum(idx_tup_read), 0) from pg_stat_user_indexes))::int4 as count`
  return row!.count
})

/** Rows that a statement may read, where it is more than a few for each that it is asked about; null: what waits, in chunks. */
const most: Readonly<Record<string, number | null>> = {
  // It counts up to five thousand.
  "the backlogs": 6_000,
  "the backlog of runs": 1_500,
  "cancelling what waits for a connection": null,
  "cancelling what waits for a destination": null
}

/** Tables that are filled and emptied all the time. */
const queues = ["deliveries", "pending_routes", "workflow_queue"]

const bounded = Object.entries(hotStatements).filter(([name]) => most[name] !== null)

/** What the queues held when PostgreSQL last looked at them: a queue is almost empty most of the time, and full in a burst. */
const looked = {
  "with a few rows": Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const few = yield* fill(30)
    yield* sql`analyze`
    return few
  }),
  "while they were new and almost empty": Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const few = yield* fill(1)
    yield* sql`vacuum analyze`
    return few
  }),
  "after a burst was over": Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* fill(2_000)
    // A burst at the end of the tables keeps its pages, which vacuuming would give back otherwise.
    const few = yield* fill(1)
    for (const queue of queues)
      yield* sql`delete from ${sql(queue)} where ${sql(queue)}::text not like ${`%${few[0]!.slice(4, 20)}%`}`
    yield* sql`vacuum analyze`
    return few
  })
} as const

describe.each(Object.entries(looked))("Hot statements planned %s", (_, planned) => {
  layer(world, { excludeTestServices: true })((it) => {
    it.effect("Hot statements read only needed rows by index, however many rows there are since", () =>
      Effect.gen(function* () {
        yield* withoutAutovacuum
        const few = yield* planned
        for (const [, { run }] of bounded) yield* run(few)
        const many = yield* fill(10_000, 30)
        const found: Array<string> = []
        for (const [name, { run }] of bounded) {
          const before = yield* reads
          yield* run(many)
          const count = (yield* reads) - before
          if (count >= (most[name] ?? 500)) found.push(`${name}: ${count}`)
        }
        expect(found.join("\n")).toBe("")
      })
    )
  })
})

/** Partitions of 36 days that were, of today, and of the days ahead. */
const manyDays = Effect.gen(function* () {
  const now = Date.now()
  for (let age = 35; age >= 0; age -= 5) yield* ensurePartitions(now - age * day)
})

layer(world, { excludeTestServices: true })("Hot statements with forty days", (it) => {
  it.effect("Hot statements only read the partitions of the given ids, and find rows by the primary key", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* manyDays
      const today = yield* fill(30)
      // Whoever does this by hand says of every day ahead that it is empty.
      yield* sql`vacuum analyze`
      const tomorrow = today.map(() => newId(prefixes.event, Date.now() + day))
      for (const [name, { everyDay, run }] of Object.entries(hotStatements)) {
        for (const events of [tomorrow, today, tomorrow.slice(0, 1), today.slice(0, 1)]) {
          for (const plan of yield* planned(run(events))) {
            if (everyDay === true) continue
            for (const { name: table } of growing) {
              const daysOf = plan.reads.filter(({ relation }) => relation.startsWith(`${table}_2`))
              const looked = new Set(daysOf.filter(({ loops }) => loops > 0).map(({ relation }) => relation))
              expect(looked.size, `${name}: days of ${table}`).toBeLessThanOrEqual(1)
              for (const { index, relation } of daysOf) expect(index, `${name}: ${relation}`).toBe(`${relation}_pkey`)
            }
          }
        }
      }
    })
  )
})

const sources = join(import.meta.dirname, "../src")

/** A file takes a hot client once for each statement; these take one for what is stated elsewhere. */
const takesOneForAll = new Set([
  "Journal.ts",
  "workflows/RunJournal.ts",
  "delivery/ProxyExchanges.ts",
  "journal/Counting.ts"
])
const occurrences = /yield\* (?:HotSql|JournalSql)\b|^export const \w+(?:Commit|Lookup) =/gm

describe("List of hot statements", () => {
  it("The list of hot statements contains every statement in the sources", () => {
    const stated = new Map<string, number>()
    for (const file of readdirSync(sources, { recursive: true, encoding: "utf8" })) {
      if (!file.endsWith(".ts") || file === "Database.ts") continue
      const found = readFileSync(join(sources, file), "utf8").match(occurrences)?.length ?? 0
      const count = takesOneForAll.has(file) ? found - 1 : found
      if (count > 0) stated.set(file, count)
    }
    const listed = new Map<string, number>()
    for (const { file } of Object.values(hotStatements)) listed.set(file, (listed.get(file) ?? 0) + 1)
    expect(Object.fromEntries(stated)).toEqual(Object.fromEntries(listed))
  })
})
