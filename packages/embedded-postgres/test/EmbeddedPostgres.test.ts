import * as PgClient from "@effect/sql-pg/PgClient"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Redacted, Schema, Scope } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import { spawn } from "node:child_process"
import { chmodSync, cpSync, existsSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { delimiter, join } from "node:path"
import { start } from "../src/EmbeddedPostgres.ts"
import * as Binaries from "../src/Binaries.ts"
import { temporaryFolder } from "../../../test/temporaryFolder.ts"

const isRoot = process.getuid?.() === 0
const isLinux = process.platform === "linux"

/** A home that has been started once, holding the table `kept` with one row. Copied, because initdb takes most of a second. */
const template = Scope.makeUnsafe()
let templateHome = ""
const usedHome = Effect.tap(temporaryFolder, (path) =>
  Effect.sync(() => cpSync(templateHome, path, { recursive: true }))
)

const query = (url: Redacted.Redacted, statement: string) =>
  PgConnection.make({ url }).pipe(
    Effect.flatMap((connection) => connection.query(statement)),
    Effect.map(({ rows }) => rows),
    Effect.scoped
  )

const Report = Schema.fromJsonString(
  Schema.Struct({
    attached: Schema.Boolean,
    pid: Schema.Number,
    port: Schema.Number,
    url: Schema.RedactedFromValue(Schema.String)
  })
)

interface HolderOptions {
  readonly prefix?: ReadonlyArray<string>
  readonly env?: NodeJS.ProcessEnv
}

const spawnHolder = (home: string, { env, prefix = [] }: HolderOptions = {}) => {
  const said = Deferred.makeUnsafe<string>()
  const ended = Deferred.makeUnsafe<number | NodeJS.Signals | null>()
  const script = join(import.meta.dirname, "holder.ts")
  const [program, ...args] = [...prefix, process.execPath, script, home]
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, ...env } })
  child.stdout.setEncoding("utf8").once("data", (line: string) => Deferred.doneUnsafe(said, Effect.succeed(line)))
  child.once("exit", (code, signal) => Deferred.doneUnsafe(ended, Effect.succeed(code ?? signal)))
  return {
    said: Effect.raceFirst(
      Deferred.await(said),
      Effect.flatMap(Deferred.await(ended), (how) => Effect.die(new Error(`The holder ended before it held: ${how}`)))
    ),
    end: (signal: NodeJS.Signals) => {
      child.kill(signal)
      return Deferred.await(ended)
    }
  }
}

/** Another process that has started or joined the server of the home folder; it ends with the scope. */
const hold = Effect.fnUntraced(function* (home: string, options?: HolderOptions) {
  const { end, said } = yield* Effect.acquireRelease(
    Effect.sync(() => spawnHolder(home, options)),
    (holder) => holder.end("SIGTERM")
  )
  return { ...(yield* Schema.decodeEffect(Report)(yield* said)), end }
})

