import { hkdfSync, type KeyObject } from "node:crypto"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Context, Effect, Layer, Redacted, Runtime } from "effect"
import { HttpRouter } from "effect/http"
import * as ApiRoutes from "@tidegate/api/ApiRoutes"
import { ApiOrigins } from "@tidegate/connectors/Origins"
import { ConsentKey } from "@tidegate/api/ConsentPage"
import { BrowserSessionKey } from "@tidegate/api/dashboard/SealedCookies"
import { CorsOrigins } from "@tidegate/api/CrossOrigin"
import { PublicBins } from "@tidegate/api/PublicBins"
import { RateLimits } from "@tidegate/api/RateLimit"
import { SenderDomains } from "@tidegate/connectors/SenderDomains"
import { SignInSettings } from "@tidegate/api/SignInSettings"
import * as Coordination from "@tidegate/coordination/Coordination"
import * as IngressLayers from "@tidegate/ingress/IngressLayers"
import { wireServer } from "@tidegate/ingress/wire/WireServer"
import { Egress } from "@tidegate/egress/Egress"
import * as Actors from "@tidegate/entities/Actors"
import { MailServer } from "@tidegate/entities/Alerts/MailServer"
import { CallsAtOnce, Room, RunRoom } from "@tidegate/entities/Workflow/RunRoom"
import { makeStepLinks, StepLinks, stepTokenKeysOf } from "@tidegate/entities/Workflow/StepLinks"
import * as Cluster from "@tidegate/entities/Cluster"
import { loopKeysOf, Loops, makeLoops } from "@tidegate/entities/Loops"
import { Ingress, ingressAt } from "@tidegate/model/Ingress"
import { TrustedProxies } from "@tidegate/model/TrustedProxies"
import { processRoom } from "@tidegate/runtime/WeighedCache"
import { TeamLimits } from "@tidegate/resources/TeamLimits"
import { Sandbox } from "@tidegate/sandbox/Sandbox"
import * as BrokerServers from "@tidegate/foreign-databases/BrokerServers"
import * as BrokerSubscriptions from "@tidegate/foreign-databases/BrokerSubscriptions"
import * as PostgresServers from "@tidegate/foreign-databases/PostgresServers"
import * as Database from "@tidegate/storage/Database"
import * as EmbeddedPostgres from "@tidegate/embedded-postgres/EmbeddedPostgres"
import { Journal } from "@tidegate/storage/Journal"
import { migrate } from "@tidegate/storage/Migrations"
import { maintainPartitions } from "@tidegate/storage/retention/Partitions"
import { type KeyRing, Secrets } from "@tidegate/storage/secrets/Secrets"
import * as Stores from "@tidegate/storage/control/Stores"
import { KeptDays } from "@tidegate/storage/teams/TeamSettings"
import * as Otlp from "@tidegate/telemetry/Otlp"
import * as ProcessWatch from "@tidegate/telemetry/ProcessWatch"
import { LineLimits } from "@tidegate/telemetry/WideLines"
import * as Bootstrap from "./Bootstrap.ts"
import { cacheBytes, deliveryBounds, meansOfProcess, runBytes } from "./Bounds.ts"
import { embeddedHome } from "./Home.ts"
import * as IngressServer from "./IngressServer.ts"
import * as Health from "./Health.ts"
import { isMoot, log } from "./Log.ts"
import * as MetricsEndpoint from "./MetricsEndpoint.ts"
import { supervisor } from "./processes/Supervised.ts"
import { Samples } from "./Samples.ts"
import { type Settings, settings } from "./Settings.ts"
import { type Starting, startFault } from "./StartFault.ts"
import { type TelemetrySettings, telemetrySettings } from "./TelemetrySettings.ts"
import { welcome } from "./Welcome.ts"

const bounds = deliveryBounds(meansOfProcess(supervisor?.processes ?? 1))
processRoom.resize(cacheBytes())

/** Known when the database is ready. */
let apiKeyPlace: Bootstrap.ApiKeyPlace = null

/** The database: migrates it to this version's schema, and checks that this process may use it. */
const database = (settings: Settings, url: Redacted.Redacted, keys: KeyRing) => {
  const isEmbedded = settings.databaseUrl === null
  const prepared = Layer.effectDiscard(
    Effect.gen(function* () {
      yield* Bootstrap.serverIsNewEnough
      yield* Bootstrap.databaseFits
      yield* migrate
      yield* Bootstrap.agreeWithDatabase
      apiKeyPlace = yield* Bootstrap.settleApiKey(settings)
      yield* Effect.forkScoped(maintainPartitions)
    })
  )
  return prepared.pipe(Layer.provideMerge(Layer.merge(Database.layer({ url, isEmbedded }), Secrets.layer({ keys }))))
}

