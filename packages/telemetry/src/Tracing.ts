import { hash } from "node:crypto"
import { Context } from "effect"
import { Budget } from "./Budget.ts"
import { metrics } from "./Metrics.ts"
import type { Sampler } from "./Sampler.ts"
import type { Span } from "./SpanQueue.ts"
import { formatTraceparent, parseTraceparent, type TraceContext } from "./TraceContext.ts"

/** A request's headers as they are stored with it. */
export type Headers = Readonly<Record<string, string | ReadonlyArray<string>>>

/** The recorded trace of a request. */
interface Trace {
  readonly traceId: string
  /** The sender's own span; null: the trace begins here. */
  readonly sender: TraceContext | null
}

export interface AcceptedRequest {
  readonly requestId: string
  readonly teamId: string
  readonly sourceId: string
  readonly method: string
  readonly headers: Headers
  readonly startedAt: number
  readonly endedAt: number
  /** Why it was rejected; null: it was not. */
  readonly rejection: string | null
  readonly events: ReadonlyArray<RoutedEvent>
}

export interface RoutedEvent {
  readonly id: string
  readonly connectionId: string
}

/** An attempt under way that is recorded. */
export interface AttemptTrace {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  /** What the stored request has as `traceparent`, which the attempt's takes the place of. */
  readonly stated: ReadonlyArray<string>
  /** Whether the trace is the sender's. */
  readonly isSenders: boolean
}

/** What an attempt's span tells: of its record. Times are Unix milliseconds. */
export interface AttemptOutcome {
  readonly eventId: string
  readonly teamId: string
  readonly connectionId: string
  readonly destinationId: string
  readonly attemptNumber: number
  readonly responseStatus: number | null
  readonly errorCode: string | null
  readonly finishedAt: number
}

/**
 * Spans of the event path: the request at the door, its routes, and every attempt. A span's parents may have been recorded by
 * another process, or before a restart, so that nothing of a trace is kept in memory between them: the sender's context stands in
 * the stored headers, and the ids of what the gateway adds are derived from those of the request and the event. Only an attempt has a
 * random one, because it can happen twice.
 *
 * A request that is not sampled costs a look at one header, and goes on as it came.
 */
export interface Tracing {
  /** When not, whoever is asked for all requests need not tell of them. */
  readonly isOn: boolean
  readonly accepted: (request: AcceptedRequest) => void
  /** Events that a connection's slow rules made of a request. */
  readonly routed: (
    request: Pick<AcceptedRequest, "requestId" | "headers" | "startedAt" | "endedAt">,
    events: ReadonlyArray<RoutedEvent>
  ) => void
  /** Null: this attempt is not recorded. `rootEventId`: of the event that its request made. */
  readonly attempt: (headers: Headers, requestId: string, rootEventId: string) => AttemptTrace | null
  readonly attempted: (trace: AttemptTrace | null, startedAt: number, outcome: AttemptOutcome) => void
}

const nothing = (): void => {}

/** The process's tracing; off unless the application says otherwise. */
export const Tracing = Context.Reference<Tracing>("@tidegate/telemetry/Tracing", {
  defaultValue: () => ({ isOn: false, accepted: nothing, routed: nothing, attempt: () => null, attempted: nothing })
})

/**
 * Traces begun a second by each stage: above that, recording would cost more than a few percent of what is recorded. Whoever has
 * more sets a ratio that keeps below, so that traces are whole.
 */
const maxPerSecond = 20
/** Of one request; it may have hundreds. */
const maxRoutes = 16

/** No secret: the standard asks for chance alone, and the system's costs some 20 µs. */
const randomSpan = (): string =>
  [0, 1]
    .map(() =>
      Math.floor(Math.random() * 2 ** 32)
        .toString(16)
        .padStart(8, "0")
    )
    .join("")
const serverSpanOf = (requestId: string): string => hash("sha256", `server ${requestId}`).slice(0, 16)
const routeSpanOf = (eventId: string): string => hash("sha256", `route ${eventId}`).slice(0, 16)
const traceOf = (requestId: string): string => hash("sha256", `trace ${requestId}`).slice(0, 32)

