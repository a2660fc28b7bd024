import { expect, it } from "@effect/vitest"
import { ConfigProvider, Effect, Redacted } from "effect"
import { describe } from "vitest"
import { telemetrySettings } from "../src/TelemetrySettings.ts"

const read = (env: Record<string, string>) =>
  Effect.provideService(telemetrySettings, ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env }))

describe("Telemetry settings", () => {
  it.effect("Telemetry is off by default", () =>
    Effect.gen(function* () {
      expect(yield* read({})).toEqual({ metricsServer: null, metricsKey: null, otlp: null, logSample: 10 })
    })
  )

  it.effect("Metrics port listens on loopback, or on any address if a key is set", () =>
    Effect.gen(function* () {
      const own = yield* read({ TIDEGATE_METRICS_PORT: "9464" })
      expect(own.metricsServer).toEqual({ host: "127.0.0.1", port: 9464 })
      const wide = yield* read({
        TIDEGATE_METRICS_PORT: "9464",
        TIDEGATE_METRICS_HOST: "0.0.0.0",
        TIDEGATE_METRICS_KEY: "long-enough-a-key"
      })
      expect(wide.metricsServer).toEqual({ host: "0.0.0.0", port: 9464 })
    })
  )

  it.effect("OTLP settings set the collector's endpoint, headers, protocol and sampling", () =>
    Effect.gen(function* () {
      const { otlp } = yield* read({
        OTEL_EXPORTER_OTLP_ENDPOINT: "https://collector.example:4318/otlp/",
        OTEL_EXPORTER_OTLP_HEADERS: "Authorization=Bearer%20abc, x-team=1",
        OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
        OTEL_TRACES_SAMPLER_ARG: "0.25"
      })
      expect(otlp).toMatchObject({
        endpoint: "https://collector.example:4318/otlp",
        protocol: "http/protobuf",
        serviceName: "tidegate",
        sampler: "parentbased_traceidratio",
        ratio: 0.25
      })
      expect(Redacted.value(otlp!.headers)).toEqual({ authorization: "Bearer abc", "x-team": "1" })
      expect(JSON.stringify(otlp)).not.toContain("abc")
      const off = yield* read({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318", OTEL_SDK_DISABLED: "true" })
      expect(off.otlp).toBeNull()
    })
  )

  const collector = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" }
  const wrong: ReadonlyArray<readonly [string, Record<string, string>]> = [
    ["TIDEGATE_METRICS_KEY", { TIDEGATE_METRICS_KEY: "short" }],
    ["TIDEGATE_METRICS_HOST", { TIDEGATE_METRICS_HOST: "0.0.0.0" }],
    ["TIDEGATE_METRICS_HOST", { TIDEGATE_METRICS_PORT: "9464", TIDEGATE_METRICS_HOST: "0.0.0.0" }],
    ["TIDEGATE_METRICS_PORT", { TIDEGATE_METRICS_PORT: "port" }],
    ["TIDEGATE_LOG_FORMAT", { TIDEGATE_LOG_FORMAT: "xml" }],
    ["TIDEGATE_LOG_SAMPLE", { TIDEGATE_LOG_SAMPLE: "-1" }],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", { OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318" }],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", { OTEL_EXPORTER_OTLP_ENDPOINT: "http://user:secret@collector" }],
    ["OTEL_EXPORTER_OTLP_PROTOCOL", { ...collector, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }],
    ["OTEL_EXPORTER_OTLP_HEADERS", { ...collector, OTEL_EXPORTER_OTLP_HEADERS: "secret" }],
    ["OTEL_EXPORTER_OTLP_HEADERS", { ...collector, OTEL_EXPORTER_OTLP_HEADERS: "a=secret%0d%0ab: c" }],
    ["OTEL_TRACES_SAMPLER", { OTEL_TRACES_SAMPLER: "jaeger_remote" }],
    ["OTEL_TRACES_SAMPLER_ARG", { OTEL_TRACES_SAMPLER_ARG: "1.5" }]
  ]
  it.effect.each(wrong)("Telemetry settings refuse a wrong %s and do not repeat its value", ([name, env]) =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(read(env))
      expect(message).toContain(name)
      expect(message).not.toContain("secret")
    })
  )
})