/** What processes share besides the database: in the configured Redis, or separate in each process. */
const coordination = ({ redis }: Settings, [{ key }]: KeyRing) =>
  redis === null
    ? Coordination.layerMemory
    : Coordination.layerRedis(
        redis,
        Redacted.make(Buffer.from(hkdfSync("sha256", key, "", "tidegate names in redis v1", 32)))
      )

/** The parts of every process: database, services on its rows, access to the actors, and what it shares with other processes. */
const core = <A, E>(settings: Settings, url: Redacted.Redacted, keys: KeyRing, cluster: Layer.Layer<A, E>) =>
  Layer.mergeAll(Stores.layer, Journal.layer, cluster, coordination(settings, keys)).pipe(
    Layer.provideMerge(Ingress.layer(settings.publicUrl, settings.ingressUrl)),
    Layer.provideMerge(database(settings, url, keys))
  )

const actors = ({ mail, retention, senderDomains, workflowConcurrency }: Settings) =>
  Layer.provide(
    Actors.layer(bounds, retention),
    Layer.mergeAll(
      Layer.succeed(SenderDomains, senderDomains),
      MailServer.layer(mail),
      Layer.succeed(CallsAtOnce, workflowConcurrency),
      Layer.sync(Room, () => new RunRoom(runBytes())),
      PostgresServers.layer(),
      BrokerServers.layer(),
      BrokerSubscriptions.layer
    )
  )

/** Equal for all processes with the same key ring, so that one process can confirm a page of another. */
const consentKeyOf = (key: KeyObject): string =>
  Buffer.from(hkdfSync("sha256", key, "", "tidegate consent pages v1", 32)).toString("hex")

/** Equal for all processes with the same key ring, so that one process reads the cookies of another. */
const browserKeyOf = (key: KeyObject): Uint8Array =>
  new Uint8Array(hkdfSync("sha256", key, "", "tidegate browser sessions v1", 32))

const serving = { disableLogger: true, disableListenLog: true }

/** The endpoints of every role's public port: health, and the metrics unless they have a separate port. */
const watching = (settings: Settings, telemetry: TelemetrySettings) =>
  Layer.merge(
    Health.layer(settings.role),
    telemetry.metricsServer === null ? MetricsEndpoint.onPublicPort(telemetry) : Layer.empty
  )

/** Metrics, traces and lines of the log, and their export. */
const telemetryOf = ({ logSample, otlp }: TelemetrySettings) =>
  Layer.mergeAll(
    ProcessWatch.layer,
    Layer.effect(
      LineLimits,
      Effect.map(LineLimits, (limits) => ({ ...limits, successes: logSample }))
    ),
    otlp === null ? Layer.empty : Otlp.layer(otlp, isMoot)
  )

/** Telemetry that runs beside the servers. */
const telling = ({ metricsServer, otlp, ...telemetry }: TelemetrySettings) =>
  Layer.merge(
    metricsServer === null
      ? Layer.empty
      : MetricsEndpoint.onOwnPort({ metricsServer, otlp, ...telemetry }, metricsServer),
    otlp === null ? Layer.empty : Samples.layerRefreshing
  )

/** Ingress and control API on the public port. */
const publicServer = (settings: Settings, telemetry: TelemetrySettings) =>
  ApiRoutes.drainStreams.pipe(
    Layer.provideMerge(HttpRouter.serve(Layer.merge(ApiRoutes.layer, watching(settings, telemetry)), serving)),
    Layer.provide([IngressServer.layer(settings), NodeHttpServer.layerHttpServices]),
    Layer.provide(ApiRoutes.streams),
    Layer.provide(Layer.succeed(SignInSettings, settings.signIn)),
    Layer.provide(Layer.succeed(CorsOrigins, settings.corsOrigins)),
    Layer.provide(Layer.succeed(KeptDays, settings.retention)),
    Layer.provide(Layer.succeed(SenderDomains, settings.senderDomains)),
    Layer.provide(Layer.succeed(RateLimits, { perKey: settings.apiRateLimit, failedPerAddress: 60 })),
    Layer.provide(Layer.succeed(PublicBins, { max: settings.publicBins })),
    Layer.provide(IngressLayers.layer)
  )

/** A runner has no public port: this one only answers whether it is alive and ready. */
const healthServer = (settings: Settings, telemetry: TelemetrySettings) =>
  HttpRouter.serve(watching(settings, telemetry), serving).pipe(
    Layer.provide(
      NodeHttpServer.layer(() => wireServer(null, { connections: supervisor?.connections() ?? null }), {
        host: settings.host,
        port: settings.port
      })
    )
  )

