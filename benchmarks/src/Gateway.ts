/** The gateway under test as a black box: a separate process, configured through its REST API. */
import { spawn } from "node:child_process"
import { closeSync, openSync } from "node:fs"
import { createServer } from "node:net"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { request } from "undici"
import * as Telemetry from "./Telemetry.ts"

/** The gateway did not start, did not become ready, or refused its configuration. */
export class GatewayError extends Data.TaggedError("GatewayError")<{ readonly message: string }> {}

/** The gateway does not know a setting: it accepted the resource, but its answer does not contain the setting. */
export class UnknownSetting extends Data.TaggedError("UnknownSetting")<{ readonly message: string }> {}

/** A source's route: one destination and connection for each target. */
export interface Route {
  readonly name: string
  readonly destinations: ReadonlyArray<
    { readonly url: string; readonly perSecond?: number } | { readonly type: string; readonly config: object }
  >
  /** Rules of every connection of the route, in the form of the API. */
  readonly rules: ReadonlyArray<object>
  /** Settings of the source, in the form of the API. */
  readonly source?: { readonly config?: object }
  /** Settings of every connection, in the form of the API. */
  readonly connection?: object
}

/** A ready gateway. */
export interface Gateway {
  readonly pid: number
  /** Its address, and the header for calls of its control API. */
  readonly origin: string
  readonly authorization: string
  /** The sum of those samples of a metric that contain `label`. */
  readonly counted: (family: string, label: string) => Effect.Effect<number, GatewayError>
  /** Creates a resource in a list of the API; returns its id. */
  readonly create: (resource: string, input: object) => Effect.Effect<string, GatewayError | UnknownSetting>
  /** Creates a source with its destinations and connections; returns the source's ingress URL. */
  readonly route: (route: Route) => Effect.Effect<string, GatewayError | UnknownSetting>
  /** Pauses all connections of its routes, or resumes them. */
  readonly pause: (isPaused: boolean) => Effect.Effect<void, GatewayError>
}

/** How to start a gateway. */
export interface GatewayOptions {
  /** The TypeScript module to run. */
  readonly entry: string
  /** Null: the embedded server of its home folder. */
  readonly databaseUrl: string | null
  /** Directory for the gateway's files outside of the database. */
  readonly home: string
  /** File that its output is appended to. */
  readonly log: string
  /** Flags for its Node process. */
  readonly execArgv: ReadonlyArray<string>
  /** The collector to which it sends traces and metrics; its metrics are then also scraped. Null: neither. */
  readonly collector: string | null
  /** Additional environment variables. */
  readonly env?: Readonly<Record<string, string>>
}

const API_KEY = "bench-key-0123456789"
const authorization = `Bearer ${API_KEY}`
/** How long a gateway may take to end before it is killed. A CPU profile is written in this time. */
const STOP_MILLIS = 15_000

const freePort = Effect.callback<number, GatewayError>((resume) => {
  const server = createServer()
  server.once("error", (error) => resume(Effect.fail(new GatewayError({ message: error.message }))))
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = typeof address === "object" && address !== null ? address.port : 0
    server.close(() => resume(Effect.succeed(port)))
  })
})

const launch = (options: GatewayOptions, port: number) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const log = openSync(options.log, "a")
      const { DATABASE_URL: _, ...environment } = process.env
      const child = spawn(process.execPath, [...options.execArgv, options.entry], {
        stdio: ["ignore", log, log],
        env: {
          ...environment,
          ...(options.databaseUrl === null ? {} : { DATABASE_URL: options.databaseUrl }),
          PORT: String(port),
          TIDEGATE_HOME: options.home,
          TIDEGATE_API_KEY: API_KEY,
          TIDEGATE_EGRESS_ALLOW: "127.0.0.0/8",
          TIDEGATE_API_RATE_LIMIT: "0",
          ...(options.collector === null ? {} : { OTEL_EXPORTER_OTLP_ENDPOINT: options.collector }),
          ...options.env
        }
      })
      closeSync(log)
      return child
    }),
    (child) =>
      Effect.callback<void>((done) => {
        if (child.exitCode !== null || child.signalCode !== null) return done(Effect.void)
        const killer = setTimeout(() => child.kill("SIGKILL"), STOP_MILLIS)
        child.once("exit", () => {
          clearTimeout(killer)
          done(Effect.void)
        })
        child.kill("SIGTERM")
      })
  )

