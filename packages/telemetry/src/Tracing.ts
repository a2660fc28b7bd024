import { hash } from "node:crypto"
import { Context } from "effect"
import { Budget } from "./Budget.ts"
import { metrics } from "./Metrics.ts"
import type { Sampler } from "./Sampler.ts"
import type { Span } from "./SpanQueue.ts"
import { formatTraceparent, parseTraceparent, type TraceContext } from "./TraceContext.ts"

/** A request's headers as stored. */
export type Headers = Readonly<Record<string, string | ReadonlyArray<string>>>

/** The recorded trace of a request. */
interface Trace {
  readonly traceId: string
  /** The sender's own span; null if the trace begins here. */
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
  /** Why the request was rejected; null if it was not. */
  readonly rejection: string | null
  readonly events: ReadonlyArray<RoutedEvent>
}

export interface RoutedEvent {
  readonly id: string
  readonly connectionId: string
}

/** The place that a call to a target has in a trace. */
export interface CallTrace {
  readonly traceId: string
  readonly spanId: string
  /** The `traceparent` of the stored request, which the attempt's replaces. */
  readonly stated: ReadonlyArray<string>
  /** Whether the trace is the sender's. */
  readonly isSenders: boolean
}

/** A recorded attempt in progress. */
export interface AttemptTrace extends CallTrace {
  readonly parentSpanId: string
}

/** The data of an attempt's span, from its record. Times are Unix milliseconds. */
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

/** A recorded run of a workflow in progress. */
export interface RunTrace {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
}

/** The data of a step's span. Times are Unix milliseconds. */
export interface StepOutcome {
  readonly stepId: string
  readonly kind: string
  readonly attempts: number
  readonly startedAt: number
  readonly finishedAt: number
  readonly errorCode: string | null
  readonly responseStatus: number | null
}

/** The data of a run's span. Times are Unix milliseconds. */
export interface RunOutcome {
  readonly runId: string
  readonly requestId: string
  readonly teamId: string
  readonly workflowId: string
  readonly attempts: number
  readonly outcome: string
  readonly errorCode: string | null
  readonly startedAt: number
  readonly finishedAt: number
}

/**
 * Spans of the event path: the request at ingress, its routes, and every attempt. The parent of a span may have been recorded by
 * another process, or before a restart. So no state of a trace is kept in memory: the sender's context is in the stored headers, and the ids
 * that the gateway adds are derived from the ids of the request, the event, and the run with its step. Only an attempt has a random id.
 *
 * A request that is not sampled costs one check of a header, and its headers stay unchanged.
 */
export interface Tracing {
  /** If false, callers on hot paths can skip their calls. */
  readonly isOn: boolean
  readonly accepted: (request: AcceptedRequest) => void
  /** Events that a connection's slow rules created from a request. */
  readonly routed: (
    request: Pick<AcceptedRequest, "requestId" | "headers" | "startedAt" | "endedAt">,
    events: ReadonlyArray<RoutedEvent>
  ) => void
  /** Null: this attempt is not recorded. `rootEventId`: the id of the event that the request created. */
  readonly attempt: (headers: Headers, requestId: string, rootEventId: string) => AttemptTrace | null
  readonly attempted: (trace: AttemptTrace | null, startedAt: number, outcome: AttemptOutcome) => void
  /** Null: this run is not recorded. `attempts`: how often it was begun; each beginning has its own span. */
  readonly run: (headers: Headers, requestId: string, runId: string, attempts: number) => RunTrace | null
  /**
   * The place of a step's calls: below the step's span, which is recorded when the step ends. Null: the request is not sampled. It does
   * not depend on how many runs are recorded, because it costs no span.
   */
  readonly stepCall: (
    headers: Headers,
    requestId: string,
    run: { readonly id: string; readonly attempts: number },
    stepId: string
  ) => CallTrace | null
  readonly stepEnded: (trace: RunTrace, outcome: StepOutcome) => void
  readonly runEnded: (trace: RunTrace, outcome: RunOutcome) => void
}

const nothing = (): void => {}

/** The process's tracing; off by default. */
export const Tracing = Context.Reference<Tracing>("@tidegate/telemetry/Tracing", {
  defaultValue: () => ({
    isOn: false,
    accepted: nothing,
    routed: nothing,
    attempt: () => null,
    attempted: nothing,
    run: () => null,
    stepCall: () => null,
    stepEnded: nothing,
    runEnded: nothing
  })
})

