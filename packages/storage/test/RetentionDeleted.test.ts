import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Logger } from "effect"
import { SqlClient } from "effect/sql"
import { freshDatabase } from "../../../test/postgres.ts"
import * as Database from "../src/Database.ts"
import { migrate } from "../src/Migrations.ts"
import { day } from "../src/retention/Partitions.ts"
import { retain } from "../src/retention/Retention.ts"
import { removeDeleted } from "../src/retention/RetentionDeleted.ts"

const teams = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`insert into teams (id, name, record_retention_days) values ('tm_usual', 'Usual', null), ('tm_long', 'Long', 100)`
})

const world = Layer.unwrap(Effect.map(freshDatabase, (url) => Database.layer({ url }))).pipe(
  (database) => Layer.provideMerge(Layer.effectDiscard(Effect.andThen(migrate, teams)), database),
  Layer.provideMerge(Logger.layer([])),
  Layer.orDie
)

const now = Date.now()
const defaults = { payloadDays: 5, recordDays: 12 }
const at = (days: number) => new Date(now - days * day)

interface Row {
  /** How many days ago it was deleted; null: it is not. */
  readonly deleted: number | null
  readonly team?: string
}

const make = (table: "sources" | "destinations") =>
  Effect.fnUntraced(function* (id: string, { deleted, team = "tm_usual" }: Row) {
    const sql = yield* SqlClient.SqlClient
    yield* sql`insert into ${sql(table)} (id, team_id, name, type, config, deleted_at, created_at, updated_at)
      values (${id}, ${team}, ${id}, 'WEBHOOK', '{}', ${deleted === null ? null : at(deleted)}, now(), now())`
    return id
  })
const makeSource = make("sources")
const makeDestination = make("destinations")

const makeConnection = Effect.fnUntraced(function* (
  id: string,
  { deleted, destination, source, team = "tm_usual" }: Row & { readonly source: string; readonly destination: string }
) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`insert into connections (id, team_id, name, source_id, destination_id, rules, deleted_at, created_at, updated_at)
    values (${id}, ${team}, ${id}, ${source}, ${destination}, '[]', ${deleted === null ? null : at(deleted)}, now(), now())`
  return id
})

const makeTransformation = Effect.fnUntraced(function* (id: string, { deleted, team = "tm_usual" }: Row) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`insert into transformations (id, team_id, name, code, code_hash, deleted_at, created_at, updated_at)
    values (${id}, ${team}, ${id}, '', '', ${deleted === null ? null : at(deleted)}, now(), now())`
  return id
})

/** The ids of a table. */
const idsOf = Effect.fnUntraced(function* (table: string, column = "id") {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql.unsafe<{ id: string }>(`select ${column} as id from ${table} order by 1`)
  return rows.map(({ id }) => id)
})

/** Without the rows of the test before. */
const empty = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`truncate sources, destinations, connections, transformations, connection_links, source_periods cascade`
})

