import * as PgClient from "@effect/sql-pg/PgClient"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
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

describe("EmbeddedPostgres", () => {
  beforeAll(() =>
    Effect.gen(function* () {
      templateHome = yield* temporaryFolder.pipe(Scope.provide(template))
      const server = yield* start({ home: templateHome })
      yield* query(server.url, "CREATE TABLE kept AS SELECT 1 AS value")
    }).pipe(Effect.scoped, Effect.runPromise)
  )
  afterAll(() => Effect.runPromise(Scope.close(template, Exit.void)))

  it.live("makes everything at the first start and keeps it for the next", () =>
    Effect.gen(function* () {
      const home = join(yield* temporaryFolder, "made", "by", "start")
      const first = yield* Effect.scoped(
        Effect.gen(function* () {
          const server = yield* start({ home })
          assert.isFalse(server.attached)
          assert.match(
            Redacted.value(server.url),
            new RegExp(`^postgresql://gateway:[\\w-]{43}@127.0.0.1:${server.port}/tidegate$`)
          )
          yield* query(server.url, "CREATE TABLE kept AS SELECT 1 AS value")
          return server
        })
      )
      assert.strictEqual(statSync(home).mode & 0o777, 0o700)
      assert.strictEqual(statSync(join(home, "password")).mode & 0o777, 0o600)
      assert.strictEqual(statSync(join(home, "data")).uid, process.getuid?.())
      assert.isFalse(existsSync(join(home, "data", "postmaster.pid")), "stopped with the scope")

      const second = yield* start({ home })
      assert.strictEqual(second.port, first.port)
      assert.deepStrictEqual(yield* query(second.url, "TABLE kept"), [{ value: 1 }])
      assert.deepStrictEqual(
        yield* query(
          second.url,
          "SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commit"
        ),
        [{ fsync: "on", commit: "on" }],
        "every commit is on the disk before it is answered"
      )
    })
  )

  it.live("gives the gateway a role that owns its database and may do nothing else", () =>
    Effect.gen(function* () {
      const home = yield* usedHome
      const server = yield* start({ home })
      const refused = (statement: string) =>
        Effect.map(Effect.flip(query(server.url, statement)), ({ reason }) => reason._tag)
      assert.deepStrictEqual(
        yield* query(
          server.url,
          `SELECT rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls AS more
           FROM pg_roles WHERE rolname = current_user`
        ),
        [{ more: false }]
      )
      for (const statement of [
        "COPY (SELECT 1) TO PROGRAM 'true'",
        "SELECT pg_read_file('postgresql.conf')",
        "ALTER SYSTEM SET fsync = off",
        "CREATE ROLE another",
        "CREATE DATABASE another",
        "ALTER ROLE gateway SUPERUSER"
      ]) {
        assert.strictEqual(yield* refused(statement), "AuthorizationError", statement)
      }
      // Whoever knows the role's password does not know the superuser's.
      const guessed = new URL(Redacted.value(server.url))
      guessed.username = "tidegate"
      const { reason } = yield* Effect.flip(query(Redacted.make(guessed.href), "SELECT 1"))
      assert.strictEqual(reason._tag, "AuthenticationError")
    })
  )

  it.live("hands over a database that an earlier version made as a superuser", () =>
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
      assert.deepStrictEqual(yield* query(url, "TABLE kept"), [{ value: 1 }])
      yield* query(url, "INSERT INTO days VALUES ('a')")
      // Only an owner may do these.
      yield* query(url, "ALTER TABLE days ADD COLUMN more text")
      yield* query(url, "CREATE TABLE days_2 PARTITION OF days FOR VALUES FROM ('b') TO ('c')")
      yield* query(url, "DROP TABLE days_1")
      yield* query(url, "SELECT nextval('turns'), setval('turns', 9)")
      yield* query(url, "CREATE TABLE made AS SELECT 1 AS value")
    })
  )

  it.live("takes another port when the one it had is taken", () =>
    Effect.gen(function* () {
      const home = yield* usedHome
      const port = Number(readFileSync(join(home, "port"), "utf8"))
      const other = yield* Effect.acquireRelease(
        Effect.callback<ReturnType<typeof createServer>>((resume) => {
          const other = createServer().listen(port, "127.0.0.1", () => resume(Effect.succeed(other)))
        }),
        (other) => Effect.sync(() => other.close())
      )
      assert.isTrue(other.listening)
      const server = yield* start({ home })
      assert.notStrictEqual(server.port, port)
      assert.deepStrictEqual(yield* query(server.url, "TABLE kept"), [{ value: 1 }])
      assert.strictEqual(Number(readFileSync(join(home, "port"), "utf8")), server.port)
    })
  )

  it.live("says why it does not start, without delay", () =>
    Effect.gen(function* () {
      const home = yield* usedHome
      writeFileSync(join(home, "data", "PG_VERSION"), "9\n")
      const incompatible = yield* Effect.flip(Effect.scoped(start({ home }))).pipe(Effect.timeout("60 seconds"))
      assert.match(incompatible.message, /incompatible with server.*initialized by PostgreSQL version 9/)

      rmSync(join(home, "password"))
      const locked = yield* Effect.flip(Effect.scoped(start({ home })))
      assert.match(locked.message, /password is missing/)
    })
  )

  it.live("is stopped by the process that started it and started again by one that had joined", () =>
    Effect.gen(function* () {
      const home = yield* usedHome
      const holder = yield* hold(home)
      const server = yield* start({ home })
      assert.isFalse(holder.attached)
      assert.deepInclude(server, { attached: true, pid: holder.pid, port: holder.port })

      assert.strictEqual(yield* holder.end("SIGTERM"), 130)
      const again = yield* server.ensureRunning
      assert.isFalse(again.attached)
      assert.notStrictEqual(again.pid, holder.pid)
      assert.deepStrictEqual(yield* query(server.url, "TABLE kept"), [{ value: 1 }])
    })
  )

  it.live("is left running by a process that had only joined", () =>
    Effect.gen(function* () {
      const home = yield* usedHome
      const server = yield* start({ home })
      const holder = yield* hold(home)
      assert.isTrue(holder.attached)
      yield* holder.end("SIGTERM")
      assert.deepStrictEqual(yield* query(server.url, "TABLE kept"), [{ value: 1 }])
      assert.strictEqual((yield* server.ensureRunning).pid, server.pid)
    })
  )

  it.live("goes with the process that started it when that is killed, and starts anew", () =>
    Effect.gen(function* () {
      const home = yield* usedHome
      const holder = yield* hold(home)
      const joined = yield* start({ home })
      yield* holder.end("SIGKILL")
      const server = yield* start({ home })
      assert.notStrictEqual(server.pid, holder.pid)
      assert.strictEqual(server.port, holder.port)
      const rejoined = yield* joined.ensureRunning
      assert.strictEqual(rejoined.pid, server.pid)
      assert.sameMembers([server.attached, rejoined.attached], [true, false])
      assert.deepStrictEqual(yield* query(server.url, "TABLE kept"), [{ value: 1 }])
    })
  )

  it.live("is one server when two processes start at once, after a first start killed halfway", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const killed = spawnHolder(home)
      yield* Effect.sleep("5 millis").pipe(
        Effect.repeat({ until: () => readdirSync(home).some((entry) => entry.endsWith(".new")) })
      )
      yield* killed.end("SIGKILL")
      assert.isFalse(existsSync(join(home, "data")))

      const [one, other] = yield* Effect.all([hold(home), hold(home)], { concurrency: "unbounded" })
      assert.strictEqual(one.pid, other.pid)
      assert.strictEqual(one.port, other.port)
      assert.sameMembers([one.attached, other.attached], [true, false])
    })
  )

  it.live("comes back when it is killed under load, with every row that was acknowledged", () =>
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
      assert.includeMembers(
        rows.map(({ id }) => id),
        acknowledged
      )
      // Its sessions outlive the killed server by a moment, and may have acknowledged all of these rows.
      const another = yield* server.ensureRunning.pipe(
        Effect.repeat({ until: ({ pid }) => pid !== server.pid }),
        Effect.timeout("60 seconds")
      )
      assert.isAbove(another.pid, 0)
    }).pipe(Effect.provide(Reactivity.layer))
  )

  it.live("runs for a user who is not root", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      // What lets root run PostgreSQL makes a process that is not root, whatever folders root keeps to itself.
      const { prefix } = yield* Binaries.locate(home)
      const holder = yield* hold(home, { prefix })
      assert.isFalse(holder.attached)
      assert.deepStrictEqual(yield* query(holder.url, "SELECT 1 AS value"), [{ value: 1 }])
    })
  )

  it.live.runIf(isRoot)("runs for a root who may not make user namespaces", () =>
    Effect.gen(function* () {
      const home = yield* usedHome
      const refused = join(yield* temporaryFolder, "unshare")
      writeFileSync(refused, "#!/bin/sh\necho unshare failed: Operation not permitted >&2\nexit 1\n")
      chmodSync(refused, 0o755)
      const env = { PATH: join(refused, "..") + delimiter + process.env["PATH"] }

      const holder = yield* hold(home, { env })
      assert.notStrictEqual(statSync(join(home, "data")).uid, 0)
      assert.match(readFileSync(`/proc/${holder.pid}/status`, "utf8"), /^Uid:\s65534\s65534/m)
      assert.deepStrictEqual(yield* query(holder.url, "TABLE kept"), [{ value: 1 }])
      yield* holder.end("SIGKILL")

      const server = yield* start({ home })
      assert.isFalse(server.attached)
      assert.strictEqual(statSync(join(home, "data")).uid, 0)
      assert.deepStrictEqual(yield* query(server.url, "TABLE kept"), [{ value: 1 }])
    })
  )
})
