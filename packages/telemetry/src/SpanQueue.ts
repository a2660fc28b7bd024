import { OtlpResource, type OtlpTracer } from "effect/observability"
import { metrics } from "./Metrics.ts"

type OtlpSpan = OtlpTracer.ScopeSpan["spans"][number]

export interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string | undefined
  readonly name: string
  readonly kind: "internal" | "server" | "client"
  /** Unix ms. */
  readonly startedAt: number
  readonly endedAt: number
  /** The error, in one word; null if there is none. */
  readonly error: string | null
  /** Ids and outcomes; never headers, bodies, queries or secrets. */
  readonly attributes: Readonly<Record<string, string | number>>
}

const kinds = { internal: 1, server: 2, client: 3 } as const
const statuses = { ok: 1, error: 2 } as const

const nanos = (ms: number): string => `${Math.floor(ms)}000000`

/** The span in the collector's format. */
export const otlp = (span: Span): OtlpSpan => ({
  traceId: span.traceId,
  spanId: span.spanId,
  parentSpanId: span.parentSpanId,
  name: span.name,
  kind: kinds[span.kind],
  startTimeUnixNano: nanos(span.startedAt),
  endTimeUnixNano: nanos(Math.max(span.startedAt, span.endedAt)),
  attributes: OtlpResource.entriesToAttributes(Object.entries(span.attributes)),
  droppedAttributesCount: 0,
  events: [],
  droppedEventsCount: 0,
  status: span.error === null ? { code: statuses.ok } : { code: statuses.error, message: span.error },
  links: [],
  droppedLinksCount: 0
})

/** About 4 MB. */
const maxWaiting = 4_096

/**
 * Spans that wait for the exporter. If the queue is full, further spans are dropped and counted, because deliveries must not wait for
 * their telemetry.
 */
export class SpanQueue {
  #spans: Array<Span> = []

  push(span: Span): void {
    if (this.#spans.length < maxWaiting) this.#spans.push(span)
    else metrics.spansDropped.at("queue_full").add()
  }

  get size(): number {
    return this.#spans.length
  }

  take(most: number): ReadonlyArray<Span> {
    return this.#spans.splice(0, most)
  }
}
