import { Effect, Exit, Redacted, Scope } from "effect"
import { test } from "vitest"
import { freshDatabase } from "../postgres.ts"
import { temporaryFolder } from "../temporaryFolder.ts"
import { Gateway } from "./Gateway.ts"
import { Gateways } from "./Gateways.ts"
import type { Role } from "./GatewayProcess.ts"
import { type Reply, Target } from "./Target.ts"

/**
 * `it` with what the suites of the whole gateway need. What a test names is started for it and ends by itself: `gateway`
 * with the file, the others with the test.
 *
 * A suite adds what is its own: `gatewayIt.extend("send", ({ gateway }) => …)`.
 */
export const it = test
  /** Environment variables of `gateway` beside, or instead of, the usual ones. */
  .extend("settings", { scope: "file" }, (): Readonly<Record<string, string>> => ({}))
  /** One process that does everything, on a database of its own. */
  .extend("gateway", { scope: "file" }, async ({ settings }, { onCleanup }) => {
    const gateway = await Gateway.start(settings)
    onCleanup(() => gateway.close())
    return gateway
  })
  /**
   * Starts a server that is delivered to. It stays to the end of the file: what a gateway still delivers for a test that is over
   * comes to that test's server, and nobody else gets its port.
   */
  .extend("startTarget", { scope: "file" }, ({}, { onCleanup }) => {
    const started: Array<Target> = []
    onCleanup(async () => {
      for (const target of started) await target.close()
    })
    return async (usual?: Reply): Promise<Target> => {
      const target = await Target.start(usual)
      started.push(target)
      return target
    }
  })
  /** The server behind a destination of the test; what comes after the test is taken, so that it is not sent again. */
  .extend("target", async ({ startTarget }, { onCleanup }) => {
    const target = await startTarget()
    onCleanup(() => target.reset())
    return target
  })
  /** The server behind a source in proxy mode, in the same way. */
  .extend("upstream", async ({ startTarget }, { onCleanup }) => {
    const upstream = await startTarget((response) => void response.end("upstream"))
    onCleanup(() => upstream.reset())
    return upstream
  })
  /** A folder and a database for processes that a test starts itself. */
  .extend("place", async ({}, { onCleanup }) => {
    const scope = Scope.makeUnsafe()
    onCleanup(() => Effect.runPromise(Scope.close(scope, Exit.void)))
    const { folder, url } = await Effect.runPromise(
      Effect.all({ folder: temporaryFolder, url: freshDatabase }).pipe(Scope.provide(scope))
    )
    return { folder, databaseUrl: Redacted.value(url) }
  })
  /** Starts several processes on one database, by the names and roles given, and with settings beside the usual ones. */
  .extend("running", ({ place }, { onCleanup }) => {
    const started: Array<{ readonly close: () => Promise<void> }> = []
    onCleanup(async () => {
      for (const gateways of started) await gateways.close()
    })
    return async <Name extends string>(
      roles: Readonly<Record<Name, Role>>,
      settings: Readonly<Record<string, string>> = {}
    ): Promise<Gateways<Name>> => {
      const gateways = await Gateways.start(place.folder, place.databaseUrl, roles, settings)
      started.push(gateways)
      return gateways
    }
  })
