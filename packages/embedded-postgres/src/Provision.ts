import * as PgConnection from "@effect/sql-pg/PgConnection"
import { Effect, Redacted } from "effect"
import type { SqlError } from "effect/sql"
import { createHmac } from "node:crypto"

/** The role that initdb creates. */
export const superuser = "tidegate"
const role = "gateway"
const database = "tidegate"

/** How to connect to a server of the home folder. */
export interface Access {
  /** The database `tidegate` with the role that owns it, which has no other rights. */
  readonly url: Redacted.Redacted
  /** The same database with the superuser role, which may also run programs and read files of this machine. */
  readonly superuserUrl: Redacted.Redacted
}

/** `password`: the superuser's. The role's password is derived from it one-way, so that it does not reveal the superuser's. */
export const accessTo = (port: number, password: Redacted.Redacted): Access => {
  const address = (user: string, secret: string) =>
    Redacted.make(`postgresql://${user}:${secret}@127.0.0.1:${port}/${database}`)
  const own = Redacted.value(password)
  return {
    url: address(role, createHmac("sha256", own).update(role).digest("base64url")),
    superuserUrl: address(superuser, own)
  }
}

/**
 * Creates the gateway's role and database. It runs at every start, so an interrupted first start does no harm, and
 * databases from before the role existed get the new owner.
 */
export const provision = (access: Access): Effect.Effect<void, SqlError.SqlError> =>
  Effect.andThen(
    connected(access.superuserUrl, "postgres", prepareServer(new URL(Redacted.value(access.url)).password)),
    connected(access.superuserUrl, database, handOver)
  )

const connected = (
  url: Redacted.Redacted,
  name: string,
  use: (connection: PgConnection.PgConnection) => Effect.Effect<void, SqlError.SqlError>
): Effect.Effect<void, SqlError.SqlError> => {
  const at = new URL(Redacted.value(url))
  at.pathname = name
  return Effect.scoped(Effect.flatMap(PgConnection.make({ url: Redacted.make(at.href) }), use))
}

const isThere = (
  connection: PgConnection.PgConnection,
  statement: string,
  parameter: string
): Effect.Effect<boolean, SqlError.SqlError> =>
  Effect.map(connection.query(statement, [parameter]), ({ rows }) => rows.length > 0)

const prepareServer = (rolePassword: string) =>
  Effect.fnUntraced(function* (connection: PgConnection.PgConnection) {
    const attributes = "login nosuperuser nocreatedb nocreaterole noreplication nobypassrls"
    const known = yield* isThere(connection, "select from pg_roles where rolname = $1", role)
    yield* connection.query(`${known ? "alter" : "create"} role ${role} ${attributes} password '${rolePassword}'`)
    if (!(yield* isThere(connection, "select from pg_database where datname = $1", database))) {
      yield* connection.query(`create database ${database} owner ${role}`)
    }
    // Not all platforms' binaries support it, and a server does not start with an unknown setting.
    const { rows: compressions } = yield* connection.query(
      `select name from pg_settings where name in ('wal_compression', 'default_toast_compression')
       and 'lz4' = any (enumvals) and setting <> 'lz4'`
    )
    for (const { name } of compressions) yield* connection.query(`alter system set ${String(name)} = 'lz4'`)
    if (compressions.length > 0) yield* connection.query("select pg_reload_conf()")
  })

/** Changes the owner of all objects in the gateway's database from the superuser to the role. A column's sequence changes with its table. */
const handOver = Effect.fnUntraced(function* (connection: PgConnection.PgConnection) {
  const owned = `
    select c.oid::regclass::text as name from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relowner = $1::regrole and (
      c.relkind in ('r', 'p', 'v', 'm')
      or c.relkind = 'S' and not exists (
        select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype in ('a', 'i')))`
  if (
    yield* isThere(
      connection,
      `select from pg_database where datname = '${database}' and datdba = $1::regrole`,
      superuser
    )
  ) {
    yield* connection.query(`alter database ${database} owner to ${role}`)
  }
  const { rows } = yield* connection.query(owned, [superuser])
  for (const { name } of rows) yield* connection.query(`alter table ${String(name)} owner to ${role}`)
})

/** Succeeds if the server accepts the gateway's role. */
export const greet = ({ url }: Access): Effect.Effect<void, SqlError.SqlError> =>
  Effect.asVoid(Effect.scoped(PgConnection.make({ url })))