layer(world, { excludeTestServices: true })("Retention of deleted resources", (it) => {
  it.effect(
    "Deleted sources, destinations, connections and transformations are removed 30 days after their records",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* empty
        for (const [name, row] of [
          ["there", { deleted: null }],
          ["fresh", { deleted: 41 }],
          ["old", { deleted: 43 }],
          ["long", { deleted: 129, team: "tm_long" }],
          ["longer", { deleted: 131, team: "tm_long" }]
        ] as const) {
          const source = yield* makeSource(`src_${name}`, row)
          const destination = yield* makeDestination(`des_${name}`, row)
          yield* makeConnection(`web_${name}`, { ...row, source, destination })
          yield* makeTransformation(`trs_${name}`, row)
          const team = "team" in row ? row.team : "tm_usual"
          yield* sql`insert into source_periods (source_id, team_id, started_at, ends_at, leased, revision)
          values (${source}, ${team}, now(), now(), 0, 1)`
          yield* sql`insert into destination_tokens (destination_id, team_id) values (${destination}, ${team})`
        }
        const counted = yield* sql`select team_id, kind, count from team_counts order by 1, 2`
        expect((yield* retain(defaults)).expired).toBe(8)
        const left = ["fresh", "long", "there"]
        expect(yield* idsOf("sources")).toEqual(left.map((name) => `src_${name}`))
        expect(yield* idsOf("destinations")).toEqual(left.map((name) => `des_${name}`))
        expect(yield* idsOf("connections")).toEqual(left.map((name) => `web_${name}`))
        expect(yield* idsOf("transformations")).toEqual(left.map((name) => `trs_${name}`))
        // What belongs to them goes with them, and deleted rows were not counted in the limits of their teams.
        expect(yield* idsOf("connection_links", "connection_id")).toEqual(left.map((name) => `web_${name}`))
        expect(yield* idsOf("source_periods", "source_id")).toEqual(left.map((name) => `src_${name}`))
        expect(yield* idsOf("destination_tokens", "destination_id")).toEqual(left.map((name) => `des_${name}`))
        expect(yield* sql`select team_id, kind, count from team_counts order by 1, 2`).toEqual(counted)
        expect((yield* retain(defaults)).expired).toBe(0)
      })
  )

  it.effect("A deleted resource stays while something refers to it, and is removed by the next run after that", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* empty
      const row = { deleted: 400 }
      const [busySource, fixed, bare] = [
        yield* makeSource("src_busy", row),
        yield* makeSource("src_fixed", row),
        yield* makeSource("src_bare", row)
      ]
      const [busyDestination, moved] = [
        yield* makeDestination("des_busy", row),
        yield* makeDestination("des_moved", row)
      ]
      const there = yield* makeDestination("des_there", { deleted: null })
      yield* makeConnection("web_busy", { ...row, source: busySource, destination: busyDestination })
      yield* sql`insert into deliveries (event_id, team_id, shard, destination_id, connection_id, due_at)
        values ('evt_waits', 'tm_usual', 1, ${busyDestination}, 'web_busy', now())`
      // A connection that was moved keeps neither of its earlier ends.
      const source = yield* makeSource("src_there", { deleted: null })
      yield* makeConnection("web_moved", { deleted: null, source: bare, destination: moved })
      yield* sql`update connections set source_id = ${source}, destination_id = ${there} where id = 'web_moved'`
      yield* sql`insert into request_fixtures (id, team_id, name, source_id, original_request_id, method, path, query, headers, body,
          verified, created_at, updated_at)
        values ('fix_kept', 'tm_usual', 'kept', ${fixed}, 'req_x', 'POST', '/', '', '{}', '', false, now(), now())`
      // Without the rest of retention, which would remove a waiting row that has no event.
      expect(yield* removeDeleted(now, defaults.recordDays)).toBe(2)
      expect(yield* idsOf("sources")).toEqual(["src_busy", "src_fixed", "src_there"])
      expect(yield* idsOf("destinations")).toEqual(["des_busy", "des_there"])
      expect(yield* idsOf("connections")).toEqual(["web_busy", "web_moved"])
      yield* sql`delete from deliveries`
      yield* sql`delete from request_fixtures`
      expect(yield* removeDeleted(now, defaults.recordDays)).toBe(4)
      expect(yield* idsOf("sources")).toEqual(["src_there"])
      expect(yield* idsOf("destinations")).toEqual(["des_there"])
      expect(yield* idsOf("connections")).toEqual(["web_moved"])
    })
  )

  it.effect("Many deleted rows are removed by one run, and a row that another transaction holds by the next", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* empty
      yield* sql`insert into transformations (id, team_id, name, code, code_hash, deleted_at, created_at, updated_at)
        select 'trs_' || lpad(n::text, 4, '0'), 'tm_usual', n::text, '', '', ${at(100)}, now(), now() from generate_series(1, 120) n`
      const held = yield* Deferred.make<void>()
      const done = yield* Deferred.make<void>()
      const holder = yield* Effect.forkChild(
        sql.withTransaction(
          Effect.andThen(
            sql`select from transformations where id = 'trs_0060' for update`,
            Effect.andThen(Deferred.succeed(held, undefined), Deferred.await(done))
          )
        )
      )
      yield* Deferred.await(held)
      expect(yield* removeDeleted(now, defaults.recordDays)).toBe(119)
      yield* Deferred.succeed(done, undefined)
      yield* Fiber.join(holder)
      expect(yield* idsOf("transformations")).toEqual(["trs_0060"])
      expect(yield* removeDeleted(now, defaults.recordDays)).toBe(1)
    })
  )
})
