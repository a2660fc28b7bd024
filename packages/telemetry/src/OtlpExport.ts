import { Effect, Fiber, Latch, Redacted, Schedule } from "effect"
import { HttpBody, HttpClient, HttpClientRequest } from "effect/http"
import { OtlpResource, OtlpSerialization } from "effect/observability"
import type { Counter } from "./Instruments.ts"

/** Where telemetry is sent. */
export interface Collector {
  /** Base URL; `/v1/traces`, `/v1/metrics` and `/v1/logs` are appended. */
  readonly endpoint: string
  readonly headers: Redacted.Redacted<Readonly<Record<string, string>>>
  readonly protocol: "http/protobuf" | "http/json"
  readonly serviceName: string
}

/** What waits for the collector: spans, or lines of the log. */
interface Signal<A> {
  /** Below the collector's URL. */
  readonly path: string
  readonly queue: { readonly size: number; readonly take: (most: number) => ReadonlyArray<A> }
  readonly bodyOf: (
    to: {
      readonly serialization: OtlpSerialization.OtlpSerialization["Service"]
      readonly resource: OtlpResource.Resource
    },
    items: ReadonlyArray<A>
  ) => HttpBody.HttpBody
  readonly exported: Counter
  readonly lost: Counter
}

const batch = 512
/** What is encoded without a pause, about half a millisecond. Encoding a whole batch at once would take longer than a delivery. */
const part = 32
const everyMs = 1_000
/** Timeout of a request to the collector, and of the rest when the process ends. */
const patience = "10 seconds"
export const lastPatience = "2 seconds"

/**
 * A slow or unreachable collector delays nothing: one request of a signal is sent at a time, the queue is limited, and what is lost is
 * counted.
 */
export const exporting = Effect.fnUntraced(function* <A>(
  options: Collector,
  { bodyOf, exported, lost, path, queue }: Signal<A>
) {
  const serialization = yield* OtlpSerialization.OtlpSerialization
  const resource = yield* OtlpResource.fromConfig({ serviceName: options.serviceName })
  const client = (yield* HttpClient.HttpClient).pipe(
    HttpClient.filterStatusOk,
    HttpClient.tap((response) => Effect.ignore(response.arrayBuffer)),
    HttpClient.transformResponse(Effect.timeout(patience)),
    HttpClient.retryTransient({ times: 2, schedule: Schedule.spaced("1 second") })
  )
  const request = HttpClientRequest.post(`${options.endpoint}${path}`).pipe(
    HttpClientRequest.setHeaders(Redacted.value(options.headers))
  )

  const encode = (items: ReadonlyArray<A>): HttpBody.HttpBody => bodyOf({ serialization, resource }, items)
  /** In protobuf, concatenated messages are one message with all fields. Encoding JSON is ten times as fast, and needs no pause. */
  const layOut = Effect.fnUntraced(function* (items: ReadonlyArray<A>) {
    if (options.protocol === "http/json") return encode(items)
    const parts: Array<Uint8Array> = []
    for (let from = 0; from < items.length; from += part) {
      if (from > 0) yield* Effect.callback<void>((resume) => void setImmediate(resume, Effect.void))
      parts.push((encode(items.slice(from, from + part)) as HttpBody.Uint8Array).body)
    }
    return HttpBody.uint8Array(Buffer.concat(parts), "application/x-protobuf")
  })

  const send = Effect.suspend(() => {
    const items = queue.take(batch)
    if (items.length === 0) return Effect.void
    return layOut(items).pipe(
      Effect.flatMap((body) => client.execute(HttpClientRequest.setBody(request, body))),
      Effect.matchEffect({
        onSuccess: () => Effect.sync(() => exported.add(items.length)),
        onFailure: () => Effect.sync(() => lost.add(items.length))
      }),
      Effect.onInterrupt(() => Effect.sync(() => lost.add(items.length)))
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
  // Sent at the end, because what came last belongs to the shutdown.
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      ending.openUnsafe()
      return Effect.timeoutOption(Fiber.await(sending), lastPatience)
    }).pipe(
      Effect.interruptible,
      Effect.andThen(Fiber.interrupt(sending)),
      Effect.andThen(Effect.sync(() => lost.add(queue.size)))
    )
  )
})
