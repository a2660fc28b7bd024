import { Effect, Exit, Redacted, Scope } from "effect"
import { test } from "vitest"
import { freshDatabase } from "../postgres.ts"
import { temporaryFolder } from "../temporaryFolder.ts"
import { Gateway } from "./Gateway.ts"
import { Gateways } from "./Gateways.ts"
import type { Role } from "./GatewayProcess.ts"
import { Target } from "./Target.ts"

/**
 * `it` with what the suites of the whole gateway need. What a test names is started for it and ends by itself: `gateway`,
 * `target` and `upstream` with the file, `place` and `running` with the test.
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
  /** The server behind a destination; each test finds it empty and willing. */
  .extend("target", { scope: "file" }, async ({}, { onCleanup }) => {
    const target = await Target.start()
    onCleanup(() => target.close())
    return target
  })
  /** The server behind a source in proxy mode, in the same way. */
  .extend("upstream", { scope: "file" }, async ({}, { onCleanup }) => {
    const upstream = await Target.start((response) => void response.end("upstream"))
    onCleanup(() => upstream.close())
    return upstream
  })
  .extend("emptied", { auto: true }, ({ target, upstream }) => {
    target.reset()
    upstream.reset()
    return true
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
