import { Clock, Effect, Fiber, Latch, Layer, Metric, Redacted, Schedule } from "effect"
import { FetchHttpClient, HttpBody, HttpClient, HttpClientRequest } from "effect/http"
import { OtlpExporter, OtlpMetrics, OtlpResource, OtlpSerialization } from "effect/observability"
import { Registry } from "./Exposition.ts"
import { instruments, metrics } from "./Metrics.ts"
import { makeSampler, type SamplerName } from "./Sampler.ts"
import { otlp, type Span, SpanQueue } from "./SpanQueue.ts"
import { makeTracing, Tracing } from "./Tracing.ts"

/** Where telemetry is sent, and which traces are recorded. */
export interface OtlpOptions {
  /** Base URL; `/v1/traces` and `/v1/metrics` are appended. */
  readonly endpoint: string
  readonly headers: Redacted.Redacted<Readonly<Record<string, string>>>
  readonly protocol: "http/protobuf" | "http/json"
  readonly serviceName: string
  readonly sampler: SamplerName
  readonly ratio: number
}

const batch = 512
/** Spans that are encoded without a pause, about half a millisecond. Encoding a whole batch at once would take longer than a delivery. */
const part = 32
const everyMs = 1_000
const metricsEvery = "10 seconds"
/** Timeout of a request to the collector, and of the rest when the process ends. */
const patience = "10 seconds"
const lastPatience = "2 seconds"

/**
 * A slow or unreachable collector delays nothing: one request is sent at a time, the queue is limited, and lost spans are
 * counted.
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

  const bodyOf = (spans: ReadonlyArray<Span>): HttpBody.HttpBody =>
    serialization.traces({
      resourceSpans: [{ resource, scopeSpans: [{ scope: { name: "tidegate" }, spans: spans.map(otlp) }] }]
    })
  /** In protobuf, concatenated messages are one message with all fields. Encoding JSON is ten times as fast, and needs no pause. */
  const layOut = Effect.fnUntraced(function* (spans: ReadonlyArray<Span>) {
    if (options.protocol === "http/json") return bodyOf(spans)
    const parts: Array<Uint8Array> = []
    for (let from = 0; from < spans.length; from += part) {
      if (from > 0) yield* Effect.callback<void>((resume) => void setImmediate(resume, Effect.void))
      parts.push((bodyOf(spans.slice(from, from + part)) as HttpBody.Uint8Array).body)
    }
    return HttpBody.uint8Array(Buffer.concat(parts), "application/x-protobuf")
  })

  const lost = (spans: number): void => metrics.spansDropped.at("collector").add(spans)
  const send = Effect.suspend(() => {
    const spans = queue.take(batch)
    if (spans.length === 0) return Effect.void
    return layOut(spans).pipe(
      Effect.flatMap((body) => client.execute(HttpClientRequest.setBody(request, body))),
      Effect.matchEffect({
        onSuccess: () => Effect.sync(() => metrics.spansExported.add(spans.length)),
        onFailure: () => Effect.sync(() => lost(spans.length))
      }),
      Effect.onInterrupt(() => Effect.sync(() => lost(spans.length)))
    )
  }).pipe(Effect.withTracerEnabled(false))

  const ending = Latch.makeUnsafe(false)
  const sending = yield* Effect.forkScoped(
    Effect.gen(function* () {
      while (!ending.isOpen() || queue.size > 0) {
        if (!ending.isOpen() && queue.size < batch) yield* Effect.raceFirst(Effect.sleep(everyMs), ending.await)
        yield* send
      }
    })
  )
  // Sent at the end, because the last spans belong to the shutdown.
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      ending.openUnsafe()
      return Effect.timeoutOption(Fiber.await(sending), lastPatience)
    }).pipe(
      Effect.interruptible,
      Effect.andThen(Fiber.interrupt(sending)),
      Effect.andThen(Effect.sync(() => lost(queue.size)))
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
    // Redirects are errors, because requests carry a key that must only go to the configured collector.
    Layer.provide(Layer.succeed(FetchHttpClient.RequestInit, { redirect: "error" }))
  )
}
