import { expect, it } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { SqlClient, Statement } from "effect/sql"
import { freshDatabase } from "../../../test/postgres.ts"
import * as Database from "../src/Database.ts"
import { migrate } from "../src/Migrations.ts"
import { day, partitions, startOfDay } from "../src/retention/Partitions.ts"
import { retain } from "../src/retention/Retention.ts"
import { tablesThat } from "../src/Tables.ts"
import { makeOldDays, makeRoutingJob, makeWaiting, type OldDays, resourcesOf } from "./OldDays.ts"

const database = Layer.unwrap(
  Effect.map(freshDatabase, (url) => Database.layer({ url, connections: 1, hotConnections: 1, journalConnections: 1 }))
).pipe((made) => Layer.provideMerge(Layer.effectDiscard(migrate), made), Layer.provideMerge(Logger.layer([])))

const now = Date.now()
const defaults = { payloadDays: 2, recordDays: 3 }
const old: OldDays = {
  now,
  days: 11,
  teams: { tm_usual: { payload: null, record: null }, tm_brief: { payload: 1, record: 1 } },
  perDay: 20,
  bodyBytes: 64
}

/** Days that are dropped whole, cleared row by row and rewritten; that are held, given up, and left by an older version. */
const fill = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* makeOldDays(old)
  // One day of a kind is enough.
  for (const { name, start } of yield* partitions) {
    const age = (startOfDay(now) - start) / day
    if (age === 1 || (age > 4 && age < 11) || age > 11) yield* sql.unsafe(`drop table ${name}`)
  }
  yield* makeWaiting(old, "tm_usual", 4, 4)
  yield* makeWaiting(old, "tm_usual", 11, 4)
  yield* makeRoutingJob(old, "tm_brief", 11, 5)
  yield* makeWaiting(old, "tm_usual", 0, 4)
  yield* sql`update deliveries set team_id = null`
  yield* sql`insert into deliveries (event_id, shard, destination_id, connection_id, due_at)
    values ('evt_0000000000orphan', 1, 'des_x', 'web_x', now())`
  const { connection } = resourcesOf("tm_usual")
  yield* sql`insert into dedupe_keys (connection_id, key, request_id, expires_at)
    values (${connection}, 'over', 'req_x', now() - interval '2 days'), (${connection}, 'open', 'req_x', now())`
  yield* sql`insert into rollups (key_id, measure, minute, slot, team_id, count)
    select ${connection}, 'created', date_trunc('minute', to_timestamp(${now} / 1000.0)) - interval '9 minutes' * i, i % 2,
      'tm_usual', i from generate_series(0, 1000) i`
  // As an earlier run has left it: a day that was detached, and half a copy.
  yield* sql`create table requests_20200101_detached (id text)`
  const [oldest] = yield* partitions
  yield* sql.unsafe(`create table ${oldest!.name}_copy (id text)`)
})

const names = (["grows", "waits", "expires", "compacted"] as const).flatMap((kind) =>
  tablesThat(kind).map(({ name }) => name)
)
const hashes = names
  .map(
    (name) => `select '${name}' as name, md5(coalesce(string_agg(row::text, ' ' order by row::text), '')) as hash from (
      select to_jsonb(t) - array['slot', 'expires_at', 'due_at', 'updated_at', 'cancelled_at', 'created_at', 'ingested_at', 'txid'] as row from ${name} t) rows`
  )
  .join(" union all ")
  .concat(" order by name")

/** All that there is, but for the times at which a run wrote something, and the numbers that a database gives to its transactions. */
const state = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const seen: Array<string> = (yield* partitions).map(({ isPruned, name }) => `${name} ${isPruned}`)
  for (const { hash, name } of yield* sql.unsafe<{ name: string; hash: string }>(hashes)) seen.push(`${name} ${hash}`)
  const tables = yield* sql<{ name: string }>`
    select relname as name from pg_class where relkind = 'r' and not relispartition and relnamespace = 'public'::regnamespace`
  return { seen, tables: tables.map(({ name }) => name).sort() }
})

const versions = names
  .map(
    (name) => `select '${name}' as name, count(*) || ' ' || coalesce(sum(xmin::text::int8), 0) as version from ${name}`
  )
  .join(" union all ")
  .concat(" order by name")

/**
 * Changes with everything that is committed: each row has the number of the transaction that wrote it. It is asked after each of the hundreds
 * of runs, and costs a small part of the whole state.
 */
const committed = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const days = (yield* partitions).map(({ isPruned, name }) => `${name} ${isPruned}`)
  return JSON.stringify([days, yield* sql.unsafe(versions)])
})

/**
 * Runs retention up to its n-th statement that is not a plain read; whether it came to its end before. To be cut off at a read
 * leaves what it leaves to be cut off at the next write.
 */
const cutOffAt = (n: number) => {
  let count = 0
  return retain(defaults).pipe(
    Effect.provideService(Statement.CurrentTransformer, (statement) =>
      Effect.suspend(() => {
        const reads = /^\s*(?:select|with recursive)\b/.test(statement.compile()[0])
        return !reads && ++count === n ? Effect.die("cut off") : Effect.succeed(statement)
      })
    ),
    Effect.exit,
    Effect.map((exit) => exit._tag === "Success")
  )
}

it.live("A retention run that is interrupted at any statement and repeated reaches the same result", () =>
  Effect.gen(function* () {
    const undisturbed = yield* Effect.provide(
      Effect.gen(function* () {
        yield* fill
        yield* retain(defaults)
        yield* retain(defaults)
        return yield* state
      }),
      database
    )
    const { cuts, ...disturbed } = yield* Effect.provide(
      Effect.gen(function* () {
        yield* fill
        let cuts = 0
        let before = yield* committed
        let n = 1
        while (!(yield* cutOffAt(n))) {
          cuts++
          const after = yield* committed
          // A step that is done is not done again: from the beginning, to the first statement of the next one.
          n = after === before ? n + 1 : 1
          before = after
        }
        // The one that came to its end may have given up days that the next one clears.
        yield* retain(defaults)
        return { cuts, ...(yield* state) }
      }),
      database
    )
    expect(disturbed).toEqual(undisturbed)
    expect(cuts).toBeGreaterThan(100)
    expect(disturbed.tables.filter((name) => /_(?:copy|detached)$/.test(name))).toEqual([])
  })
)
