import { Effect, Exit, Redacted, Scope } from "effect"
import { test } from "vitest"
import { freshDatabase } from "../postgres.ts"
import { temporaryFolder } from "../temporaryFolder.ts"
import { Gateway } from "./Gateway.ts"
import { Gateways } from "./Gateways.ts"
import type { Role } from "./GatewayProcess.ts"
import { type Reply, Target } from "./Target.ts"

/** Of this process: vitest makes a fixture of a worker once for each suite that extends it. */
let sharedGateway: Promise<Gateway> | null = null

const startShared = async (): Promise<Gateway> => {
  sharedGateway ??= Gateway.start()
  const gateway = await sharedGateway
  if (gateway.runs) return gateway
  // A suite has brought it down, and has failed; the next ones are about something else.
  sharedGateway = null
  await gateway.close()
  return startShared()
}

const closeShared = async (): Promise<void> => {
  const gateway = sharedGateway
  sharedGateway = null
  await (await gateway)?.close()
}

/**
 * `it` with what the suites of the whole gateway need. What a test names is started for it and ends by itself: `gateway`
 * with the file, the others with the test.
 *
 * A suite adds what is its own: `gatewayIt.extend("send", ({ gateway }) => …)`.
 */
export const it = test
  /** Gives the gateway that the suites of a worker share. It starts with the first one that asks, and ends with the worker. */
  .extend("shared", { scope: "worker" }, ({}, { onCleanup }) => {
    onCleanup(closeShared)
    return startShared
  })
  /**
   * Environment variables of `gateway` beside, or instead of, the usual ones: the suite has a process and a database to itself. Null, unless a suite
   * says otherwise: it is one of the teams of a gateway whose other suites have run before it, or will.
   */
  .extend("settings", { scope: "file" }, (): Readonly<Record<string, string>> | null => null)
  /** One process that does everything, and a team of it. */
  .extend("gateway", { scope: "file" }, async ({ settings, shared }, { onCleanup }) => {
    if (settings === null) return (await shared()).forTeam()
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

/**
 * The same with a gateway of the suite's own: for what one gateway has once. Such are its process (restarts, memory, log), its way to the database, the
 * public bins, settings of the site and what the metrics say of a process.
 */
export const ownIt = it.extend("settings", { scope: "file" }, {})