export const makeTracing = (options: {
  readonly sampler: Sampler
  readonly push: (span: Span) => void
  readonly now: () => number
}): Tracing => {
  const { now, push, sampler } = options
  const budgets = {
    accepted: new Budget(maxPerSecond),
    routed: new Budget(maxPerSecond),
    attempt: new Budget(maxPerSecond)
  }

  const begin = (stage: keyof typeof budgets, headers: Headers, requestId: string): Trace | null => {
    const sender = parseTraceparent(headers["traceparent"])
    let derived: string | undefined
    const traceId = (): string => sender?.traceId ?? (derived ??= traceOf(requestId))
    if (!sampler(traceId, sender)) return null
    if (budgets[stage].take(now())) return { traceId: traceId(), sender }
    metrics.spansDropped.at("rate").add()
    return null
  }

  const route = (
    traceId: string,
    { endedAt, requestId, startedAt }: Pick<AcceptedRequest, "requestId" | "startedAt" | "endedAt">,
    { connectionId, id }: RoutedEvent
  ): void =>
    push({
      traceId,
      spanId: routeSpanOf(id),
      parentSpanId: serverSpanOf(requestId),
      name: "route",
      kind: "internal",
      startedAt,
      endedAt,
      error: null,
      attributes: {
        "tidegate.request_id": requestId,
        "tidegate.event_id": id,
        "tidegate.connection_id": connectionId
      }
    })

  return {
    isOn: true,

    accepted: (request) => {
      const trace = begin("accepted", request.headers, request.requestId)
      if (trace === null) return
      push({
        traceId: trace.traceId,
        spanId: serverSpanOf(request.requestId),
        parentSpanId: trace.sender?.spanId,
        name: `${request.method} /e/{source}`,
        kind: "server",
        startedAt: request.startedAt,
        endedAt: request.endedAt,
        error: request.rejection,
        attributes: {
          "http.request.method": request.method,
          "http.route": "/e/{source}",
          "tidegate.request_id": request.requestId,
          "tidegate.team_id": request.teamId,
          "tidegate.source_id": request.sourceId
        }
      })
      for (const event of request.events.slice(0, maxRoutes)) route(trace.traceId, request, event)
    },

    routed: (request, events) => {
      if (events.length === 0) return
      const trace = begin("routed", request.headers, request.requestId)
      if (trace === null) return
      for (const event of events.slice(0, maxRoutes)) route(trace.traceId, request, event)
    },

    attempt: (headers, requestId, rootEventId) => {
      const trace = begin("attempt", headers, requestId)
      if (trace === null) return null
      const stated = headers["traceparent"] ?? []
      return {
        traceId: trace.traceId,
        spanId: randomSpan(),
        parentSpanId: routeSpanOf(rootEventId),
        stated: typeof stated === "string" ? [stated] : stated,
        isSenders: trace.sender !== null
      }
    },

    attempted: (trace, startedAt, outcome) => {
      if (trace === null) return
      push({
        traceId: trace.traceId,
        spanId: trace.spanId,
        parentSpanId: trace.parentSpanId,
        name: "attempt",
        kind: "client",
        startedAt,
        endedAt: outcome.finishedAt,
        error: outcome.errorCode,
        attributes: {
          "tidegate.event_id": outcome.eventId,
          "tidegate.team_id": outcome.teamId,
          "tidegate.connection_id": outcome.connectionId,
          "tidegate.destination_id": outcome.destinationId,
          "tidegate.attempt_number": outcome.attemptNumber,
          ...(outcome.responseStatus === null ? {} : { "http.response.status_code": outcome.responseStatus }),
          ...(outcome.errorCode === null ? {} : { "error.type": outcome.errorCode })
        }
      })
    }
  }
}

/**
 * The headers (name, value, name, value) of an attempt's request, so that the target goes on with its trace under its span.
 * The sender's `tracestate` goes with the sender's trace, and with no other. What the operator has set stays.
 */
export const traceHeaders = (trace: AttemptTrace | null, headers: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (trace === null) return headers
  const traced: Array<string> = []
  let isSet = false
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!
    const value = headers[i + 1]!
    if (name === "tracestate" && !trace.isSenders) continue
    if (name === "traceparent") {
      if (trace.stated.includes(value)) continue
      isSet = true
    }
    traced.push(name, value)
  }
  if (!isSet) traced.push("traceparent", formatTraceparent({ ...trace, sampled: true }))
  return traced
}
