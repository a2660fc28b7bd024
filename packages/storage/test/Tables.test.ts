import { PgClient } from "@effect/sql-pg"
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { ShardingConfig, SqlRunnerStorage } from "effect/cluster"
import { SqlClient } from "effect/sql"
import { type AnyResource, type Switch, switches } from "@tidegate/resources/Resource"
import { resources } from "@tidegate/resources/Resources"
import { freshDatabase } from "../../../test/postgres.ts"
import * as Database from "../src/Database.ts"
import { migrate } from "../src/Migrations.ts"
import { removals } from "../src/retention/RetentionDeleted.ts"
import { type Sealed, type Table, tables, tablesThat } from "../src/Tables.ts"

interface Column {
  readonly table: string
  readonly name: string
  readonly nullable: boolean
}

class Catalogue extends Context.Service<
  Catalogue,
  {
    readonly tables: ReadonlyArray<{ readonly name: string; readonly partitioned: string | null; readonly key: string }>
    readonly columns: ReadonlyArray<Column>
    readonly foreignKeys: ReadonlyArray<{ readonly table: string; readonly column: string; readonly of: string }>
    /** Tables whose rows `team_counts` counts. */
    readonly counted: ReadonlyArray<string>
  }
>()("@tidegate/storage/test/Catalogue") {}

/** The schema as migrations and the cluster make it. */
const catalogue = Layer.effect(
  Catalogue,
  Effect.gen(function* () {
    const url = yield* freshDatabase
    return yield* Effect.gen(function* () {
      yield* migrate
      yield* Layer.build(
        SqlRunnerStorage.layer.pipe(Layer.provide([ShardingConfig.layer({}), PgClient.layer({ url })]))
      )
      const sql = yield* SqlClient.SqlClient
      return {
        tables: yield* sql<{ name: string; partitioned: string | null; key: string }>`
          select c.relname as name, pg_get_partkeydef(c.oid) as partitioned, coalesce((
            select string_agg(a.attname, ',' order by k.n) from pg_index i
              cross join lateral unnest(i.indkey::int2[]) with ordinality k (attnum, n)
              join pg_attribute a on a.attrelid = c.oid and a.attnum = k.attnum
            where i.indrelid = c.oid and i.indisprimary), '') as key
          from pg_class c
          where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition`,
        counted: (yield* sql<{ name: string }>`
          select c.relname as name from pg_trigger t join pg_class c on c.oid = t.tgrelid
            join pg_proc p on p.oid = t.tgfoid where p.proname = 'count_of_team'`).map(({ name }) => name),
        foreignKeys: yield* sql<{ table: string; column: string; of: string }>`
          select c.conrelid::regclass::text as table, a.attname as column, c.confrelid::regclass::text as of
          from pg_constraint c join pg_attribute a on a.attrelid = c.conrelid and a.attnum = any(c.conkey)
          where c.contype = 'f' order by 1, 2`,
        columns: yield* sql<Column>`
          select table_name as table, column_name as name, is_nullable = 'YES' as nullable
          from information_schema.columns where table_schema = 'public'`
      }
    }).pipe(Effect.provide(Database.layer({ url, connections: 2, hotConnections: 1, journalConnections: 1 })))
  }).pipe(Effect.scoped)
)

const declaredTables: Readonly<Record<string, Table>> = tables
const declared = Object.entries(declaredTables)

/** Nullable until every row of the version before has been filled in. */
const filledIn = ["deliveries", "dedupe_keys"]

