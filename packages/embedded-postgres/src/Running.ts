import { Effect, Option, type Redacted, type Scope } from "effect"
import { randomBytes, randomInt } from "node:crypto"
import { existsSync, readdirSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { totalmem } from "node:os"
import { join } from "node:path"
import type { Binaries } from "./Binaries.ts"
import { attempt, EmbeddedPostgresError } from "./EmbeddedPostgresError.ts"
import * as Home from "./Home.ts"
import * as KernelLock from "./KernelLock.ts"
import * as Postmaster from "./Postmaster.ts"
import { type Access, accessTo, greet, provision, superuser } from "./Provision.ts"

/** A server that accepts connections, as this process sees it. */
export interface Running extends Access {
  readonly port: number
  readonly pid: number
  /** Whether another process has started it. */
  readonly attached: boolean
  readonly isRunning: () => boolean
  /** Completes when the server process is gone, with what is known of its end. */
  readonly ended: Effect.Effect<string>
}

/**
 * Joins the server of the home folder, or starts it when no living process has one running. With `port`, a server at any
 * other port is a failure. A server started here is stopped when the scope closes.
 */
export const attachOrStart = (
  home: Home.Home,
  binaries: Binaries,
  port: number | undefined
): Effect.Effect<Running, EmbeddedPostgresError, Scope.Scope> =>
  Effect.gen(function* () {
    const password = yield* Home.password(home)
    const server = yield* ownedByAnother(home, password)
    if (Option.isSome(server)) return yield* attachTo(home, server.value, port, password)
    yield* endStray(home)
    if (!existsSync(home.data)) yield* initialize(home, binaries)
    return yield* startOwn(home, binaries, port, password)
  }).pipe(KernelLock.withLock(home.startLock))

/** The server of another living process, when it answers; or none, and from then on the server is ours to start. */
const ownedByAnother = (home: Home.Home, password: Redacted.Redacted) =>
  Effect.gen(function* () {
    while (!(yield* KernelLock.tryAcquire(home.ownerLock))) {
      const server = Postmaster.find(home.data)
      if (server?.ready === true && (yield* answers(accessTo(server.port, password)))) {
        return Option.some(server)
      }
      // It is stopping, or its owner is about to notice that it is gone and to give up the lock.
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
    // Another process's child: all there is to do is to look.
    ended: Effect.sleep("200 millis").pipe(Effect.repeat({ while: isRunning }), Effect.as("stopped or killed"))
  } satisfies Running
})

/** Stops a server whose owner died without taking it along, which is possible where the kernel does not see to it. */
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
  // A process id left in the file may be another program's by now, and PostgreSQL would take that for a server. Safe to
  // remove: a server that has only its file missing still holds its shared memory, at which the new one would stop.
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
 * Makes the data directory, elsewhere first, so that an interrupted initdb leaves none; each time in another place, since an
 * initdb whose parent was killed may still be at it.
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
 * Starts the server. What a killed one has left behind can stand in the way of a new one for a moment, as can another program
 * at the port, and somebody may kill the new one too: such starts are repeated for up to 10 seconds. A server that is up and recovering is waited for as long as it
 * takes, since a recovery cut short begins again.
 */
const startOwn = Effect.fnUntraced(function* (
  home: Home.Home,
  binaries: Binaries,
  port: number | undefined,
  password: Redacted.Redacted
) {
  if (binaries.owner !== undefined) yield* Home.giveData(home, binaries.owner)
  yield* Home.rotateLog(home)
  const deadline = performance.now() + startPatienceMillis
  while (true) {
    const position = Home.logEnd(home)
    const chosen = port ?? (yield* choosePort(home))
    const access = accessTo(chosen, password)
    const server = yield* Postmaster.run(binaries, Postmaster.serve(binaries, home.data, settings(chosen)), home.log)
    const failure = yield* Effect.raceFirst(
      prepare(home, server.pid, chosen, access).pipe(
        // A connection breaks before it is known that the server has ended, which is then the cause.
        Effect.tapError(() => Effect.sleep("100 millis")),
        Effect.as(undefined)
      ),
      Effect.map(server.ended, (how) => ({ how, said: Home.logSince(home, position) }))
    )
    if (failure === undefined) {
      yield* Home.rememberPort(home, chosen)
      return { ...server, ...access, port: chosen, attached: false } satisfies Running
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

const orphaned = /pre-existing shared memory block/
const passing = /pre-existing shared memory block|lock file .* already exists|could not bind/

/** The lines that say why, or else the last one. */
const gist = (log: string) => {
  const lines = log.trim().split("\n")
  const telling = lines.filter((line) => /(FATAL|PANIC|DETAIL|HINT|error):/.test(line))
  return (telling.length > 0 ? telling.slice(-3) : lines.slice(-1)).join(" ")
}

/** Waits until the server accepts connections, and sees to what the gateway expects to find in it. */
const prepare = Effect.fnUntraced(function* (home: Home.Home, pid: number, port: number, access: Access) {
  const isReady = () => {
    const server = Postmaster.find(home.data)
    return server?.pid === pid && server.ready
  }
  // Not by connecting: the server would log every attempt that comes too early.
  yield* Effect.sleep("5 millis").pipe(Effect.repeat({ until: isReady }))
  yield* Effect.mapError(
    provision(access),
    (cause) =>
      new EmbeddedPostgresError({ message: `PostgreSQL at port ${port} has started, but cannot be used`, cause })
  )
})

/** Whether the server of another process can be used. One that an older version has started may have to be made ready for it. */
const answers = (access: Access): Effect.Effect<boolean> =>
  Effect.isSuccess(Effect.catch(greet(access), () => provision(access)))

const megabyte = 1024 * 1024

/**
 * A 32nd of the memory that is ours, 128 to 256 MB. All of it is used in the end, whatever that gains: events are written at the end of
 * today's partitions and read again soon, so the last of them are enough, and what is older comes from the page cache, which gives way to others.
 */
const sharedBuffers = () => {
  const available = Math.min(totalmem(), process.constrainedMemory() || Infinity)
  return `${Math.round(Math.min(256, Math.max(128, available / megabyte / 32)))}MB`
}

const settings = (port: number) => ({
  port,
  listen_addresses: "127.0.0.1",
  // The length of a socket's path is limited, that of the home folder's is not.
  unix_socket_directories: "",
  max_connections: 200,
  shared_buffers: sharedBuffers(),
  // What has been acknowledged has been written: the product's promise rests on these two.
  fsync: "on",
  synchronous_commit: "on",
  max_wal_size: "2GB",
  checkpoint_completion_target: 0.9,
  jit: "off",
  timezone: "UTC",
  log_timezone: "UTC",
  log_min_messages: "warning"
})

/** Below the ports that systems hand out to clients: from those, a client retrying a stopped server could reach itself. */
const [lowestPort, highestPort] = [15_432, 32_767]

/** The remembered port, or another one when it is taken or there is none yet. */
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
