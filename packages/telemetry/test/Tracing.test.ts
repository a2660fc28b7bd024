import { describe, expect, it } from "vitest"
import { instruments, metrics } from "../src/Metrics.ts"
import { makeSampler } from "../src/Sampler.ts"
import { otlp, type Span, SpanQueue } from "../src/SpanQueue.ts"
import { makeTracing, traceHeaders } from "../src/Tracing.ts"

const traceId = "0af7651916cd43dd8448eb211c80319c"
const sender = `00-${traceId}-b7ad6b7169203331-01`

/** One process's tracing, with the spans it has made. */
const world = (sampler = makeSampler("parentbased_always_on", 1)) => {
  const spans: Array<Span> = []
  let time = 1_000
  const tracing = makeTracing({ sampler, push: (span) => void spans.push(span), now: () => time })
  return { spans, tracing, later: () => (time += 1_000) }
}

const request = (headers: Record<string, string | Array<string>>, events = ["evt_1"]) => ({
  requestId: "req_1",
  teamId: "tm_1",
  sourceId: "src_1",
  method: "POST",
  headers,
  startedAt: 1,
  endedAt: 2,
  rejection: null,
  events: events.map((id) => ({ id, connectionId: "web_1" }))
})

const outcome = {
  eventId: "evt_1",
  teamId: "tm_1",
  connectionId: "web_1",
  destinationId: "des_1",
  attemptNumber: 1,
  responseStatus: 200,
  errorCode: null,
  finishedAt: 4
}

describe("Trace spans", () => {
  it("A run's span is under its request's, its steps' are under the run's, and each beginning has its own", () => {
    const [ingress, first, second] = [world(), world(), world()]
    const headers = { traceparent: sender }
    ingress.tracing.accepted(request(headers, []))
    const run = {
      runId: "wfr_1",
      requestId: "req_1",
      teamId: "tm_1",
      workflowId: "wfl_1",
      outcome: "failed",
      errorCode: "BAD_RESPONSE",
      startedAt: 3,
      finishedAt: 9
    }
    for (const [attempts, { tracing }] of [[1, first] as const, [2, second] as const]) {
      const trace = tracing.run(headers, "req_1", "wfr_1", attempts)!
      const step = { stepId: "call", kind: "action", attempts: 1, startedAt: 4, finishedAt: 8 }
      tracing.stepEnded(trace, { ...step, errorCode: "BAD_RESPONSE", responseStatus: 500 })
      tracing.runEnded(trace, { ...run, attempts })
    }
    for (const { spans } of [first, second]) {
      expect(spans).toMatchObject([
        {
          traceId,
          parentSpanId: spans[1]!.spanId,
          name: "step action",
          error: "BAD_RESPONSE",
          startedAt: 4,
          endedAt: 8
        },
        { traceId, parentSpanId: ingress.spans[0]!.spanId, name: "workflow run", error: "BAD_RESPONSE", endedAt: 9 }
      ])
    }
    expect(first.spans[1]!.spanId).not.toBe(second.spans[1]!.spanId)
  })

  it("Spans of different processes belong to one trace with correct parents", () => {
    const [ingress, first, second] = [world(), world(), world()]
    const headers = { traceparent: sender }
    ingress.tracing.accepted(request(headers))
    for (const { tracing } of [first, second]) tracing.attempted(tracing.attempt(headers, "req_1", "evt_1"), 3, outcome)
    const [server, route] = ingress.spans
    expect(server).toMatchObject({ traceId, parentSpanId: "b7ad6b7169203331", kind: "server" })
    expect(route).toMatchObject({ traceId, parentSpanId: server!.spanId })
    expect([...first.spans, ...second.spans]).toMatchObject([
      { traceId, parentSpanId: route!.spanId, kind: "client" },
      { traceId, parentSpanId: route!.spanId, kind: "client" }
    ])
    expect(first.spans[0]!.spanId).not.toBe(second.spans[0]!.spanId)
  })

  it("Processes derive the same trace id for a request without a traceparent", () => {
    const [ingress, elsewhere] = [world(), world()]
    ingress.tracing.accepted(request({}))
    elsewhere.tracing.attempted(elsewhere.tracing.attempt({}, "req_1", "evt_1"), 3, outcome)
    expect(ingress.spans[0]!.parentSpanId).toBeUndefined()
    expect(elsewhere.spans[0]!.traceId).toBe(ingress.spans[0]!.traceId)
  })

  it("Spans are not created for unsampled traces, above the rate limit, or for hundreds of routes", () => {
    const unsampled = world()
    unsampled.tracing.accepted(request({ traceparent: sender.replace(/01$/, "00") }))
    expect(unsampled.spans).toEqual([])

    const flooded = world()
    const before = metrics.spansDropped.at("rate").value
    for (let i = 0; i < 250; i++) flooded.tracing.accepted(request({}, []))
    expect(flooded.spans).toHaveLength(20)
    expect(metrics.spansDropped.at("rate").value - before).toBe(230)
    // A flood of requests takes no spans from the attempts.
    expect(flooded.tracing.attempt({}, "req_1", "evt_1")).not.toBeNull()
    flooded.later()
    flooded.tracing.accepted(
      request(
        {},
        Array.from({ length: 300 }, (_, at) => `evt_${at}`)
      )
    )
    expect(flooded.spans).toHaveLength(20 + 1 + 16)
  })
})

