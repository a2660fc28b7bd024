import { resolve } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Exit, Scope } from "effect"
import * as EmbeddedPostgres from "@tidegate/embedded-postgres/EmbeddedPostgres"
import { embeddedHome, homeSetting, prepareHome } from "../Home.ts"
import { log } from "../Log.ts"
import { startFault } from "../StartFault.ts"

/**
 * Starts the embedded PostgreSQL for several processes. The supervisor holds it: if one of the processes held it, the database of all others would
 * end with that process. Null: it could not start, and the reason has been printed.
 */
export const holdPostgres = async (): Promise<{ readonly close: () => Promise<void> } | null> => {
  const scope = Scope.makeUnsafe()
  const starting = Effect.gen(function* () {
    // Only these settings are read here. The first process checks all others.
    const home = resolve(yield* homeSetting)
    yield* prepareHome(home)
    yield* EmbeddedPostgres.start({ home: embeddedHome(home) })
  })
  const exit = await Effect.runPromiseExit(
    starting.pipe(Scope.provide(scope), Effect.provide([NodeServices.layer, log]))
  )
  const close = () => Effect.runPromise(Scope.close(scope, Exit.void))
  if (Exit.isSuccess(exit)) return { close }
  await close()
  const fault = startFault(exit.cause, { settings: null, telemetry: null })
  process.stderr.write(`tidegate: ${fault ?? String(exit.cause)}\n`)
  return null
}
