import { Effect, Option, type Redacted, type Scope } from "effect"
import { randomBytes, randomInt } from "node:crypto"
import { existsSync, readdirSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import type { Binaries } from "./Binaries.ts"
import { attempt, EmbeddedPostgresError } from "./EmbeddedPostgresError.ts"
import * as Home from "./Home.ts"
import * as KernelLock from "./KernelLock.ts"
import * as Postmaster from "./Postmaster.ts"
import { type Access, accessTo, greet, provision, superuser } from "./Provision.ts"

/** A server that accepts connections, from the view of this process. */
export interface Running extends Access {
  readonly port: number
  readonly pid: number
  /** Whether another process has started it. */
  readonly attached: boolean
  readonly isRunning: () => boolean
  /** Completes when the server process has ended, with what is known of the reason. */
  readonly ended: Effect.Effect<string>
}

/** How a server is started. */
export interface Wanted {
  /** The port on 127.0.0.1. Default: a free one, chosen once and stored in the home folder. */
  readonly port?: number | undefined
  /**
   * Whether commits may be lost when the machine fails, because the files are deleted anyway: for tests alone. They are not lost when
   * a process is killed. Default: false.
   */
  readonly disposable?: boolean | undefined
}

/**
 * Joins the server of the home folder, or starts it if no living process runs one. With `port`, a server at any
 * other port is a failure. A server that is started here stops when the scope closes.
 */
export const attachOrStart = (
  home: Home.Home,
  binaries: Binaries,
  wanted: Wanted
): Effect.Effect<Running, EmbeddedPostgresError, Scope.Scope> =>
  Effect.gen(function* () {
    const password = yield* Home.password(home)
    const server = yield* ownedByAnother(home, password)
    if (Option.isSome(server)) return yield* attachTo(home, server.value, wanted.port, password)
    yield* endStray(home)
    if (!existsSync(home.data)) yield* initialize(home, binaries)
    return yield* startOwn(home, binaries, wanted, password)
  }).pipe(KernelLock.withLock(home.startLock))

/** Returns the server of another living process, if it answers. If there is none, it takes the owner lock, and the caller starts the server. */
const ownedByAnother = (home: Home.Home, password: Redacted.Redacted) =>
  Effect.gen(function* () {
    while (!(yield* KernelLock.tryAcquire(home.ownerLock))) {
      const server = Postmaster.find(home.data)
      if (server?.ready === true && (yield* answers(accessTo(server.port, password)))) {
        return Option.some(server)
      }
      // The server is stopping, or its owner is about to notice its end and to release the lock.
      yield* Effect.sleep("20 millis")
    }
    return Option.none<Postmaster.Postmaster>()
  }).pipe(
    Effect.timeoutOrElse({
      duration: "60 seconds",
      orElse: () =>
        new EmbeddedPostgresError({
          message:
            `Another process holds ${home.path}, and its PostgreSQL server does not answer here. ` +
            "Processes in separate containers cannot share the folder: set DATABASE_URL for them"
        })
    })
  )

const attachTo = Effect.fnUntraced(function* (
  home: Home.Home,
  server: Postmaster.Postmaster,
  port: number | undefined,
  password: Redacted.Redacted
) {
  if (port !== undefined && port !== server.port) {
    return yield* new EmbeddedPostgresError({
      message: `The PostgreSQL server of ${home.path} runs at port ${server.port}, not at ${port}`
    })
  }
  const isRunning = () => Postmaster.isServing(server.pid, home.data)
  return {
    ...accessTo(server.port, password),
    port: server.port,
    pid: server.pid,
    attached: true,
    isRunning,
    // The server is another process's child, so its end can only be detected by polling.
    ended: Effect.sleep("200 millis").pipe(Effect.repeat({ while: isRunning }), Effect.as("stopped or killed"))
  } satisfies Running
})

/** Stops a server whose owner died without stopping it, which is possible on systems whose kernel does not do that. */
const endStray = Effect.fnUntraced(function* (home: Home.Home) {
  const stray = Postmaster.find(home.data)
  if (stray !== undefined) {
    Postmaster.send(stray.pid, "SIGINT")
    yield* Effect.sleep("20 millis").pipe(
      Effect.repeat({ while: () => Postmaster.isServing(stray.pid, home.data) }),
      Effect.timeoutOrElse({
        duration: "10 seconds",
        orElse: () => Effect.sync(() => Postmaster.send(stray.pid, "SIGQUIT"))
      })
    )
  }
  // Another program may have the process id in the file by now, and PostgreSQL would treat it as a server. Removing the file is safe: a
  // server that has lost only its file still holds its shared memory, at which the new one would stop.
  if (Postmaster.find(home.data) === undefined) {
    yield* attempt(`What a dead server left in ${home.data} cannot be removed`, () =>
      rmSync(Postmaster.pidFile(home.data), { force: true })
    )
  }
})

const initdbFlags = [
  "--auth=scram-sha-256",
  "--encoding=UTF8",
  "--locale=C",
  "--locale-provider=builtin",
  "--builtin-locale=C.UTF-8"
]

const unfinishedData = /^data\.[0-9a-f]+\.new$/

/**
 * Creates the data directory in a temporary folder first, so that an interrupted initdb leaves none; each time in a new folder, because an
 * initdb whose parent was killed may still be running.
 */
const initialize = Effect.fnUntraced(function* (home: Home.Home, binaries: Binaries) {
  const unfinished = `${home.data}.${randomBytes(4).toString("hex")}.new`
  const position = Home.logEnd(home)
  yield* Effect.ignore(
    attempt("What an interrupted initdb left cannot be removed", () => {
      for (const entry of readdirSync(home.path)) {
        if (unfinishedData.test(entry)) rmSync(join(home.path, entry), { recursive: true, force: true })
      }
    })
  )
  const ended = yield* Effect.scoped(
    Effect.flatMap(
      Postmaster.run(
        binaries,
        [binaries.initdb, "-D", unfinished, "--username", superuser, "--pwfile", home.password, ...initdbFlags],
        home.log
      ),
      (initdb) => initdb.ended
    )
  )
  if (ended !== "exit code 0") {
    return yield* new EmbeddedPostgresError({
      message: `The data directory ${home.data} cannot be made (${ended}): ${gist(Home.logSince(home, position))}`
    })
  }
  return yield* attempt(`${home.data} cannot be made`, () => Home.renameDurably(unfinished, home.data))
})

const startPatienceMillis = 10_000

/**
 * Starts the server. Remains of a killed server, or another program at the port, may block a new one for a moment, and the new one may be
 * killed, too: such starts are repeated for up to 10 seconds. A server that is running and recovering is waited for without a limit,
 * because an interrupted recovery starts again.
 */
const startOwn = Effect.fnUntraced(function* (
  home: Home.Home,
  binaries: Binaries,
  { disposable = false, port }: Wanted,
  password: Redacted.Redacted
) {
  if (binaries.owner !== undefined) yield* Home.giveData(home, binaries.owner)
  yield* Home.rotateLog(home)
  const deadline = performance.now() + startPatienceMillis
  while (true) {
    const position = Home.logEnd(home)
    const chosen = port ?? (yield* choosePort(home))
    const access = accessTo(chosen, password)
    const server = yield* Postmaster.run(
      binaries,
      Postmaster.serve(binaries, home.data, settings(chosen, disposable)),
      home.log
    )
    const failure = yield* Effect.raceFirst(
      prepare(home, server.pid, chosen, access).pipe(
        // A connection breaks before the end of the server is detected, and that end is the real cause.
        Effect.tapError(() => Effect.sleep("100 millis")),
        Effect.as(undefined)
      ),
      Effect.map(server.ended, (how) => ({ how, said: Home.logSince(home, position) }))
    )
    if (failure === undefined) {
      yield* Home.rememberPort(home, chosen)
      return { ...server, ...access, port: chosen, attached: false } satisfies Running
    }
    const other = incompatible.exec(failure.said)
    if (other !== null) {
      return yield* new EmbeddedPostgresError({
        message:
          `The data in ${home.data} was made by PostgreSQL ${other[1]}, and this version of Tidegate brings PostgreSQL ${other[2]}: ` +
          "start the version that made it, or move the data with pg_dump and pg_restore into a new folder (TIDEGATE_HOME)"
      })
    }
    const mayPass = failure.how.startsWith("SIG") || passing.test(failure.said)
    if (!mayPass || performance.now() > deadline) {
      return yield* new EmbeddedPostgresError({
        message: `PostgreSQL does not start (${failure.how}): ${gist(failure.said)}; see ${home.log}`
      })
    }
    if (orphaned.test(failure.said)) Postmaster.endOrphans(home.data)
    yield* Effect.sleep("50 millis")
  }
})

const incompatible =
  /initialized by PostgreSQL version (\S+), which is not compatible with this version (\d+(?:\.\d+)*)/
const orphaned = /pre-existing shared memory block/
const passing = /pre-existing shared memory block|lock file .* already exists|could not bind/

/** The lines of the log with the reason, or else its last line. */
const gist = (log: string) => {
  const lines = log.trim().split("\n")
  const telling = lines.filter((line) => /(FATAL|PANIC|DETAIL|HINT|error):/.test(line))
  return (telling.length > 0 ? telling.slice(-3) : lines.slice(-1)).join(" ")
}

/** Waits until the server accepts connections, and creates the gateway's role and database. */
const prepare = Effect.fnUntraced(function* (home: Home.Home, pid: number, port: number, access: Access) {
  const isReady = () => {
    const server = Postmaster.find(home.data)
    return server?.pid === pid && server.ready
  }
  // Reads the server's status file instead of connecting, because the server would log every early attempt.
  yield* Effect.sleep("5 millis").pipe(Effect.repeat({ until: isReady }))
  yield* Effect.mapError(
    provision(access),
    (cause) =>
      new EmbeddedPostgresError({ message: `PostgreSQL at port ${port} has started, but cannot be used`, cause })
  )
})

/** Whether another process's server can be used. If an older version started it, it may need the role and database first. */
const answers = (access: Access): Effect.Effect<boolean> =>
  Effect.isSuccess(Effect.catch(greet(access), () => provision(access)))

/**
 * The server fills it in any case, and more gains nothing: events are written at the end of today's partitions and read soon, so the newest
 * pages are enough. Older pages come from the page cache, which the system can reclaim.
 */
const sharedBuffers = "64MB"

const settings = (port: number, disposable: boolean) => ({
  port,
  listen_addresses: "127.0.0.1",
  // The length of a socket's path is limited, but that of the home folder is not.
  unix_socket_directories: "",
  max_connections: 200,
  shared_buffers: sharedBuffers,
  // Some flushes of saturated ingress; the default would be a 32nd of the buffers.
  wal_buffers: "2MB",
  // Its process would take memory, and wait for subscriptions that nobody makes.
  max_logical_replication_workers: 0,
  // Acknowledged requests must be on disk: the product's guarantee depends on these two settings.
  fsync: disposable ? "off" : "on",
  synchronous_commit: "on",
  max_wal_size: "2GB",
  checkpoint_completion_target: 0.9,
  jit: "off",
  timezone: "UTC",
  log_timezone: "UTC",
  log_min_messages: "warning"
})

/** Below the ports that systems assign to clients: a client that retries a stopped server could otherwise connect to itself. */
const [lowestPort, highestPort] = [15_432, 32_767]

/** The stored port; a new one if it is taken or none is stored. */
const choosePort = Effect.fnUntraced(function* (home: Home.Home) {
  let port = Home.rememberedPort(home)
  while (port === undefined || !(yield* isFree(port))) port = randomInt(lowestPort, highestPort + 1)
  return port
})

const isFree = (port: number) =>
  Effect.callback<boolean>((resume) => {
    const server = createServer()
    server.once("error", () => resume(Effect.succeed(false)))
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => server.close(() => resume(Effect.succeed(true))))
    return Effect.sync(() => server.close())
  })