describe("Trace headers of a delivery", () => {
  const traced = (stored: Record<string, string | Array<string>>, outbound: ReadonlyArray<string>) => {
    const { tracing } = world()
    const trace = tracing.attempt(stored, "req_1", "evt_1")!
    return { trace, headers: traceHeaders(trace, outbound) }
  }

  it("A delivery carries the attempt's span in the sender's trace, with the sender's tracestate", () => {
    const stored = { traceparent: sender, tracestate: "a=1" }
    const { headers, trace } = traced(stored, ["a", "b", "traceparent", sender, "tracestate", "a=1"])
    expect(headers).toEqual(["a", "b", "tracestate", "a=1", "traceparent", `00-${traceId}-${trace.spanId}-01`])
  })

  it.each([["odd"], [["odd", "odder"]], [[sender, sender]]])(
    "The invalid traceparent %s is replaced by a new trace without tracestate",
    (stated) => {
      const values = typeof stated === "string" ? [stated] : stated
      const outbound = [...values.flatMap((value) => ["traceparent", value]), "tracestate", "a=1"]
      const { headers, trace } = traced({ traceparent: stated, tracestate: "a=1" }, outbound)
      expect(headers).toEqual(["traceparent", `00-${trace.traceId}-${trace.spanId}-01`])
      expect(trace.traceId).not.toBe(traceId)
    }
  )

  it("A traceparent that the operator has set is kept", () => {
    expect(traced({ traceparent: sender }, ["traceparent", "the operator's"]).headers).toEqual([
      "traceparent",
      "the operator's"
    ])
  })

  it("Trace headers of a delivery are unchanged when tracing is off", () => {
    const headers = ["traceparent", "odd", "tracestate", "x"]
    expect(traceHeaders(null, headers)).toBe(headers)
  })
})

describe("Span queue", () => {
  const span = {
    traceId,
    spanId: "1",
    parentSpanId: undefined,
    name: "n",
    kind: "client",
    startedAt: 1_700_000_000_123,
    endedAt: 1_700_000_000_124,
    error: null,
    attributes: { a: "b", n: 2 }
  } as const

  it("The span queue is bounded, and the spans that do not fit are counted", () => {
    const queue = new SpanQueue()
    const before = metrics.spansDropped.at("queue_full").value
    for (let i = 0; i < 5_000; i++) queue.push(span)
    expect(queue.size).toBe(4_096)
    expect(metrics.spansDropped.at("queue_full").value - before).toBe(904)
    expect(queue.take(4_096)).toHaveLength(4_096)
    expect(queue.size).toBe(0)
  })

  it("The span queue returns spans in the format of a collector", () => {
    const queue = new SpanQueue()
    queue.push({ ...span, error: "TIMEOUT" })
    expect(queue.take(1).map(otlp)).toMatchObject([
      {
        kind: 3,
        startTimeUnixNano: "1700000000123000000",
        endTimeUnixNano: "1700000000124000000",
        status: { code: 2, message: "TIMEOUT" },
        attributes: [
          { key: "a", value: { stringValue: "b" } },
          { key: "n", value: { intValue: 2 } }
        ]
      }
    ])
  })

  it("The span queue has a metric for dropped spans", () =>
    expect(instruments.map(({ name }) => name)).toContain("tidegate_spans_dropped_total"))
})