describe("Embedded PostgreSQL", () => {
  beforeAll(() =>
    Effect.gen(function* () {
      templateHome = yield* temporaryFolder.pipe(Scope.provide(template))
      const server = yield* start({ home: templateHome })
      yield* query(server.url, "CREATE TABLE kept AS SELECT 1 AS value")
    }).pipe(Effect.scoped, Effect.runPromise)
  )
  afterAll(() => Effect.runPromise(Scope.close(template, Exit.void)))

  it.live("Embedded PostgreSQL creates its files at the first start and reuses them at the next", () =>
    Effect.gen(function* () {
      const home = join(yield* temporaryFolder, "made", "by", "start")
      const first = yield* Effect.scoped(
        Effect.gen(function* () {
          const server = yield* start({ home })
          expect(server.attached).toBe(false)
          expect(Redacted.value(server.url)).toMatch(
            new RegExp(`^postgresql://gateway:[\\w-]{43}@127.0.0.1:${server.port}/tidegate$`)
          )
          yield* query(server.url, "CREATE TABLE kept AS SELECT 1 AS value")
          return server
        })
      )
      expect(statSync(home).mode & 0o777).toBe(0o700)
      expect(statSync(join(home, "password")).mode & 0o777).toBe(0o600)
      expect(statSync(join(home, "data")).uid).toBe(process.getuid?.())
      expect(existsSync(join(home, "data", "postmaster.pid")), "stopped with the scope").toBe(false)

      const second = yield* start({ home })
      expect(second.port).toBe(first.port)
      expect(yield* query(second.url, "TABLE kept")).toStrictEqual([{ value: 1 }])
      expect(
        yield* query(
          second.url,
          "SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commit"
        ),
        "every commit is on the disk before it is answered"
      ).toStrictEqual([{ fsync: "on", commit: "on" }])
    })
  )

  it.live("Embedded PostgreSQL gives the gateway a role that owns its database and has no other rights", () =>
    Effect.gen(function* () {
      const home = yield* usedHome
      const server = yield* start({ home })
      const refused = (statement: string) =>
        Effect.map(Effect.flip(query(server.url, statement)), ({ reason }) => reason._tag)
      expect(
        yield* query(
          server.url,
          `SELECT rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls AS more
           FROM pg_roles WHERE rolname = current_user`
        )
      ).toStrictEqual([{ more: false }])
      for (const statement of [
        "COPY (SELECT 1) TO PROGRAM 'true'",
        "SELECT pg_read_file('postgresql.conf')",
        "ALTER SYSTEM SET fsync = off",
        "CREATE ROLE another",
        "CREATE DATABASE another",
        "ALTER ROLE gateway SUPERUSER"
      ]) {
        expect(yield* refused(statement), statement).toBe("AuthorizationError")
      }
      // Whoever knows the role's password does not know the superuser's.
      const guessed = new URL(Redacted.value(server.url))
      guessed.username = "tidegate"
      const { reason } = yield* Effect.flip(query(Redacted.make(guessed.href), "SELECT 1"))
      expect(reason._tag).toBe("AuthenticationError")
    })
  )

  it.live("Embedded PostgreSQL hands over a database that an earlier version created as a superuser", () =>
    Effect.gen(function* () {
      const home = yield* usedHome
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { superuserUrl } = yield* start({ home })
          for (const statement of [
            "ALTER DATABASE tidegate OWNER TO tidegate",
            "ALTER TABLE kept OWNER TO tidegate",
            "DROP ROLE gateway",
            "CREATE TABLE days (id text PRIMARY KEY, number serial) PARTITION BY RANGE (id)",
            "CREATE TABLE days_1 PARTITION OF days FOR VALUES FROM ('a') TO ('b')",
            "CREATE SEQUENCE turns"
          ]) {
            yield* query(superuserUrl, statement)
          }
        })
      )
      const { url } = yield* start({ home })
      expect(yield* query(url, "TABLE kept")).toStrictEqual([{ value: 1 }])
      yield* query(url, "INSERT INTO days VALUES ('a')")
      // Only an owner may do these.
      yield* query(url, "ALTER TABLE days ADD COLUMN more text")
      yield* query(url, "CREATE TABLE days_2 PARTITION OF days FOR VALUES FROM ('b') TO ('c')")
      yield* query(url, "DROP TABLE days_1")
      yield* query(url, "SELECT nextval('turns'), setval('turns', 9)")
      yield* query(url, "CREATE TABLE made AS SELECT 1 AS value")
    })
  )

  it.live("Embedded PostgreSQL takes another port when its previous port is in use", () =>
    Effect.gen(function* () {
      const home = yield* usedHome
      const port = Number(readFileSync(join(home, "port"), "utf8"))
      const other = yield* Effect.acquireRelease(
        Effect.callback<ReturnType<typeof createServer>>((resume) => {
          const other = createServer().listen(port, "127.0.0.1", () => resume(Effect.succeed(other)))
        }),
        (other) => Effect.sync(() => other.close())
      )
      expect(other.listening).toBe(true)
      const server = yield* start({ home })
      expect(server.port).not.toBe(port)
      expect(yield* query(server.url, "TABLE kept")).toStrictEqual([{ value: 1 }])
      expect(Number(readFileSync(join(home, "port"), "utf8"))).toBe(server.port)
    })
  )

  it.live("Embedded PostgreSQL that cannot start reports the cause without delay", () =>
    Effect.gen(function* () {
      const home = yield* usedHome
      writeFileSync(join(home, "data", "PG_VERSION"), "9\n")
      const incompatible = yield* Effect.flip(Effect.scoped(start({ home }))).pipe(Effect.timeout("60 seconds"))
      expect(incompatible.message).toMatch(
        /was made by PostgreSQL 9, and this version of Tidegate brings PostgreSQL [\d.]*\d:/
      )

      rmSync(join(home, "password"))
      const locked = yield* Effect.flip(Effect.scoped(start({ home })))
      expect(locked.message).toMatch(/password is missing/)
    })
  )

  it.live("Embedded PostgreSQL is stopped by the process that started it and restarted by one that had joined", () =>
    Effect.gen(function* () {
      const home = yield* usedHome
      const holder = yield* hold(home)
      const server = yield* start({ home })
      expect(holder.attached).toBe(false)
      expect(server).toMatchObject({ attached: true, pid: holder.pid, port: holder.port })

      expect(yield* holder.end("SIGTERM")).toBe(130)
      const again = yield* server.ensureRunning
      expect(again.attached).toBe(false)
      expect(again.pid).not.toBe(holder.pid)
      expect(yield* query(server.url, "TABLE kept")).toStrictEqual([{ value: 1 }])
    })
  )

  it.live("Embedded PostgreSQL keeps running when a process that had only joined ends", () =>
    Effect.gen(function* () {
      const home = yield* usedHome
      const server = yield* start({ home })
      const holder = yield* hold(home)
      expect(holder.attached).toBe(true)
      yield* holder.end("SIGTERM")
      expect(yield* query(server.url, "TABLE kept")).toStrictEqual([{ value: 1 }])
      expect((yield* server.ensureRunning).pid).toBe(server.pid)
    })
  )

  it.live("Embedded PostgreSQL ends when the process that started it is killed, and can be started again", () =>
    Effect.gen(function* () {
      const home = yield* usedHome
      const holder = yield* hold(home)
      const joined = yield* start({ home })
      yield* holder.end("SIGKILL")
      const server = yield* start({ home })
      expect(server.pid).not.toBe(holder.pid)
      expect(server.port).toBe(holder.port)
      const rejoined = yield* joined.ensureRunning
      expect(rejoined.pid).toBe(server.pid)
      expect(server.attached).toBe(!rejoined.attached)
      expect(yield* query(server.url, "TABLE kept")).toStrictEqual([{ value: 1 }])
    })
  )

  it.live("Embedded PostgreSQL is one server for two concurrent starts, even after a start killed halfway", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const killed = spawnHolder(home)
      yield* Effect.sleep("5 millis").pipe(
        Effect.repeat({ until: () => readdirSync(home).some((entry) => entry.endsWith(".new")) })
      )
      yield* killed.end("SIGKILL")
      expect(existsSync(join(home, "data"))).toBe(false)

      const [one, other] = yield* Effect.all([hold(home), hold(home)], { concurrency: "unbounded" })
      expect(one.pid).toBe(other.pid)
      expect(one.port).toBe(other.port)
      expect(one.attached).toBe(!other.attached)
    })
  )

  it.live("Embedded PostgreSQL restarts after it was killed under load and keeps every acknowledged row", () =>
    Effect.gen(function* () {
      const server = yield* start({ home: yield* usedHome })
      const sql = yield* PgClient.make({ url: server.url, maxConnections: 4 })
      yield* sql`CREATE TABLE written (id integer)`
      // A session that waits for nothing does not notice the end of its server, and would bar the way to the next one.
      if (isLinux) yield* Effect.forkScoped(Effect.exit(query(server.url, "DO $$ BEGIN LOOP END LOOP; END $$")))

      const acknowledged: Array<number> = []
      let next = 0
      let enough = { rows: 200, reached: Deferred.makeUnsafe<void>() }
      const write = Effect.suspend(() => {
        const id = next++
        return Effect.map(sql`INSERT INTO written VALUES (${id})`, () => {
          if (acknowledged.push(id) === enough.rows) Deferred.doneUnsafe(enough.reached, Effect.void)
        })
      })
      const load = yield* write.pipe(
        Effect.catch(() => Effect.sleep("50 millis")),
        Effect.forever,
        Effect.replicateEffect(8, { concurrency: "unbounded" }),
        Effect.forkScoped
      )

      yield* Deferred.await(enough.reached)
      process.kill(server.pid, "SIGKILL")
      enough = { rows: acknowledged.length + 200, reached: Deferred.makeUnsafe<void>() }
      yield* Deferred.await(enough.reached).pipe(Effect.timeout("60 seconds"))
      yield* Fiber.interrupt(load)

      const rows = yield* sql<{ id: number }>`SELECT id FROM written`
      expect(rows.map(({ id }) => id)).toEqual(expect.arrayContaining(acknowledged))
      // Its sessions outlive the killed server by a moment, and may have acknowledged all of these rows.
      const another = yield* server.ensureRunning.pipe(
        Effect.repeat({ until: ({ pid }) => pid !== server.pid }),
        Effect.timeout("60 seconds")
      )
      expect(another.pid).toBeGreaterThan(0)
    }).pipe(Effect.provide(Reactivity.layer))
  )

  it.live("Embedded PostgreSQL runs for a user who is not root", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      // What lets root run PostgreSQL makes a process that is not root, whatever folders root keeps to itself.
      const { prefix } = yield* Binaries.locate(home)
      const holder = yield* hold(home, { prefix })
      expect(holder.attached).toBe(false)
      expect(yield* query(holder.url, "SELECT 1 AS value")).toStrictEqual([{ value: 1 }])
    })
  )

  it.live.runIf(isRoot)("Embedded PostgreSQL runs for a root user who may not create user namespaces", () =>
    Effect.gen(function* () {
      const home = yield* usedHome
      const refused = join(yield* temporaryFolder, "unshare")
      writeFileSync(refused, "#!/bin/sh\necho unshare failed: Operation not permitted >&2\nexit 1\n")
      chmodSync(refused, 0o755)
      const env = { PATH: join(refused, "..") + delimiter + process.env["PATH"] }

      const holder = yield* hold(home, { env })
      expect(statSync(join(home, "data")).uid).not.toBe(0)
      expect(readFileSync(`/proc/${holder.pid}/status`, "utf8")).toMatch(/^Uid:\s65534\s65534/m)
      expect(yield* query(holder.url, "TABLE kept")).toStrictEqual([{ value: 1 }])
      yield* holder.end("SIGKILL")

      const server = yield* start({ home })
      expect(server.attached).toBe(false)
      expect(statSync(join(home, "data")).uid).toBe(0)
      expect(yield* query(server.url, "TABLE kept")).toStrictEqual([{ value: 1 }])
    })
  )
})