layer(catalogue, { excludeTestServices: true })("Declared tables", (it) => {
  it.effect("The declared tables are exactly the existing tables", () =>
    Effect.gen(function* () {
      const { tables: found } = yield* Catalogue
      expect(declared.map(([name]) => name).sort()).toEqual(found.map(({ name }) => name).sort())
    })
  )

  it.effect("A table has the columns that its resource declares", () =>
    Effect.gen(function* () {
      const { columns: found } = yield* Catalogue
      const ofAll = ["id", "team_id", "name", "recent_commands", "deleted_at", "created_at", "updated_at"]
      for (const { columns, plural, switches: to } of resources as ReadonlyArray<AnyResource>) {
        const declared = Object.entries(columns).map(([field, kind]) => (kind === "since" ? `${field}_at` : field))
        const switched = to.map((name) => switches[name as Switch].column)
        const names = found.filter(({ table }) => table === plural).map(({ name }) => name)
        expect(names, plural).toEqual(expect.arrayContaining([...ofAll, ...declared, ...switched]))
        const sealed = Object.keys(columns).filter((field) => columns[field] === "sealed")
        expect(declaredTables[plural]).toEqual({
          kind: "owned",
          team: "team_id",
          softDeleted: true,
          ...(sealed.length === 0 ? {} : { sealed: Object.fromEntries(sealed.map((name) => [name, { row: "id" }])) })
        })
      }
    })
  )

  it.effect("Rows of every resource are counted by team, so that each has a limit", () =>
    Effect.gen(function* () {
      const { counted } = yield* Catalogue
      expect([...counted].sort()).toEqual(resources.map(({ plural }) => plural).sort())
    })
  )

  it.effect("A row that refers to a deleted resource keeps it or is removed with it", () =>
    Effect.gen(function* () {
      const { columns, foreignKeys } = yield* Catalogue
      const has = (table: string, name: string) => columns.some((one) => one.table === table && one.name === name)
      for (const [name, { by, free, goes }] of Object.entries(removals)) {
        const referring = foreignKeys.filter(({ of }) => of === name)
        expect(
          referring.filter(({ column, table }) => column !== by || ![...free, ...goes].some((one) => one === table)),
          name
        ).toEqual([])
        expect(
          [...free, ...goes].filter((table) => !has(table, by)),
          name
        ).toEqual([])
      }
      expect(foreignKeys.filter(({ of }) => of === "sources").length).toBeGreaterThan(5)
    })
  )

  it.effect("Every table with a team column declares it", () =>
    Effect.gen(function* () {
      const { columns } = yield* Catalogue
      const named = columns.filter(({ name, table }) => name === "team_id" && table in tables).map(({ table }) => table)
      expect(declared.flatMap(([name, { team }]) => (team === "team_id" ? [name] : [])).sort()).toEqual(named.sort())
      const nullable = columns.filter(({ name, nullable, table }) => name === "team_id" && nullable && table in tables)
      expect(nullable.map(({ table }) => table).sort()).toEqual([...filledIn].sort())
    })
  )

  it.effect("Tables are partitioned by day of the declared id, and no others are", () =>
    Effect.gen(function* () {
      const { tables: found } = yield* Catalogue
      expect(
        tablesThat("grows")
          .map(({ by: [column], key, name }) => `${name}: RANGE (${column}), ${key.join()}`)
          .sort()
      ).toEqual(
        found
          .flatMap(({ key, name, partitioned }) => (partitioned === null ? [] : [`${name}: ${partitioned}, ${key}`]))
          .sort()
      )
      for (const { by, key } of tablesThat("grows")) expect(key[0]).toBe(by[0])
    })
  )

  it.effect("All columns that the declaration mentions exist", () =>
    Effect.gen(function* () {
      const { columns, tables: found } = yield* Catalogue
      const has = (table: string, name: string) => columns.some((one) => one.table === table && one.name === name)
      const columnsOf = (table: Table): ReadonlyArray<string> => [
        ...(table.hashed ?? []),
        ...Object.keys(table.sealed ?? {}),
        ...Object.values<Sealed>(table.sealed ?? {}).flatMap(({ of, row }) => [row, of?.[1] ?? row]),
        ...(table.kind === "grows" ? Object.keys(table.payload ?? {}) : []),
        ...(table.kind === "waits" ? [table.about[0]] : []),
        ...(table.kind === "expires" ? [table.at] : [])
      ]
      const said = declared.flatMap(([name, table]) => columnsOf(table).map((column) => [name, column] as const))
      expect(said.filter(([table, column]) => !has(table, column))).toEqual([])
      expect(said.length).toBeGreaterThan(10)
      for (const { name, softDeleted } of tablesThat("owned")) expect(has(name, "deleted_at")).toBe(softDeleted)
      for (const { key, name } of tablesThat("waits")) {
        expect(found.find((table) => table.name === name)?.key).toBe(key.join(","))
      }
    })
  )
})