const Members = Schema.Record(Schema.String, Schema.Unknown)
const decodeRecord = Schema.decodeUnknownEffect(
  Schema.StructWithRest(Schema.Struct({ id: Schema.String, config: Schema.optional(Members) }), [Members])
)

/** The first setting, or setting in `config`, that the answer does not contain. */
const unknownOf = (
  settings: { readonly config?: object },
  answer: { readonly [name: string]: unknown; readonly config?: object | undefined }
): string | undefined =>
  Object.keys(settings).find((name) => !(name in answer)) ??
  Object.keys(settings.config ?? {}).find((name) => !(name in (answer.config ?? {})))

const overHttp = ({ perSecond, url }: { readonly url: string; readonly perSecond?: number }) => ({
  type: "HTTP",
  config: { url, ...(perSecond === undefined ? {} : { rate_limit: perSecond, rate_limit_period: "second" }) }
})

/** Starts a gateway and waits until it is ready; closing the scope stops it. */
export const start = Effect.fnUntraced(function* (
  options: GatewayOptions
): Effect.fn.Return<Gateway, GatewayError, Scope.Scope> {
  const port = yield* freePort
  const origin = `http://127.0.0.1:${port}`
  const child = yield* launch(options, port)

  yield* Effect.tryPromise({
    try: async () => {
      const { statusCode, body } = await request(`${origin}/readyz`)
      await body.dump()
      if (statusCode !== 200) throw new Error(`GET /readyz is ${statusCode}`)
    },
    catch: (cause) =>
      new GatewayError({ message: `the gateway did not become ready (${String(cause)}); see ${options.log}` })
  }).pipe(Effect.retry({ schedule: Schedule.spaced("50 millis"), times: 2_400, while: () => child.exitCode === null }))
  if (options.collector !== null) yield* Telemetry.scrape(origin, API_KEY)

  const create = (resource: string, input: object, settings: { readonly config?: object } = {}) =>
    Effect.tryPromise({
      try: async () => {
        const { statusCode, body } = await request(`${origin}/v1/${resource}`, {
          method: "POST",
          headers: { authorization, "content-type": "application/json" },
          body: JSON.stringify({ ...input, ...settings })
        })
        const text = await body.text()
        if (statusCode !== 200) throw new Error(`${statusCode} ${text.slice(0, 500)}`)
        return JSON.parse(text) as unknown
      },
      catch: (cause) => new GatewayError({ message: `POST /v1/${resource}: ${String(cause)}` })
    }).pipe(
      Effect.flatMap((record) =>
        Effect.mapError(decodeRecord(record), (cause) => new GatewayError({ message: `${resource}: ${cause.message}` }))
      ),
      Effect.flatMap((record) => {
        const unknown = unknownOf(settings, record)
        return unknown === undefined
          ? Effect.succeed(record.id)
          : Effect.fail(new UnknownSetting({ message: `it does not know ${unknown} of ${resource}` }))
      })
    )

  const connections: Array<string> = []
  const pause = (isPaused: boolean) =>
    Effect.tryPromise({
      try: async () => {
        for (const id of connections) {
          const url = `${origin}/v1/connections/${id}/${isPaused ? "pause" : "unpause"}`
          const { statusCode, body } = await request(url, { method: "PUT", headers: { authorization } })
          await body.dump()
          if (statusCode !== 200) throw new Error(`PUT ${url} is ${statusCode}`)
        }
      },
      catch: (cause) => new GatewayError({ message: String(cause) })
    })

  const route = Effect.fnUntraced(function* (route: Route) {
    const source = yield* create("sources", { name: route.name, type: "WEBHOOK" }, route.source)
    const connect = Effect.fnUntraced(function* (to: Route["destinations"][number], index: number) {
      const name = `${route.name}-${index}`
      const destination = yield* create("destinations", { name, ...("type" in to ? to : overHttp(to)) })
      const connection = { name, source_id: source, destination_id: destination, rules: route.rules }
      connections.push(yield* create("connections", connection, route.connection))
    })
    yield* Effect.forEach(route.destinations, connect, { concurrency: 16, discard: true })
    return `${origin}/e/${source}`
  })

  const counted = (family: string, label: string) =>
    Effect.tryPromise({
      try: async () => {
        const { body } = await request(`${origin}/metrics`, { headers: { authorization } })
        const lines = (await body.text()).split("\n").filter((line) => line.startsWith(family) && line.includes(label))
        return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0)
      },
      catch: (cause) => new GatewayError({ message: `GET /metrics: ${String(cause)}` })
    })

  return { pid: child.pid!, origin, authorization, counted, create, pause, route }
})
