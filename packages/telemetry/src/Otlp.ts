import { Clock, Effect, Layer, Logger, Metric, Redacted } from "effect"
import { FetchHttpClient } from "effect/http"
import { OtlpExporter, OtlpMetrics, OtlpSerialization } from "effect/observability"
import { Registry } from "./Exposition.ts"
import { LogQueue, type LogRecord, recordOf } from "./LogQueue.ts"
import { instruments, metrics } from "./Metrics.ts"
import { type Collector, exporting, lastPatience } from "./OtlpExport.ts"
import { makeSampler, type SamplerName } from "./Sampler.ts"
import { otlp, type Span, SpanQueue } from "./SpanQueue.ts"
import { makeTracing, Tracing } from "./Tracing.ts"

/** Where telemetry is sent, and which traces are recorded. */
export interface OtlpOptions extends Collector {
  readonly sampler: SamplerName
  readonly ratio: number
}

const metricsEvery = "10 seconds"
const scope = { name: "tidegate" }

/** Traces the event path, and sends traces, metrics and lines of the log to the collector; without the lines that the log leaves out. */
export const layer = (
  options: OtlpOptions,
  isLeftOut: (message: unknown) => boolean = () => false
): Layer.Layer<never> => {
  const traced = Layer.effect(
    Tracing,
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      const queue = new SpanQueue()
      yield* exporting(options, {
        path: "/v1/traces",
        queue,
        bodyOf: ({ serialization, resource }, spans: ReadonlyArray<Span>) =>
          serialization.traces({
            resourceSpans: [{ resource, scopeSpans: [{ scope, spans: spans.map(otlp) }] }]
          }),
        exported: metrics.spansExported,
        lost: metrics.spansDropped.at("collector")
      })
      return makeTracing({
        sampler: makeSampler(options.sampler, options.ratio),
        push: (span) => queue.push(span),
        now: () => clock.currentTimeMillisUnsafe()
      })
    })
  )
  const logger = Effect.gen(function* () {
    const queue = new LogQueue()
    yield* exporting(options, {
      path: "/v1/logs",
      queue,
      bodyOf: ({ serialization, resource }, logRecords: ReadonlyArray<LogRecord>) =>
        serialization.logs({ resourceLogs: [{ resource, scopeLogs: [{ scope, logRecords: [...logRecords] }] }] }),
      exported: metrics.linesExported,
      lost: metrics.linesDropped.at("collector")
    })
    return Logger.make((entry) => {
      if (!isLeftOut(entry.message)) queue.push(recordOf(entry))
    })
  })
  const logged = Logger.layer([logger], { mergeWithExisting: true })
  const measured = OtlpMetrics.layer({
    url: `${options.endpoint}/v1/metrics`,
    headers: Redacted.value(options.headers),
    resource: { serviceName: options.serviceName },
    exportInterval: metricsEvery,
    shutdownTimeout: lastPatience
  }).pipe(Layer.provide(Layer.succeed(Metric.MetricRegistry, new Registry(instruments))))
  return Layer.mergeAll(traced, logged, measured).pipe(
    Layer.provide([
      FetchHttpClient.layer,
      options.protocol === "http/json" ? OtlpSerialization.layerJson : OtlpSerialization.layerProtobuf,
      OtlpExporter.layerFlusher
    ]),
    // Redirects are errors, because requests carry a key that must only go to the configured collector.
    Layer.provide(Layer.succeed(FetchHttpClient.RequestInit, { redirect: "error" }))
  )
}
