import { expect, it } from "@effect/vitest"
import { Effect, Exit, Layer, Logger, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { DatabaseLink } from "../../../test/support/DatabaseLink.ts"
import { timesSlower } from "../../../test/support/LoopHeld.ts"
import { freshDatabase } from "../../../test/postgres.ts"
import * as Database from "../src/Database.ts"
import { migrate } from "../src/Migrations.ts"
import {
  day,
  dropPartition,
  ensurePartitions,
  partitions,
  startOfDay,
  withPartitions
} from "../src/retention/Partitions.ts"
import { indexPartitions } from "../src/retention/PartitionIndexes.ts"
import { growing } from "../src/Tables.ts"

const english = Buffer.from("no partition of relation")
/** As long, because the length of a message goes before it. */
const german = Buffer.from("keine Partition von Rel.")

/** The server of this run has one language; on this way it has another. */
const translate = (answer: Buffer): Buffer => {
  const at = answer.indexOf(english)
  if (at >= 0) german.copy(answer, at)
  return answer
}

const germanServer = Layer.unwrap(
  Effect.gen(function* () {
    const url = Redacted.value(yield* freshDatabase)
    const link = yield* Effect.acquireRelease(
      Effect.promise(() => DatabaseLink.to(url, { rewrite: translate })),
      (open) => Effect.promise(() => open.close())
    )
    return Database.layer({ url: Redacted.make(link.url) })
  })
)

it.live("Missing partitions are created, whatever the language of the server's message", () =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* migrate
    yield* sql`insert into teams (id, name) values ('tm_one', 'One')`
    const partitions = yield* sql<{ name: string }>`
      select inhrelid::regclass::text as name from pg_inherits where inhparent = 'proxy_exchanges'::regclass`
    for (const { name } of partitions) yield* sql.unsafe(`drop table ${name}`)
    const at = new Date()
    const insert = (status: number) => sql`
      insert into proxy_exchanges (id, team_id, source_id, request_id, target_url, http_method, response_status,
        response_body_truncated, started_at, responded_at, created_at)
      values (${newId(prefixes.proxyExchange, at.getTime())}, 'tm_one', 'src_one', 'req_one', 'https://target.test', 'POST',
        ${status}, false, ${at}, ${at}, ${at})`

    const { reason } = yield* Effect.flip(insert(200))
    expect(String(reason.cause)).toContain(german.toString())
    yield* withPartitions(sql)(insert(200))
    expect(yield* sql`select response_status from proxy_exchanges`).toStrictEqual([{ response_status: 200 }])

    // A violated check has the same SQLSTATE, and no partition mends it: it is not run again.
    yield* sql`alter table proxy_exchanges add constraint "no partition" check (response_status < 600)`
    let runs = 0
    const violating = Effect.suspend(() => {
      runs++
      return insert(700)
    })
    expect((yield* Effect.flip(withPartitions(sql)(violating))).reason._tag).toBe("ConstraintError")
    expect(runs).toBe(1)
  }).pipe(Effect.provide(germanServer), Effect.scoped)
)

const database = Layer.unwrap(
  Effect.map(freshDatabase, (url) => Database.layer({ url, hotConnections: 1, journalConnections: 1 }))
).pipe((made) => Layer.provideMerge(Layer.effectDiscard(migrate), made), Layer.provideMerge(Logger.layer([])))

/** Runs `effect` on connections of its own while a reader has a table open. */
const whileRead = Effect.fnUntraced(function* <A, E>(table: string, effect: Effect.Effect<A, E, SqlClient.SqlClient>) {
  const sql = yield* SqlClient.SqlClient
  const outside = yield* Effect.context<SqlClient.SqlClient>()
  return yield* sql.withTransaction(
    Effect.andThen(
      sql.unsafe(`select 1 from ${table} limit 1`),
      Effect.promise(() => Effect.runPromiseExitWith(outside)(effect))
    )
  )
})

