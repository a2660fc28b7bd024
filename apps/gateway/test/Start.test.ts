import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { mkdir, readFile, writeFile } from "node:fs/promises"
import { get } from "node:https"
import { type AddressInfo, createServer, type Server } from "node:net"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { PgConnection } from "@effect/sql-pg"
import { Effect, Redacted, type Scope } from "effect"
import { describe, expect, inject, it } from "vitest"
import { emptyDatabase, freshDatabase } from "../../../test/postgres.ts"
import { bundled } from "../../../test/support/Bundle.ts"
import { withoutSettings } from "../../../test/support/GatewayProcess.ts"
import { freePort } from "../../../test/support/Ports.ts"
import { eventually, waitUntil } from "../../../test/support/Waiting.ts"
import { temporaryFolder } from "../../../test/temporaryFolder.ts"

/** What somebody sees who starts a gateway: of a fault a sentence and nothing else; otherwise the banner, and after it nothing but warnings. */

/** Undefined: not set, whatever the default of these suites. */
type Settings = Readonly<Record<string, string | undefined>>
/** The settings of one start, which last as long as its scope. */
type Making = (folder: string) => Effect.Effect<Settings, unknown, Scope.Scope>

const sources = fileURLToPath(new URL("../src/main.ts", import.meta.url))

const start = (settings: Settings, program: string) => {
  const child = spawn(process.execPath, [program], {
    env: { ...withoutSettings(), TIDEGATE_API_KEY: "gwk_of_those_who_start", ...settings },
    stdio: ["ignore", "pipe", "pipe"]
  })
  const shown = { said: "", complained: "" }
  child.stdout.on("data", (data: Buffer) => (shown.said += data.toString()))
  child.stderr.on("data", (data: Buffer) => (shown.complained += data.toString()))
  const ended = new Promise<typeof shown & { readonly code: number | null }>(
    (resolve) => void child.once("close", (code) => resolve({ code, ...shown }))
  )
  return {
    shown,
    ended,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    end: (signal: "SIGTERM" | "SIGHUP") => child.kill(signal),
    kill: () => child.kill("SIGKILL")
  }
}

/** One that does not outlive its scope: from the sources, or from the bundle, as `npm start` does. */
const starting = (settings: Settings, program = sources) =>
  Effect.acquireRelease(
    Effect.sync(() => start(settings, program)),
    ({ ended, kill }) => Effect.promise(() => (kill(), ended))
  )

const portOf = (server: Server): string => String((server.address() as AddressInfo).port)

/** A port at which something listens. */
const taken = Effect.acquireRelease(
  Effect.callback<Server>((resume) => {
    const server = createServer()
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  }),
  (server) => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
).pipe(Effect.map(portOf))

const free = Effect.map(Effect.promise(freePort), String)
const database = Effect.map(freshDatabase, Redacted.value)

const altered = (url: string, change: (url: URL) => void): string => {
  const parsed = new URL(url)
  change(parsed)
  return parsed.href
}

const run = (url: string, ...statements: ReadonlyArray<string>) =>
  PgConnection.make({ url: Redacted.make(url) }).pipe(
    Effect.flatMap((connection) => Effect.forEach(statements, (statement) => connection.query(statement))),
    Effect.scoped
  )

/** A server of a version that is too old, as far as one can ask it: the search path of the database finds its answer first. */
const oldServer = Effect.gen(function* () {
  const url = yield* database
  const name = new URL(url).pathname.slice(1)
  yield* run(
    url,
    "create schema old",
    "create function old.current_setting(text) returns text language sql as $$ select '140011' $$",
    `alter database ${name} set search_path = old, pg_catalog, public`
  )
  return url
})

const publicly = { PUBLIC_URL: Effect.succeed("https://gateway.example.com") }

/** A port at which another program answers: with a line of text, as a web server does. */
const otherProgram = Effect.acquireRelease(
  Effect.callback<Server>((resume) => {
    const server = createServer((socket) => {
      socket.on("error", () => {})
      socket.once("data", () => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"))
    })
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  }),
  (server) => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
).pipe(Effect.map(portOf))

/** A database that the statements have changed. */
const databaseAfter = (made: typeof freshDatabase, ...statements: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const url = Redacted.value(yield* made)
    yield* run(url, ...statements)
    return { DATABASE_URL: url }
  })

/** A home whose data were made by an older PostgreSQL: as much of them as a server reads before it refuses them. */
const olderData = (folder: string) =>
  Effect.promise(async () => {
    const data = join(folder, "home/postgres/data")
    await mkdir(data, { recursive: true, mode: 0o700 })
    await writeFile(join(data, "PG_VERSION"), "17\n")
    await writeFile(join(data, "postgresql.conf"), "")
    await writeFile(join(folder, "home/postgres/password"), "of-the-older-server")
    return {}
  })

