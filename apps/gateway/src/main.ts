import { join } from "node:path"
import { NodeHttpServer, NodeRuntime, NodeServices } from "@effect/platform-node"
import { Effect, Layer, Logger, type Redacted } from "effect"
import { HttpRouter } from "effect/http"
import * as ApiRoutes from "@tidegate/api/ApiRoutes"
import { RateLimits } from "@tidegate/api/RateLimit"
import * as Doors from "@tidegate/doors/Doors"
import { wireServer } from "@tidegate/doors/wire/WireServer"
import { Egress } from "@tidegate/egress/Egress"
import * as Actors from "@tidegate/entities/Actors"
import * as Cluster from "@tidegate/entities/Cluster"
import { Ingress, ingressPath } from "@tidegate/model/Ingress"
import { Sandbox } from "@tidegate/sandbox/Sandbox"
import { Connections } from "@tidegate/storage/Connections"
import * as Database from "@tidegate/storage/Database"
import { Destinations } from "@tidegate/storage/Destinations"
import * as EmbeddedPostgres from "@tidegate/postgres/EmbeddedPostgres"
import { Journal } from "@tidegate/storage/Journal"
import { migrate } from "@tidegate/storage/Migrations"
import { maintainPartitions } from "@tidegate/storage/Partitions"
import { type KeyRing, Secrets } from "@tidegate/storage/Secrets"
import { Sources } from "@tidegate/storage/Sources"
import { Transformations } from "@tidegate/storage/Transformations"
import { bootstrapTeam } from "@tidegate/storage/Teams"
import * as Bootstrap from "./Bootstrap.ts"
import * as DoorServer from "./DoorServer.ts"
import * as Health from "./Health.ts"
import { type Settings, settings } from "./Settings.ts"
import { welcome } from "./Welcome.ts"

/** Deliveries on the wire at once in one process, and what the windows of all its destinations may hold. */
const deliveryLimits = { deliveries: 1_024, windowBytes: 160 * 1024 * 1024 }

/** The database, brought to this version's schema, with this process's right to it checked. */
const database = (settings: Settings, url: Redacted.Redacted, keys: KeyRing) => {
  const prepared = Layer.effectDiscard(
    Effect.gen(function* () {
      yield* migrate
      yield* Bootstrap.agreeWithDatabase
      yield* bootstrapTeam({ apiKey: yield* Bootstrap.loadApiKey(settings) })
      yield* Effect.forkScoped(maintainPartitions)
    })
  )
  return prepared.pipe(Layer.provideMerge(Layer.merge(Database.layer({ url }), Secrets.layer({ keys }))))
}

/** What every process has: the database, its rows as services, and the way to the actors. */
const core = <A, E>(settings: Settings, url: Redacted.Redacted, keys: KeyRing, cluster: Layer.Layer<A, E>) =>
  Layer.mergeAll(Connections.layer, Journal.layer, cluster).pipe(
    Layer.provideMerge(Layer.mergeAll(Sources.layer, Destinations.layer, Transformations.layer)),
    Layer.provideMerge(Ingress.layer(settings.publicUrl + ingressPath)),
    Layer.provideMerge(database(settings, url, keys))
  )

const actors = ({ retention }: Settings) => Actors.layer(deliveryLimits, retention)

const serving = { disableLogger: true, disableListenLog: true }

/** Doors and control API on the public port. */
const publicServer = (settings: Settings) =>
  HttpRouter.serve(Layer.merge(ApiRoutes.layer, Health.layer(settings.role)), serving).pipe(
    Layer.provide([DoorServer.layer({ host: settings.host, port: settings.port }), NodeHttpServer.layerHttpServices]),
    Layer.provide(Layer.succeed(RateLimits, { perKey: settings.apiRateLimit, failedPerAddress: 60 })),
    Layer.provide(Doors.layer)
  )

/** A runner has no public port: it answers whether it lives and is ready. */
const healthServer = (settings: Settings) =>
  HttpRouter.serve(Health.layer(settings.role), serving).pipe(
    Layer.provide(NodeHttpServer.layer(() => wireServer(null), { host: settings.host, port: settings.port }))
  )

const gateway = Effect.gen(function* () {
  const given = yield* settings
  if (given.role !== "runner") yield* ApiRoutes.prepare
  const postgres =
    given.databaseUrl === null ? yield* EmbeddedPostgres.start({ home: join(given.home, "postgres") }) : null
  const url = postgres?.url ?? given.databaseUrl!
  const keys = yield* Bootstrap.loadKeys(given)
  const port = given.role === "edge" ? 0 : yield* Bootstrap.pickRunnerPort(given)
  const runner = core(given, url, keys, Cluster.layerRunner({ url, keys, host: given.runnerHost, port }))
  const egress = Egress.layer({
    allow: given.egressAllow,
    // Destinations of one origin share its connections: with fewer, those that hang would keep the others from theirs.
    connectionsPerOrigin: deliveryLimits.deliveries
  })
  const working = Layer.merge(egress, Sandbox.layer({}))
  const roles = {
    all: publicServer(given).pipe(Layer.provideMerge(actors(given)), Layer.provide([runner, working])),
    runner: healthServer(given).pipe(Layer.provideMerge(actors(given)), Layer.provide([runner, working])),
    edge: publicServer(given).pipe(Layer.provide([core(given, url, keys, Cluster.layerClient({ url, keys })), egress]))
  }
  yield* Layer.build(roles[given.role])
  yield* welcome(given, postgres !== null)
  return yield* Effect.never
}).pipe(Effect.scoped)

const log = process.stdout.isTTY ? Logger.layer([Logger.consolePretty()]) : Logger.layer([Logger.consoleJson])

/** A process that is told to end has ended by then, whatever still holds it: what it leaves is in SQL. */
const shutdownLimitMs = 14_000

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.once(signal, () => {
    setTimeout(() => {
      process.stderr.write(`tidegate: not done ${shutdownLimitMs} ms after ${signal}, ending all the same\n`)
      process.exit(1)
    }, shutdownLimitMs).unref()
  })
}

NodeRuntime.runMain(
  gateway.pipe(
    Effect.catchTag(["SettingsError", "SecretKeyError", "EmbeddedPostgresError"], (error) =>
      Effect.sync(() => {
        process.stderr.write(`tidegate: ${error.message}\n`)
        process.exitCode = 1
      })
    ),
    Effect.provide([NodeServices.layer, log])
  )
)