const insertRequest = (sql: SqlClient.SqlClient, at: number) => sql`
  insert into requests (id, team_id, source_id, status, verified, method, path, query, headers, body_size, events_count,
    ignored_count, ingested_at, created_at, updated_at)
  values (${newId(prefixes.request, at)}, 'tm', 'src', 'accepted', true, 'POST', '/', '', '{}', 0, 0, 0, now(), now(), now())`

it.live("Partitions of all tables are created beside a reader, even if the clock jumps", () =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const today = startOfDay(Date.now())
    for (const jump of [40 * day, -40 * day]) {
      const made = yield* whileRead("requests", ensurePartitions(today + jump))
      expect(Exit.isSuccess(made)).toBe(true)
      yield* insertRequest(sql, today + jump)
    }
    const days = (yield* partitions).map(({ start }) => (start - today) / day)
    expect(days).toEqual(
      [-41, -40, -39, -38, -37, -1, 0, 1, 2, 3, 39, 40, 41, 42, 43].flatMap((age) => growing.map(() => age))
    )
    const [{ fill } = {}] =
      yield* sql`select reloptions as fill from pg_class where relname = ${(yield* partitions)[1]!.name}`
    expect(fill).toEqual(["fillfactor=50"])
  }).pipe(Effect.provide(database), Effect.scoped)
)

it.live(
  "A partition is dropped with repeated short attempts to lock it, so that nobody waits long behind the lock",
  () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [oldest] = yield* partitions
      let waited = 0
      const dropped = yield* whileRead(
        "requests",
        Effect.gen(function* () {
          const outside = yield* Effect.context<SqlClient.SqlClient>()
          const dropping = Effect.runPromiseExitWith(outside)(dropPartition(oldest!, Effect.succeed(false)))
          // Inserts go on, although the drop cannot.
          for (let i = 0; i < 40; i++) {
            const since = performance.now()
            yield* insertRequest(sql, Date.now())
            waited = Math.max(waited, performance.now() - since)
            yield* Effect.sleep(50)
          }
          return { dropping }
        })
      )
      expect(waited).toBeLessThan(5_000 * timesSlower())
      const { dropping } = yield* dropped
      const exit = yield* Effect.promise(() => dropping)
      expect(exit).toEqual(Exit.succeed(true))
      expect((yield* partitions).map(({ name }) => name)).not.toContain(oldest!.name)
    }).pipe(Effect.provide(database), Effect.scoped)
)

it.live("A partition that something begins to wait for is kept", () =>
  Effect.gen(function* () {
    const [oldest] = yield* partitions
    expect(yield* dropPartition(oldest!, Effect.succeed(true))).toBe(false)
    expect((yield* partitions).map(({ name }) => name)).toContain(oldest!.name)
  }).pipe(Effect.provide(database), Effect.scoped)
)

it.live("An index that was created for future partitions is also built for the existing ones", () =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const covered = sql<{ valid: boolean; days: number }>`
      select x.indisvalid as valid, (
        select count(*)::int4 from pg_inherits h join pg_index d on d.indexrelid = h.inhrelid
        where h.inhparent = x.indexrelid and d.indisvalid) as days
      from pg_index x where x.indexrelid = 'requests_retried'::regclass`
    const [fresh] = yield* covered
    expect(fresh!.valid).toBe(true)
    // As the migration leaves it where there are days.
    yield* sql`drop index requests_retried`
    yield* sql`create index requests_retried on only requests (team_id, id) where retry_kind is not null`
    expect(yield* covered).toEqual([{ valid: false, days: 0 }])
    // One was built, and the process ended before it was attached.
    const [first] = yield* sql<{ name: string }>`
      select inhrelid::regclass::text as name from pg_inherits where inhparent = 'requests'::regclass order by 1 limit 1`
    yield* sql.unsafe(
      `create index ${first!.name}_requests_retried on ${first!.name} (team_id, id) where retry_kind is not null`
    )
    expect(yield* indexPartitions).toBe(fresh!.days)
    expect(yield* covered).toEqual([fresh])
    expect(yield* indexPartitions).toBe(0)
    // The session went back as it was.
    expect(yield* sql`show statement_timeout`).toEqual([{ statement_timeout: "1min" }])
  }).pipe(Effect.provide(database), Effect.scoped)
)
