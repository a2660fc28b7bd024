import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { lockTimeout } from "./Database.ts"
import { lastMigration, oldestStartingName } from "./Migrations.ts"

/** Why this version must not use a database. */
export type Objection =
  /** A pooler is between this process and the server, and has dropped the settings of the session. */
  | { readonly kind: "pooled" }
  /** It has tables, and none of them is a gateway's; `tables` are the first ones. */
  | { readonly kind: "foreign"; readonly tables: ReadonlyArray<string> }
  /** A newer version has migrated the database, and does not work together with this version. */
  | { readonly kind: "newer"; readonly migration: number; readonly known: number }

/** Named in the sentence that the operator reads. */
const shownTables = 3

/** The objection to the database as it is before this version migrates it. It only reads. */
export const objectionTo: Effect.Effect<Objection | null, SqlError.SqlError, SqlClient.SqlClient> = Effect.gen(
  function* () {
    const sql = yield* SqlClient.SqlClient
    // One statement, because another process may be making the tables: `migrations` is the first of them. Tables of extensions do not count.
    const [found] = yield* sql<{ tables: ReadonlyArray<string> | null; migrates: boolean; lockTimeout: string }>`
      select current_setting('lock_timeout') as "lockTimeout", array_agg(relname::text order by relname) as tables,
        coalesce(bool_or(relname = 'migrations' and exists (
          select from pg_catalog.pg_attribute where attrelid = pg_class.oid and attname = 'migration_id')), false) as migrates
      from pg_catalog.pg_class
      where relnamespace = (select oid from pg_catalog.pg_namespace where nspname = current_schema())
        and relkind in ('r', 'p')
        and not exists (select from pg_catalog.pg_depend
          where classid = 'pg_catalog.pg_class'::regclass and objid = pg_class.oid and deptype = 'e')`
    if (found?.lockTimeout !== lockTimeout) return { kind: "pooled" }
    const tables = found.tables ?? []
    if (tables.length === 0) return null
    const foreign = { kind: "foreign", tables: tables.slice(0, shownTables) } as const
    if (!found.migrates) return foreign
    const rows = yield* sql<{ id: number; name: string }>`
      select migration_id as id, name from migrations order by migration_id`
    const [first, last] = [rows.at(0), rows.at(-1)]
    // Another process has made this table a moment ago, and its migrations are not committed yet.
    if (first === undefined || last === undefined) return tables.length === 1 ? null : foreign
    if (first.id !== 1 || first.name !== "initial") return foreign
    // The same, and they were committed between the two statements.
    if (tables.length === 1) return null
    if (!tables.includes("settings")) return foreign
    const [oldest] = yield* sql<{ value: string }>`select value from settings where name = ${oldestStartingName}`
    return Number(oldest?.value ?? 0) > lastMigration
      ? { kind: "newer", migration: last.id, known: lastMigration }
      : null
  }
)