const faults: ReadonlyArray<readonly [string, Making, RegExp]> = [
  [
    "the port is taken",
    () => Effect.all({ DATABASE_URL: database, PORT: taken }),
    /^PORT: another process listens at 127\.0\.0\.1:\d+, perhaps a gateway that runs already; end it, or set another PORT$/
  ],
  [
    "the cluster's port is taken",
    () => Effect.all({ DATABASE_URL: database, PORT: free, TIDEGATE_RUNNER_PORT: taken }),
    /^TIDEGATE_RUNNER_PORT: another process listens at 127\.0\.0\.1:\d+; end it, or set another TIDEGATE_RUNNER_PORT$/
  ],
  [
    "the metrics' port is taken",
    () => Effect.all({ DATABASE_URL: database, PORT: free, TIDEGATE_METRICS_PORT: taken }),
    /^TIDEGATE_METRICS_PORT: another process listens at 127\.0\.0\.1:\d+; end it, or set another TIDEGATE_METRICS_PORT$/
  ],
  [
    "the host is not an address of this machine",
    () => Effect.all({ DATABASE_URL: database, PORT: free, HOST: Effect.succeed("203.0.113.5"), ...publicly }),
    /^HOST: 203\.0\.113\.5 is no address of this machine$/
  ],
  [
    "nobody answers at the database's address",
    () => Effect.map(free, (port) => ({ DATABASE_URL: `postgres://ada:pass-word@127.0.0.1:${port}/shop` })),
    /^DATABASE_URL: the PostgreSQL at 127\.0\.0\.1:\d+\/shop cannot be reached \(ECONNREFUSED\); start it, or correct the URL$/
  ],
  [
    "another program answers at the database's address",
    () => Effect.map(otherProgram, (port) => ({ DATABASE_URL: `postgres://ada:pass-word@127.0.0.1:${port}/shop` })),
    /^DATABASE_URL: the PostgreSQL at 127\.0\.0\.1:\d+\/shop is no PostgreSQL: another service answers at this port$/
  ],
  [
    "the database is that of another program",
    () =>
      databaseAfter(
        emptyDatabase,
        "create table customers (id int)",
        "create table migrations (version int)",
        "create table orders (id int)",
        "create table payments (id int)"
      ),
    /^DATABASE_URL: this database has tables that are not the gateway's \(customers, migrations, orders\); give the gateway a database of its own$/
  ],
  [
    "another program migrates the database in the same way",
    () =>
      databaseAfter(
        emptyDatabase,
        "create table migrations (migration_id int, name text)",
        "insert into migrations values (1, 'customers')"
      ),
    /^DATABASE_URL: this database has tables that are not the gateway's \(migrations\); give the gateway a database of its own$/
  ],
  [
    "a newer version has migrated the database",
    () =>
      databaseAfter(
        freshDatabase,
        "insert into migrations (migration_id, name) values (9001, 'of_later')",
        "update settings set value = '9000' where name = 'oldest_starting_migration'"
      ),
    /^this database was migrated to 9001 by a newer version, and this version ends at \d+; start the newer version, or restore a backup from before its migration$/
  ],
  [
    "the embedded database was made by an older PostgreSQL",
    olderData,
    /^The data in \S+\/home\/postgres\/data was made by PostgreSQL 17, and this version of Tidegate brings PostgreSQL [\d.]*\d: start the version that made it, or move the data with pg_dump and pg_restore into a new folder \(TIDEGATE_HOME\)$/
  ],
  [
    "others are to reach it, but its URL is not given",
    () => Effect.map(database, (DATABASE_URL) => ({ DATABASE_URL, HOST: "0.0.0.0" })),
    /^PUBLIC_URL is needed where HOST is not loopback \(0\.0\.0\.0\): set it to .+$/
  ],
  // Without these programs neither a user namespace nor another user can be had. Only root needs one of them.
  ...(process.getuid?.() === 0
    ? ([
        [
          "root has no user namespace for the embedded database",
          (folder) => Effect.succeed({ PATH: folder }),
          /^PostgreSQL does not run as root, and its privileges cannot be lowered here: run as another user, or set DATABASE_URL to a PostgreSQL server \(.+\)$/
        ]
      ] satisfies ReadonlyArray<readonly [string, Making, RegExp]>)
    : []),
  [
    "the database refuses the password",
    () => Effect.map(database, (url) => ({ DATABASE_URL: altered(url, (at) => (at.password = "pass-word")) })),
    /^DATABASE_URL: the PostgreSQL at \S+\/test_\w+ refuses the user or the password$/
  ],
  [
    "there is no such database",
    () => Effect.map(database, (url) => ({ DATABASE_URL: altered(url, (at) => (at.pathname = "/none_of_this_name")) })),
    /^DATABASE_URL: the PostgreSQL at \S+\/none_of_this_name has no database of this name$/
  ],
  [
    "the database is too old",
    () => Effect.map(oldServer, (url) => ({ DATABASE_URL: url })),
    /^DATABASE_URL: this is PostgreSQL 14; 15 or later is needed$/
  ],
  [
    "the database URL has an unknown parameter",
    () => Effect.map(database, (url) => ({ DATABASE_URL: `${url}?sslmode=perhaps` })),
    /^DATABASE_URL: .*sslmode/
  ],
  [
    "an allowed network is invalid",
    () => Effect.map(database, (DATABASE_URL) => ({ DATABASE_URL, TIDEGATE_EGRESS_ALLOW: "10.0.0.0/33" })),
    /^TIDEGATE_EGRESS_ALLOW: "10\.0\.0\.0\/33" is not a network such as 10\.0\.0\.0\/8 or fd00::\/8: .+$/
  ],
  [
    "a secret key is too short",
    () => Effect.map(database, (DATABASE_URL) => ({ DATABASE_URL, TIDEGATE_SECRET_KEYS: "k:c2hvcnQ=" })),
    /^TIDEGATE_SECRET_KEYS: secret key 1 has 5 bytes; 32 are needed$/
  ],
  [
    "the home folder for the keys is a file",
    (folder) =>
      Effect.gen(function* () {
        const TIDEGATE_HOME = join(folder, "file")
        yield* Effect.promise(() => writeFile(TIDEGATE_HOME, ""))
        return { DATABASE_URL: yield* database, TIDEGATE_HOME }
      }),
    /^the secret keys cannot be read or made in \S+\/file \(\w+\): TIDEGATE_HOME must be a folder that this user may write to$/
  ],
  [
    "the home folder for the database is a file",
    (folder) =>
      Effect.gen(function* () {
        const TIDEGATE_HOME = join(folder, "file")
        yield* Effect.promise(() => writeFile(TIDEGATE_HOME, ""))
        return { TIDEGATE_HOME }
      }),
    /^The folder \S+\/file\/postgres cannot be used for PostgreSQL: TIDEGATE_HOME must be one that this user may write to \(ENOTDIR\)$/
  ],
  [
    "the home folder cannot be created",
    () => Effect.succeed({ TIDEGATE_HOME: "/proc/tidegate/home" }),
    /^TIDEGATE_HOME: the folder \/proc\/tidegate\/home cannot be made \(\w+\); it must be one that this user may write to$/
  ],
  [
    "the path of the home folder contains a file",
    (folder) =>
      Effect.gen(function* () {
        const file = join(folder, "file")
        yield* Effect.promise(() => writeFile(file, ""))
        return { DATABASE_URL: yield* database, TIDEGATE_HOME: join(file, "home") }
      }),
    /^TIDEGATE_HOME: the folder \S+\/file\/home cannot be made \(ENOTDIR\); it must be one that this user may write to$/
  ]
]

