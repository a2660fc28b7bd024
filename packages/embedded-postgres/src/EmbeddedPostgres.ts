import { Context, Duration, Effect, Exit, Layer, Redacted, Schedule, Scope, Semaphore } from "effect"
import * as Binaries from "./Binaries.ts"
import { EmbeddedPostgresError } from "./EmbeddedPostgresError.ts"
import * as Home from "./Home.ts"
import { attachOrStart } from "./Running.ts"

export { EmbeddedPostgresError }

export interface Options {
  /** The folder that holds everything of the server and nothing else. Made, for its owner only, when it is not there. */
  readonly home: string
  /** The port on 127.0.0.1. Left out: a free one, chosen once and kept in `home`. */
  readonly port?: number | undefined
}

export interface Server {
  /** The database `tidegate` as the role that owns it, with its password. Stays valid across restarts of the server. */
  readonly url: Redacted.Redacted
  /** The same as a superuser: for tests and benchmarks, never for a gateway. */
  readonly superuserUrl: Redacted.Redacted
  readonly port: number
  /** The server process when `start` returned; `ensureRunning` gives the present one. */
  readonly pid: number
  /** Whether another process had started the server, and will stop it. */
  readonly attached: boolean
  /**
   * Completes when a server process is there that accepts connections, which it starts when the one last known is gone. The
   * scope of `start` does this by itself; the effect is for callers that want to wait for it.
   */
  readonly ensureRunning: Effect.Effect<{ readonly pid: number; readonly attached: boolean }, EmbeddedPostgresError>
}

/**
 * A PostgreSQL server of the process's own, for a gateway without a database to configure.
 *
 * One server serves all processes that use the same home folder. The process that started it stops it when its scope closes
 * and, on Linux, takes it down with itself when it is killed; the other processes then start it again, whichever comes first,
 * as they do when the server itself is killed. Every commit is on disk before it is answered, so none of this loses one.
 */
export class EmbeddedPostgres extends Context.Service<EmbeddedPostgres, Server>()(
  "@tidegate/embedded-postgres/EmbeddedPostgres"
) {
  static readonly layer = (options: Options) => Layer.effect(EmbeddedPostgres, start(options))
}

/** Starts the server or joins the one that runs, and keeps it running until the scope closes. */
export const start = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Server, EmbeddedPostgresError, Scope.Scope> {
  const home = yield* Home.open(options.home)
  const binaries = yield* Binaries.locate(home.path)
  // A scope of its own for the servers started later, which must outlive the supervision that starts them.
  const servers = yield* Scope.fork(yield* Effect.scope)
  const turn = Semaphore.makeUnsafe(1)

  const bring = (port: number | undefined) =>
    Effect.gen(function* () {
      const lifetime = yield* Scope.fork(servers)
      return yield* attachOrStart(home, binaries, port).pipe(
        Effect.map((running) => ({ ...running, lifetime })),
        Scope.provide(lifetime),
        Effect.onError((cause) => Scope.close(lifetime, Exit.failCause(cause)))
      )
    })

  let known = yield* bring(options.port)
  const { attached, pid, port, superuserUrl, url } = known

  const revive = Effect.gen(function* () {
    if (known.isRunning()) return known
    yield* Scope.close(known.lifetime, Exit.void)
    // Clients hold the address, so from now on the server has to come back at this port.
    known = yield* bring(port)
    return known
  })
  const ensureRunning = turn.withPermit(revive)

  yield* Effect.gen(function* () {
    const watched = known
    const how = yield* watched.ended
    yield* Effect.logWarning(`The PostgreSQL server (pid ${watched.pid}) is gone (${how})`)
    const [took, now] = yield* ensureRunning.pipe(
      Effect.tapError((error) => Effect.logError("The PostgreSQL server cannot be started again yet", error)),
      Effect.retry(Schedule.spaced("1 second")),
      Effect.timed
    )
    yield* Effect.logInfo(
      `The PostgreSQL server is back (pid ${now.pid}) after ${Math.ceil(Duration.toMillis(took))} ms`
    )
  }).pipe(Effect.forever, Effect.forkScoped)

  return { url, superuserUrl, port, pid, attached, ensureRunning }
})
