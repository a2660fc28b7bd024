import { Effect, Exit, Redacted, Scope } from "effect"
import { test } from "vitest"
import { freshDatabase } from "../postgres.ts"
import { temporaryFolder } from "../temporaryFolder.ts"
import { Gateway } from "./Gateway.ts"
import { Gateways } from "./Gateways.ts"
import type { Role } from "./GatewayProcess.ts"
import { type Reply, Target } from "./Target.ts"

/**
 * One for this process. vitest makes a fixture with scope `worker` again for each suite that extends it, so it cannot hold the
 * gateway.
 */
let sharedGateway: Promise<Gateway> | null = null

const startShared = async (): Promise<Gateway> => {
  sharedGateway ??= Gateway.start()
  const gateway = await sharedGateway
  if (gateway.runs) return gateway
  // A suite has ended the process, and has failed for that. The next suites get a new one.
  sharedGateway = null
  await gateway.close()
  return startShared()
}

const closeShared = async (): Promise<void> => {
  const gateway = sharedGateway
  sharedGateway = null
  await (await gateway)?.close()
}

type OnCleanup = (close: () => Promise<void>) => void

/** A folder and a database for processes, until the cleanup. */
const makePlace = async (onCleanup: OnCleanup) => {
  const scope = Scope.makeUnsafe()
  onCleanup(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const { folder, url } = await Effect.runPromise(
    Effect.all({ folder: temporaryFolder, url: freshDatabase }).pipe(Scope.provide(scope))
  )
  return { folder, databaseUrl: Redacted.value(url) }
}

/** Returns a function that starts several processes, each time in the place that it is told. They end with the cleanup. */
const startingIn = (placeOf: () => Promise<Awaited<ReturnType<typeof makePlace>>>, onCleanup: OnCleanup) => {
  const started: Array<{ readonly close: () => Promise<void> }> = []
  onCleanup(async () => {
    for (const gateways of started) await gateways.close()
  })
  return async <Name extends string>(
    roles: Readonly<Record<Name, Role>>,
    settings: Readonly<Record<string, string>> = {}
  ): Promise<Gateways<Name>> => {
    const { databaseUrl, folder } = await placeOf()
    const gateways = await Gateways.start(folder, databaseUrl, roles, settings)
    started.push(gateways)
    return gateways
  }
}

/**
 * `it` with what suites of the whole gateway need. A fixture starts when a test names it, and ends by itself: `gateway` with the
 * file, the others with the test.
 *
 * A suite adds its own fixtures: `gatewayIt.extend("send", ({ gateway }) => …)`.
 */
export const it = test
  /** Returns the gateway that the suites of a worker share. It starts when it is first used, and ends with the worker. */
  .extend("shared", { scope: "worker" }, ({}, { onCleanup }) => {
    onCleanup(closeShared)
    return startShared
  })
  /**
   * Environment variables of `gateway` in addition to the usual ones, or instead of them: with these, the suite has its own
   * process and database. Null (default): the suite is one team of the gateway that other suites of the worker also use.
   */
  .extend("settings", { scope: "file" }, (): Readonly<Record<string, string>> | null => null)
  /** Whether the suite cuts its own gateway from the database. */
  .extend("isLinked", { scope: "file" }, (): boolean => false)
  /** One process with all roles, and a team in it. */
  .extend("gateway", { scope: "file" }, async ({ isLinked, settings, shared }, { onCleanup }) => {
    if (settings === null) return (await shared()).forTeam()
    const gateway = await Gateway.start(settings, isLinked ? {} : null)
    onCleanup(() => gateway.close())
    return gateway
  })
  /**
   * Starts a server for deliveries. It runs to the end of the file: deliveries of a finished test still go to that test's server,
   * and no other server gets its port.
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
  /** The server behind a destination of the test. Deliveries after the test are accepted, so that they are not retried. */
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
  .extend("place", ({}, { onCleanup }) => makePlace(onCleanup))
  /** Starts several processes on one database, with the given names and roles, and with additional settings. */
  .extend("running", ({ place }, { onCleanup }) => startingIn(async () => place, onCleanup))
  /**
   * The same for all tests of a file, each time on a database of its own. The test before may have ended some of the processes: a suite gives
   * them to its tests by `everyRunning`. Names and ids are for the tests to keep apart, because all are of one team.
   */
  .extend("fileRunning", { scope: "file" }, ({}, { onCleanup }) => {
    const places: Array<() => Promise<void>> = []
    return startingIn(
      () => makePlace((close) => void places.push(close)),
      (close) =>
        onCleanup(async () => {
          await close()
          for (const one of places) await one()
        })
    )
  })

/**
 * `it` with a gateway for this suite only. Use it for things that exist once in a gateway: the memory of its process, its database
 * connection, public bins, site settings, process metrics, and tables that are read as a whole. For a restart or the log, `it` is enough.
 */
export const ownIt = it.extend("settings", { scope: "file" }, {})