/**
 * Traces that each stage begins per second: above that, recording would cost more than a few percent of the recorded work. Operators
 * with more traffic set a ratio that stays below, so that traces are complete.
 */
const maxPerSecond = 20
/** Recorded routes of one request; it may have hundreds. */
const maxRoutes = 16

/** Not secret: the standard only requires randomness, and the system's secure source costs about 20 µs. */
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
const runSpanOf = (runId: string, attempts: number): string => hash("sha256", `run ${runId} ${attempts}`).slice(0, 16)
/** `runSpan`: the span of the run, which is another one after each retry. */
const stepSpanOf = (runSpan: string, stepId: string): string => hash("sha256", `step ${runSpan} ${stepId}`).slice(0, 16)
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
    attempt: new Budget(maxPerSecond),
    run: new Budget(maxPerSecond)
  }

  /** What makes the request's trace. Null: it is not sampled. The id is a hash, which is not made for what the budget leaves out. */
  const sampled = (headers: Headers, requestId: string): (() => Trace) | null => {
    const sender = parseTraceparent(headers["traceparent"])
    let derived: string | undefined
    const traceId = (): string => sender?.traceId ?? (derived ??= traceOf(requestId))
    return sampler(traceId, sender) ? () => ({ traceId: traceId(), sender }) : null
  }

  const begin = (stage: keyof typeof budgets, headers: Headers, requestId: string): Trace | null => {
    const trace = sampled(headers, requestId)
    if (trace === null) return null
    if (budgets[stage].take(now())) return trace()
    metrics.spansDropped.at("rate").add()
    return null
  }

  const callOf = ({ sender, traceId }: Trace, headers: Headers, spanId: string): CallTrace => {
    const stated = headers["traceparent"] ?? []
    return { traceId, spanId, stated: typeof stated === "string" ? [stated] : stated, isSenders: sender !== null }
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
      return trace === null ? null : { ...callOf(trace, headers, randomSpan()), parentSpanId: routeSpanOf(rootEventId) }
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
    },

    run: (headers, requestId, runId, attempts) => {
      const trace = begin("run", headers, requestId)
      if (trace === null) return null
      return { traceId: trace.traceId, spanId: runSpanOf(runId, attempts), parentSpanId: serverSpanOf(requestId) }
    },

    stepCall: (headers, requestId, { attempts, id }, stepId) => {
      const trace = sampled(headers, requestId)
      return trace === null ? null : callOf(trace(), headers, stepSpanOf(runSpanOf(id, attempts), stepId))
    },

    stepEnded: ({ spanId, traceId }, { attempts, errorCode, finishedAt, kind, responseStatus, startedAt, stepId }) =>
      push({
        traceId,
        spanId: stepSpanOf(spanId, stepId),
        parentSpanId: spanId,
        name: `step ${kind}`,
        kind: "internal",
        startedAt,
        endedAt: finishedAt,
        error: errorCode,
        attributes: {
          "tidegate.step_id": stepId,
          "tidegate.step_kind": kind,
          "tidegate.attempt_number": attempts,
          ...(responseStatus === null ? {} : { "http.response.status_code": responseStatus }),
          ...(errorCode === null ? {} : { "error.type": errorCode })
        }
      }),

    runEnded: ({ parentSpanId, spanId, traceId }, outcome) =>
      push({
        traceId,
        spanId,
        parentSpanId,
        name: "workflow run",
        kind: "internal",
        startedAt: outcome.startedAt,
        endedAt: outcome.finishedAt,
        error: outcome.errorCode,
        attributes: {
          "tidegate.run_id": outcome.runId,
          "tidegate.request_id": outcome.requestId,
          "tidegate.team_id": outcome.teamId,
          "tidegate.workflow_id": outcome.workflowId,
          "tidegate.run_attempt": outcome.attempts,
          "tidegate.outcome": outcome.outcome,
          ...(outcome.errorCode === null ? {} : { "error.type": outcome.errorCode })
        }
      })
  }
}

/**
 * The headers (name, value, name, value) of a call, so that the target continues the trace below the span of the attempt or the step.
 * The sender's `tracestate` is kept only with the sender's own trace. Headers that the operator has set are not changed.
 */
export const traceHeaders = (trace: CallTrace | null, headers: ReadonlyArray<string>): ReadonlyArray<string> => {
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
