import { Config, Effect, Option, Redacted, Schema } from "effect"
import type { OtlpOptions } from "@tidegate/telemetry/Otlp"
import { samplers } from "@tidegate/telemetry/Sampler"
import { logFormat } from "./Log.ts"
import { loopback } from "./PublicUrl.ts"
import { port, SettingsError, wrong } from "./Settings.ts"

export interface TelemetrySettings {
  /** Null: `/metrics` is on the public port and requires a key. */
  readonly metricsServer: { readonly host: string; readonly port: number } | null
  readonly metricsKey: Redacted.Redacted | null
  /** Null: no telemetry is exported. */
  readonly otlp: OtlpOptions | null
  /** Log lines per second of successful requests, and of successful attempts. */
  readonly logSample: number
}

const text = (name: string) => Config.option(Config.String(name))

/** `name=value,name=value`, percent-encoded, as OpenTelemetry specifies it. */
const readHeaders = Effect.fnUntraced(function* (given: string) {
  const headers: Record<string, string> = {}
  for (const part of given.split(",")) {
    if (part.trim() === "") continue
    const at = part.indexOf("=")
    const name = part.slice(0, at).trim()
    const value = yield* Effect.try({
      try: () => decodeURIComponent(part.slice(at + 1).trim()),
      catch: () => new SettingsError({ message: "OTEL_EXPORTER_OTLP_HEADERS: a value is not percent-encoded UTF-8" })
    })
    // The value is a key, so no message contains it.
    if (at < 1 || !/^[\w!#$%&'*+.^`|~-]+$/.test(name) || /[^\t\x20-\x7e]/.test(value)) {
      return yield* new SettingsError({ message: "OTEL_EXPORTER_OTLP_HEADERS: write name=value,name=value" })
    }
    headers[name.toLowerCase()] = value
  }
  return headers
})

const readEndpoint = (given: string): Effect.Effect<string, SettingsError> => {
  const url = URL.parse(given)
  const isUsable =
    url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "" && url.search === ""
  return isUsable
    ? Effect.succeed(url.href.replace(/\/+$/, ""))
    : Effect.fail(
        new SettingsError({
          message:
            "OTEL_EXPORTER_OTLP_ENDPOINT must be an http or https URL without user name, password and query; keys go into OTEL_EXPORTER_OTLP_HEADERS"
        })
      )
}

const otlp = Effect.gen(function* () {
  const disabled = yield* Config.withDefault(Config.Boolean("OTEL_SDK_DISABLED"), false)
  const endpoint = Option.getOrNull(yield* text("OTEL_EXPORTER_OTLP_ENDPOINT"))
  const headers = Option.getOrNull(yield* Config.option(Config.Redacted("OTEL_EXPORTER_OTLP_HEADERS")))
  const protocol = yield* Config.withDefault(
    Config.Literals(["http/protobuf", "http/json"], "OTEL_EXPORTER_OTLP_PROTOCOL"),
    "http/protobuf" as const
  )
  const serviceName = yield* Config.withDefault(Config.String("OTEL_SERVICE_NAME"), "tidegate")
  const sampler = yield* Config.withDefault(
    Config.Literals(samplers, "OTEL_TRACES_SAMPLER"),
    "parentbased_always_on" as const
  )
  const ratio = yield* Config.withDefault(
    Config.schema(
      Schema.NumberFromString.check(Schema.isBetween({ minimum: 0, maximum: 1 })),
      "OTEL_TRACES_SAMPLER_ARG"
    ),
    1
  )
  if (disabled || endpoint === null || endpoint === "") return null
  return {
    endpoint: yield* readEndpoint(endpoint),
    headers: Redacted.make(headers === null ? {} : yield* readHeaders(Redacted.value(headers))),
    protocol,
    serviceName,
    sampler,
    ratio
  } satisfies OtlpOptions
})

export const telemetrySettings = Effect.gen(function* () {
  const metricsPort = Option.getOrNull(yield* Config.option(port("TIDEGATE_METRICS_PORT")))
  const givenHost = Option.getOrNull(yield* text("TIDEGATE_METRICS_HOST"))
  const metricsKey = Option.getOrNull(yield* Config.option(Config.Redacted("TIDEGATE_METRICS_KEY")))
  const logSample = yield* Config.withDefault(
    Config.schema(
      Schema.NumberFromString.check(Schema.isInt(), Schema.isBetween({ minimum: 0, maximum: 10_000 })),
      "TIDEGATE_LOG_SAMPLE"
    ),
    10
  )
  yield* logFormat
  const host = givenHost ?? "127.0.0.1"
  if (metricsKey !== null && Redacted.value(metricsKey).length < 12) {
    return yield* new SettingsError({ message: "TIDEGATE_METRICS_KEY must have at least 12 characters" })
  }
  if (metricsPort === null && givenHost !== null) {
    return yield* new SettingsError({ message: "TIDEGATE_METRICS_HOST: say the port too, by TIDEGATE_METRICS_PORT" })
  }
  // Fails closed, because without a key anybody who reaches the port could read the metrics, and addresses from outside are no authentication.
  if (metricsPort !== null && metricsKey === null && !loopback.has(host)) {
    return yield* new SettingsError({
      message: "TIDEGATE_METRICS_HOST: beyond loopback the metrics need a key, see TIDEGATE_METRICS_KEY"
    })
  }
  return {
    metricsServer: metricsPort === null ? null : { host, port: metricsPort },
    metricsKey,
    otlp: yield* otlp,
    logSample
  } satisfies TelemetrySettings
}).pipe(Effect.catchTag("ConfigError", (error) => Effect.fail(wrong(error))))
