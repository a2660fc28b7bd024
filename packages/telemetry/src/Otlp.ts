import { Clock, Effect, Layer, Metric, Redacted, Schedule } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import { OtlpExporter, OtlpMetrics, OtlpResource, OtlpSerialization } from "effect/observability"
import { Registry } from "./Exposition.ts"
import { instruments, metrics } from "./Metrics.ts"
import { makeSampler, type SamplerName } from "./Sampler.ts"
import { SpanQueue } from "./SpanQueue.ts"
import { makeTracing, Tracing } from "./Tracing.ts"

/** Where telemetry is sent, and which traces are. */
export interface OtlpOptions {
  /** What `/v1/traces` and `/v1/metrics` are appended to. */
  readonly endpoint: string
  readonly headers: Redacted.Redacted<Readonly<Record<string, string>>>
  readonly protocol: "http/protobuf" | "http/json"
  readonly serviceName: string
  readonly sampler: SamplerName
  readonly ratio: number
}

const batch = 512
const everyMs = 1_000
const metricsEvery = "10 seconds"
/** For one request to the collector, and for what is left when the process ends. */
const patience = "10 seconds"
const lastPatience = "2 seconds"

/**
 * A collector that cannot be reached, or is slow, costs nobody anything: one request is under way at a time, what waits is
 * bounded, and what is lost is counted.
 */
const exportSpans = Effect.fnUntraced(function* (options: OtlpOptions, queue: SpanQueue) {
  const serialization = yield* OtlpSerialization.OtlpSerialization
  const resource = yield* OtlpResource.fromConfig({ serviceName: options.serviceName })
  const client = (yield* HttpClient.HttpClient).pipe(
    HttpClient.filterStatusOk,
    HttpClient.tap((response) => Effect.ignore(response.arrayBuffer)),
    HttpClient.transformResponse(Effect.timeout(patience)),
    HttpClient.retryTransient({ times: 2, schedule: Schedule.spaced("1 second") })
  )
  const request = HttpClientRequest.post(`${options.endpoint}/v1/traces`).pipe(
    HttpClientRequest.setHeaders(Redacted.value(options.headers))
  )

  const send = Effect.suspend(() => {
    const spans = queue.take(batch)
    if (spans.length === 0) return Effect.void
    const body = serialization.traces({
      resourceSpans: [{ resource, scopeSpans: [{ scope: { name: "tidegate" }, spans }] }]
    })
    return client.execute(HttpClientRequest.setBody(request, body)).pipe(
      Effect.match({
        onSuccess: () => metrics.spansExported.add(spans.length),
        onFailure: () => metrics.spansDropped.at("collector").add(spans.length)
      })
    )
  }).pipe(Effect.withTracerEnabled(false))

  yield* Effect.addFinalizer(() =>
    Effect.whileLoop({ while: () => queue.size > 0, body: () => send, step: () => {} }).pipe(
      Effect.timeoutOption(lastPatience),
      Effect.interruptible
    )
  )
  yield* Effect.forkScoped(
    Effect.forever(
      Effect.andThen(
        Effect.suspend(() => Effect.sleep(queue.size >= batch ? 0 : everyMs)),
        send
      )
    )
  )
})

/** Traces the event path, and sends traces and metrics to the collector. */
export const layer = (options: OtlpOptions): Layer.Layer<never> => {
  const traced = Layer.effect(
    Tracing,
    Effect.gen(function* () {
      const clock = yield* Clock.Clock
      const queue = new SpanQueue()
      yield* exportSpans(options, queue)
      return makeTracing({
        sampler: makeSampler(options.sampler, options.ratio),
        push: (span) => queue.push(span),
        now: () => clock.currentTimeMillisUnsafe()
      })
    })
  )
  const measured = OtlpMetrics.layer({
    url: `${options.endpoint}/v1/metrics`,
    headers: Redacted.value(options.headers),
    resource: { serviceName: options.serviceName },
    exportInterval: metricsEvery,
    shutdownTimeout: lastPatience
  }).pipe(Layer.provide(Layer.succeed(Metric.MetricRegistry, new Registry(instruments))))
  return Layer.merge(traced, measured).pipe(
    Layer.provide([
      FetchHttpClient.layer,
      options.protocol === "http/json" ? OtlpSerialization.layerJson : OtlpSerialization.layerProtobuf,
      OtlpExporter.layerFlusher
    ]),
    // What carries a key is sent nowhere but where the operator said.
    Layer.provide(Layer.succeed(FetchHttpClient.RequestInit, { redirect: "error" }))
  )
}
