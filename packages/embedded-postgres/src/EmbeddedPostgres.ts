import { Context, Duration, Effect, Exit, Layer, Redacted, Schedule, Scope, Semaphore } from "effect"
import * as Binaries from "./Binaries.ts"
import { EmbeddedPostgresError } from "./EmbeddedPostgresError.ts"
import * as Home from "./Home.ts"
import { attachOrStart, type Wanted } from "./Running.ts"

export { EmbeddedPostgresError }

export interface Options extends Wanted {
  /** A folder for all files of the server and no others. Created if it does not exist, accessible to its owner only. */
  readonly home: string
}

export interface Server {
  /** The URL of the database `tidegate` with the role that owns it, including its password. It stays valid when the server restarts. */
  readonly url: Redacted.Redacted
  /** The same with a superuser role: for tests and benchmarks, never for a gateway. */
  readonly superuserUrl: Redacted.Redacted
  readonly port: number
  /** The server process when `start` returned; `ensureRunning` returns the present one. */
  readonly pid: number
  /** Whether another process has started the server and will stop it. */
  readonly attached: boolean
  /**
   * Completes when a server process accepts connections; it starts one if the last known one is gone. The
   * scope of `start` does this automatically; this effect is for callers that want to wait for it.
   */
  readonly ensureRunning: Effect.Effect<{ readonly pid: number; readonly attached: boolean }, EmbeddedPostgresError>
}

/**
 * A PostgreSQL server that the process runs itself, for a gateway without a configured database.
 *
 * One server serves all processes with the same home folder. The process that started it stops it when its scope closes. On Linux the
 * kernel kills it when that process is killed. Then the first of the other processes starts it again; they also do so if the server itself is
 * killed. Every commit is on disk before it is acknowledged, so no commit is lost.
 */
export class EmbeddedPostgres extends Context.Service<EmbeddedPostgres, Server>()(
  "@tidegate/embedded-postgres/EmbeddedPostgres"
) {
  static readonly layer = (options: Options) => Layer.effect(EmbeddedPostgres, start(options))
}

/** Starts the server or joins the running one, and restarts it if necessary until the scope closes. */
export const start = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Server, EmbeddedPostgresError, Scope.Scope> {
  const home = yield* Home.open(options.home)
  const binaries = yield* Binaries.locate(home.path)
  // A separate scope for servers that are started later, because they must outlive the supervisor that starts them.
  const servers = yield* Scope.fork(yield* Effect.scope)
  const turn = Semaphore.makeUnsafe(1)

  const bring = (port: number | undefined) =>
    Effect.gen(function* () {
      const lifetime = yield* Scope.fork(servers)
      return yield* attachOrStart(home, binaries, { ...options, port }).pipe(
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
    // Clients know the address, so the server has to restart at the same port.
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