describe("Gateway that cannot start", () => {
  it.for(faults)("Gateway does not start and says why in one sentence: %s", async ([, making, sentence]) => {
    const { code, complained, said } = await Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const folder = yield* temporaryFolder
          const settings = { TIDEGATE_HOME: join(folder, "home"), PORT: yield* free, ...(yield* making(folder)) }
          const child = yield* starting(settings, yield* Effect.promise(() => bundled("main")))
          yield* Effect.promise(() => waitUntil("it ends", () => child.hasEnded()))
          return yield* Effect.promise(() => child.ended)
        })
      )
    )
    expect(complained).toMatch(/^tidegate: .*\n$/)
    expect(complained.slice("tidegate: ".length, -1)).toMatch(sentence)
    expect(complained).not.toMatch(/pass-word|c2hvcnQ/)
    expect({ code, said }).toEqual({ code: 1, said: "" })
  })
})

/** What the log says, without its warnings: on a busy machine a lease of shards may be late at any moment. */
const messagesOf = (log: string): ReadonlyArray<unknown> =>
  log
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as { readonly level: string; readonly message: unknown })
    .filter(({ level }) => level !== "WARN")
    .map(({ message }) => message)

it("Gateway prints its migrations and its address at start, and refuses a database with other keys", async () => {
  expect(inject("postgresUrl")).toMatch(/^postgres/)
  await Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const url = Redacted.value(yield* emptyDatabase)
        const settings = { DATABASE_URL: url, TIDEGATE_HOME: join(folder, "home") }
        const port = yield* free
        const first = yield* starting({ ...settings, PORT: port })
        yield* Effect.promise(() =>
          eventually("the banner", () => first.shown.said.includes('{"name":"first"}') || null)
        )
        yield* Effect.promise(() =>
          waitUntil("it is ready", async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok)
        )
        // Other keys for the same database.
        const TIDEGATE_SECRET_KEYS = `k:${Buffer.alloc(32, 7).toString("base64")}`
        const other = yield* starting({ ...settings, PORT: yield* free, TIDEGATE_SECRET_KEYS })
        expect(yield* Effect.promise(() => other.ended)).toEqual({
          code: 1,
          said: "",
          complained:
            "tidegate: TIDEGATE_SECRET_KEYS: the secrets in this database were encrypted with another key; give this process the same keys as the others\n"
        })
        // As when its terminal is closed: as cleanly as by SIGTERM.
        first.end("SIGHUP")
        const { code, complained, said } = yield* Effect.promise(() => first.ended)
        const [log, banner] = said.split("\n\n  Tidegate is running (all).\n")
        expect(messagesOf(log!)).toEqual([expect.stringMatching(/^migrated the database: 1 initial to \d+ \w+$/)])
        const lastLine = `-d '{"name":"first"}'\n`
        expect(banner).toContain(lastLine)
        expect(messagesOf(banner!.slice(banner!.indexOf(lastLine) + lastLine.length))).toEqual([])
        expect({ code, complained }).toEqual({ code: 130, complained: "" })
      })
    )
  )
})