const starting: Starting = { settings: null, telemetry: null }

const gateway = Effect.gen(function* () {
  const given = yield* settings
  const telemetry = yield* telemetrySettings
  Object.assign(starting, { settings: given, telemetry })
  yield* Bootstrap.makeHome(given)
  if (given.role !== "runner") yield* ApiRoutes.prepare
  const postgres = given.databaseUrl === null ? yield* EmbeddedPostgres.start({ home: embeddedHome(given.home) }) : null
  const url = postgres?.url ?? given.databaseUrl!
  const keys = yield* Bootstrap.loadKeys(given)
  const runner = core(
    given,
    url,
    keys,
    // The port is chosen when the database is ready, just before it is used: another process that starts may choose it too.
    Layer.unwrap(
      Effect.map(Bootstrap.pickRunnerPort(given), (port) =>
        Cluster.layerRunner({ url, keys, host: given.runnerHost, port, mayStandBy: given.mayStandBy })
      )
    )
  )
  const egress = Egress.layer({
    allow: given.egressAllow,
    // Destinations of one origin share its connections: with fewer, destinations that hang would block the others.
    connectionsPerOrigin: bounds.deliveries,
    maxConnections: bounds.connections
  })
  const working = Layer.merge(egress, Sandbox.layer({}))
  const beside = Layer.merge(Layer.provide(telling(telemetry), Samples.layer), Health.layerReady(given.role))
  const publicAndMore = Layer.merge(Layer.provide(publicServer(given, telemetry), Samples.layer), beside)
  const healthAndMore = Layer.merge(Layer.provide(healthServer(given, telemetry), Samples.layer), beside)
  const roles = {
    all: publicAndMore.pipe(Layer.provideMerge(actors(given)), Layer.provide([runner, working])),
    runner: healthAndMore.pipe(Layer.provideMerge(actors(given)), Layer.provide([runner, working])),
    edge: publicAndMore.pipe(Layer.provide([core(given, url, keys, Cluster.layerClient({ url, keys })), egress]))
  }
  const [first, ...others] = keys
  const ring = [first.key, ...others.map(({ key }) => key)] as const
  const loops = makeLoops(loopKeysOf(ring), given.loops)
  const stepLinks = makeStepLinks(stepTokenKeysOf(ring), ingressAt(given.publicUrl, given.ingressUrl))
  const { awaited } = yield* Layer.build(
    Layer.provide(roles[given.role], [
      telemetryOf(telemetry),
      Layer.succeed(TeamLimits, given.teamLimits),
      Layer.succeed(ApiOrigins, (origin) => given.apiOrigins.get(origin) ?? origin),
      Layer.succeed(Loops, loops),
      Layer.succeed(StepLinks, stepLinks),
      Layer.succeed(TrustedProxies.Current, given.trustedProxies),
      Layer.succeed(ConsentKey, consentKeyOf(first.key)),
      Layer.succeed(BrowserSessionKey, browserKeyOf(first.key))
    ])
  ).pipe(Effect.map(Context.get(Health.Ready)))
  const shown = welcome(given, postgres !== null, apiKeyPlace)
  if (supervisor === null) process.stdout.write(shown)
  else {
    yield* awaited
    supervisor.ready(shown)
  }
  return yield* Effect.never
}).pipe(Effect.scoped)

// The terminal was closed, or its connection was lost.
process.on("SIGHUP", () => void process.emit("SIGTERM", "SIGTERM"))

/** Milliseconds after which a process ends, even if something still blocks it: unfinished work is in SQL. */
const shutdownLimitMs = 14_000

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.once(signal, () => {
    setTimeout(() => {
      process.stderr.write(`tidegate: not done ${shutdownLimitMs} ms after ${signal}, ending all the same\n`)
      process.exit(1)
    }, shutdownLimitMs).unref()
  })
}

/** Ends a process that has already printed the reason: it exits with 1 and prints nothing more. */
class ToldError extends Error {
  override readonly [Runtime.errorReported] = false
}

NodeRuntime.runMain(
  gateway.pipe(
    Effect.catchCause((cause): Effect.Effect<never, unknown> => {
      const fault = Cause.hasInterruptsOnly(cause) ? null : startFault(cause, starting)
      if (fault === null) return Effect.failCause(cause)
      process.stderr.write(`tidegate: ${fault}\n`)
      return Effect.fail(new ToldError())
    }),
    Effect.provide([NodeServices.layer, log])
  )
)