it("Runner and second edge on machines of their own make no API key, so the one of the first edge stays valid at both edges", async () => {
  await Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const folder = yield* temporaryFolder
        const settings = {
          DATABASE_URL: yield* database,
          TIDEGATE_API_KEY: undefined,
          TIDEGATE_SECRET_KEYS: `k:${Buffer.alloc(32, 7).toString("base64")}`,
          PUBLIC_URL: "http://gateway.test"
        }
        const run = Effect.fnUntraced(function* (role: "edge" | "runner", name: string = role) {
          const port = yield* free
          const home = join(folder, name)
          const child = yield* starting({ ...settings, TIDEGATE_ROLE: role, TIDEGATE_HOME: home, PORT: port })
          const banner = "Deliveries     to public addresses"
          yield* Effect.promise(() =>
            eventually(`the banner of the ${role}`, () => child.shown.said.includes(banner) || null)
          )
          return { child, home, port }
        })
        const edge = yield* run("edge")
        const runner = yield* run("runner")
        expect(runner.child.shown.said).toContain("API key        that of the edges: a runner has no API\n")
        expect(existsSync(runner.home)).toBe(false)
        const key = (yield* Effect.promise(() => readFile(join(edge.home, "api-key"), "utf8"))).trim()
        const second = yield* run("edge", "second")
        expect(second.child.shown.said).toContain(
          "API key        the one that this database has from another edge; set TIDEGATE_API_KEY to replace it\n"
        )
        expect(existsSync(join(second.home, "api-key"))).toBe(false)
        const headers = { authorization: `Bearer ${key}` }
        for (const { port } of [edge, second]) {
          const answer = yield* Effect.promise(() => fetch(`http://127.0.0.1:${port}/v1/team`, { headers }))
          expect(answer.status).toBe(200)
        }
      })
    )
  )
})

it("Gateway with a certificate answers by TLS and not without", async () => {
  const fixture = (name: string) =>
    fileURLToPath(new URL(`../../../packages/egress/test/fixtures/${name}.pem`, import.meta.url))
  await Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const port = yield* free
        const gateway = yield* starting({
          DATABASE_URL: yield* database,
          TIDEGATE_HOME: join(yield* temporaryFolder, "home"),
          PORT: port,
          TIDEGATE_TLS_CERT: fixture("valid"),
          TIDEGATE_TLS_KEY: fixture("key")
        })
        yield* Effect.promise(() =>
          eventually("the banner", () => gateway.shown.said.includes('{"name":"first"}') || null)
        )
        expect(gateway.shown.said).toContain(`Ingress        https://localhost:${port}/e/{source_id}`)
        const status = yield* Effect.promise(
          () =>
            new Promise((resolve, reject) => {
              const at = { port, host: "127.0.0.1", path: "/healthz", rejectUnauthorized: false, agent: false }
              get(at, (response) => resolve(response.resume().statusCode)).once("error", reject)
            })
        )
        expect(status).toBe(200)
        const plain = yield* Effect.promise(() => fetch(`http://127.0.0.1:${port}/healthz`).catch(() => null))
        expect(plain).toBeNull()
        gateway.end("SIGTERM")
        expect(yield* Effect.promise(() => gateway.ended)).toMatchObject({ code: 130, complained: "" })
      })
    )
  )
})
