import { randomBytes } from "node:crypto"
import { describe, expect } from "vitest"
import { type Exposed, parseExposition, sampleValue } from "../support/Exposition.ts"
import type { Span } from "../support/Collector.ts"
import type { Source } from "../support/Contract.ts"
import { type Body, Gateway } from "../support/Gateway.ts"
import { it as gatewayIt } from "../support/collecting.ts"
import { freePort } from "../support/Ports.ts"
import { request } from "../support/RawHttp.ts"

/** What the gateway tells of itself: metrics, traces, and lines of its log. */

const it = gatewayIt
  .extend("isLinked", { scope: "file" }, true)
  .extend("settings", { scope: "file" }, ({ collector }) => ({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin,
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    OTEL_EXPORTER_OTLP_HEADERS: "x-collector-key=a%20key",
    OTEL_SERVICE_NAME: "gateway-under-test",
    TIDEGATE_METRICS_KEY: "a-key-of-the-metrics",
    TIDEGATE_LOG_SAMPLE: "1000"
  }))
  .extend("scrape", ({ gateway }) => async (key = gateway.key): Promise<ReadonlyMap<string, Exposed>> => {
    const response = await fetch(`${gateway.origin}/metrics`, { headers: { authorization: `Bearer ${key}` } })
    expect(response.status).toBe(200)
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8")
    return parseExposition(await response.text())
  })
  .extend("send", ({ gateway }) => async (source: Source, headers: Record<string, string> = {}): Promise<string> => {
    const response = await fetch(`${gateway.origin}/e/${source.id}?secret=in-the-query`, {
      method: "POST",
      headers,
      body: '{"secret":"in-the-body"}'
    })
    expect(response.status).toBe(200)
    return ((await response.json()) as { request_id: string }).request_id
  })
  /** A line of the log, with what it is about. */
  .extend(
    "line",
    ({ gateway }) =>
      (what: string, is: (about: Body, message: unknown) => boolean): Promise<Line> =>
        gateway.eventually(what, async () => {
          const json = (await gateway.logged()).split("\n").filter((line) => line.startsWith("{"))
          const lines = json.map((text): Line => {
            const { annotations, message } = JSON.parse(text)
            return { text, message, about: annotations }
          })
          return lines.find(({ about, message }) => is(about, message))
        })
  )

interface Line {
  readonly text: string
  readonly message: unknown
  readonly about: Body
}

it.afterEach(({ gateway }) => gateway.link.mend())

const traceIds = (): { readonly traceId: string; readonly spanId: string } => ({
  traceId: randomBytes(16).toString("hex"),
  spanId: randomBytes(8).toString("hex")
})

/** Whether a line of the log is of this kind. */
const isOf = (kind: string, message: unknown): boolean => [message].flat().includes(kind)

const attribute = (span: Span, key: string): unknown => {
  const value = span.attributes.find((one) => one.key === key)?.value
  return value?.stringValue ?? value?.intValue ?? value?.doubleValue
}

describe("Metrics of the gateway", () => {
  it("Metrics count a request, its event and its attempt", async ({ gateway, scrape, send, target }) => {
    const { destination, source } = await gateway.route(target)
    // Counts are of the process: what the tests before have sent may still be on its way.
    await gateway.settled()
    const before = await scrape()
    await send(source)
    await target.next()
    const after = await gateway.eventually("the attempt is counted", async () => {
      const now = await scrape()
      const more = (name: string, labels?: Record<string, string>) =>
        (sampleValue(now, name, labels) ?? 0) - (sampleValue(before, name, labels) ?? 0)
      const isThere =
        more("tidegate_attempts_total", { error: "none" }) === 1 &&
        more("tidegate_events_total", { outcome: "SUCCESSFUL" }) === 1 &&
        more("tidegate_journal_commit_records_sum", { kind: "attempt" }) === 1
      return isThere ? { now, more } : null
    })
    const { more, now } = after
    expect(more("tidegate_requests_total", { outcome: "accepted" })).toBe(1)
    expect(more("tidegate_events_total", { outcome: "created" })).toBe(1)
    expect(more("tidegate_events_total", { outcome: "SUCCESSFUL" })).toBe(1)
    expect(more("tidegate_request_seconds_count")).toBe(1)
    expect(more("tidegate_attempt_response_seconds_count")).toBe(1)
    expect(more("tidegate_first_attempt_seconds_count")).toBe(1)
    expect(more("tidegate_journal_commits_total", { kind: "accept" })).toBe(1)
    expect(more("tidegate_journal_commit_records_sum", { kind: "attempt" })).toBe(1)
    expect(more("tidegate_request_body_bytes_total")).toBe('{"secret":"in-the-body"}'.length)
    expect(sampleValue(now, "tidegate_shards_held")).toBeGreaterThan(0)
    expect(sampleValue(now, "tidegate_cluster_runners")).toBe(1)
    expect(sampleValue(now, "process_resident_memory_bytes")).toBeGreaterThan(10_000_000)
    expect(sampleValue(now, "process_cpu_seconds_total")).toBeGreaterThan(0)
    expect(sampleValue(now, "tidegate_poller_seconds_count")).toBeGreaterThan(0)
    expect(sampleValue(now, "tidegate_sql_wait_seconds_count", { pool: "hot" })).toBeGreaterThan(0)
    expect(sampleValue(now, "tidegate_api_calls_total", { group: "sources", status: "200" })).toBeGreaterThan(0)
    // Only destinations for which events wait are named.
    await gateway.eventually("the destination is not named any more", async () => {
      const named = [...(await scrape()).values()].flatMap(({ samples }) =>
        samples.map(({ labels }) => labels.get("destination"))
      )
      return named.includes(destination.id) ? null : named
    })
  })

  it("Metrics and log lines show what waits for a destination and since when", async ({
    gateway,
    line,
    scrape,
    send,
    target
  }) => {
    target.reply = (response) => void response.writeHead(500).end()
    const { destination, source } = await gateway.route(target, {
      rules: [{ type: "retry", strategy: "linear", interval: 3_600_000, count: 3 }]
    })
    await send(source)
    await target.next()
    const found = await gateway.eventually("the event waits", async () => {
      const now = await scrape()
      const waiting = sampleValue(now, "tidegate_destination_backlog", { destination: destination.id })
      return waiting === 1 ? now : null
    })
    expect(sampleValue(found, "tidegate_destination_oldest_due_seconds", { destination: destination.id })).toBe(0)
    expect(sampleValue(found, "tidegate_attempts_total", { error: "BAD_RESPONSE" })).toBeGreaterThan(0)
    expect(
      await line(
        "the failed attempt is logged",
        (about) => about.destination_id === destination.id && about.outcome === "BAD_RESPONSE"
      )
    ).toMatchObject({ about: { response_status: 500, event_status: "PENDING", attempt_number: 1 } })
  })

  it("Metrics, log lines and spans tell of a failed run and its failed step", async ({
    collector,
    gateway,
    line,
    scrape,
    send,
    target
  }) => {
    target.reply = (response) => void response.writeHead(422).end("refused")
    const { destination, source } = await gateway.route(target, { rules: [{ type: "filter", body: { none: true } }] })
    const created = await gateway.call("POST", "/workflows", {
      name: gateway.name("workflow"),
      source_id: source.id,
      steps: [
        { id: "none", kind: "filter", config: { conditions: { query: { secret: "in-the-query" } } } },
        { id: "to_crm", kind: "destination", resource_id: destination.id }
      ],
      edges: [
        { source_type: "trigger", target_step_id: "none" },
        { source_type: "step", source_step_id: "none", target_step_id: "to_crm" }
      ]
    })
    expect(created.status, JSON.stringify(created.body)).toBe(200)
    const before = await scrape()
    const { traceId, spanId } = traceIds()
    const requestId = await send(source, { traceparent: `00-${traceId}-${spanId}-01` })
    const spans = await collector.trace(traceId, "workflow run", 1)
    const after = await scrape()
    const more = (name: string, labels?: Record<string, string>) =>
      (sampleValue(after, name, labels) ?? 0) - (sampleValue(before, name, labels) ?? 0)
    expect(more("tidegate_workflow_runs_total", { outcome: "failed" })).toBe(1)
    expect(more("tidegate_workflow_run_seconds_count")).toBe(1)
    expect(more("tidegate_workflow_steps_failed_total", { kind: "destination", code: "BAD_RESPONSE" })).toBe(1)
    const ids = { request_id: requestId, workflow_id: created.body.id, workflow_version: 1, source_id: source.id }
    expect(
      await line(
        "the failed run is logged",
        (about, message) => isOf("workflow_run", message) && about.request_id === requestId
      )
    ).toMatchObject({
      about: { ...ids, outcome: "failed", error_code: "BAD_RESPONSE", error_step_id: "to_crm", succeeded_steps: 1 }
    })
    expect(
      await line(
        "the failed step is logged",
        (about, message) => isOf("workflow_step", message) && about.request_id === requestId
      )
    ).toMatchObject({ about: { ...ids, outcome: "BAD_RESPONSE", step_id: "to_crm", response_status: 422, attempt: 1 } })
    const run = spans.find(({ name }) => name === "workflow run")!
    expect(run.parentSpanId).toBe(spans.find(({ kind }) => kind === 2)!.spanId)
    expect(run.status.code).toBe(2)
    const steps = spans.filter(({ name }) => name.startsWith("step "))
    expect(steps.map(({ name, parentSpanId }) => [name, parentSpanId])).toEqual([
      ["step filter", run.spanId],
      ["step destination", run.spanId]
    ])
    expect(attribute(steps[1]!, "http.response.status_code")).toBe(422)
    const [call] = await target.next()
    expect(call!.headers["traceparent"]).toBe(`00-${traceId}-${steps[1]!.spanId}-01`)
  })

  it("The log line of a cancelled run names its workflow", async ({ gateway, line }) => {
    const created = await gateway.call("POST", "/workflows", {
      name: gateway.name("workflow"),
      source_id: null,
      triggers: {},
      steps: [{ id: "waits", kind: "delay", config: { mode: "for", amount: 1, unit: "hours" } }]
    })
    expect(created.status, JSON.stringify(created.body)).toBe(200)
    const workflow_id = created.body.id
    const { body: run } = await gateway.call("POST", `/workflows/${workflow_id}/runs`, {})
    const cancelled = await gateway.call("POST", `/workflows/${workflow_id}/runs/${run.id}/cancel`)
    expect(cancelled.status).toBe(200)
    expect(
      await line(
        "the cancelled run is logged",
        (about, message) => isOf("workflow_run", message) && about.run_id === run.id
      )
    ).toMatchObject({
      about: { workflow_id, workflow_version: 1, source_id: null, outcome: "cancelled", error_code: "RUN_CANCELLED" }
    })
  })

  it("Metrics need a key", async ({ gateway, scrape }) => {
    const answers = await Promise.all(
      [undefined, "Bearer", "Bearer wrong-key-of-nobody", "Basic YTpi"].map((authorization) =>
        fetch(`${gateway.origin}/metrics`, { headers: authorization === undefined ? {} : { authorization } })
      )
    )
    for (const answer of answers) {
      expect(answer.status).toBe(401)
      expect(answer.headers.get("www-authenticate")).toBe("Bearer")
      expect(await answer.text()).not.toContain("tidegate_")
    }
    await scrape("a-key-of-the-metrics")
  })

  it("Metrics cannot be read with a team's key that may only hold a tunnel", async ({ gateway }) => {
    const { token } = await gateway.api("POST", "/auth/demo/login")
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" }
    const keys = `${gateway.origin}/project-api-keys`
    const { data } = (await (await fetch(keys, { headers })).json()) as {
      data: ReadonlyArray<{ id: string; legacy_project_secret: boolean; scopes: object; execute_grants: object }>
    }
    const own = data.find(({ legacy_project_secret }) => legacy_project_secret)!
    const change = ({ execute_grants, scopes }: Pick<typeof own, "scopes" | "execute_grants">) =>
      fetch(`${keys}/${own.id}`, { method: "PATCH", headers, body: JSON.stringify({ scopes, execute_grants }) })
    const read = () => fetch(`${gateway.origin}/metrics`, { headers: { authorization: `Bearer ${gateway.key}` } })
    expect((await read()).status).toBe(200)
    expect((await change({ scopes: ["tunnel:connect"], execute_grants: [] })).status).toBe(200)
    expect((await read()).status).toBe(401)
    expect((await change(own)).status).toBe(200)
    expect((await read()).status).toBe(200)
  })

  it("Metrics are rate-limited for wrong keys like the API, and still served to valid ones", async ({ gateway }) => {
    // Not the address of the other tests.
    const attempt = (path: string, key = "a-guess-at-a-key") =>
      request(gateway.port, { method: "GET", path, headers: [["authorization", `Bearer ${key}`]], from: "127.0.0.9" })
    // One more comes with every second, however slow this machine is: sent until none is left.
    let refused = await attempt("/metrics")
    let guesses = 1
    for (; guesses < 1_000 && refused.status === 401; guesses++) refused = await attempt("/metrics")
    expect(guesses).toBeGreaterThan(60)
    expect(refused.status).toBe(429)
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0)
    const others = await Promise.all(Array.from({ length: 5 }, () => attempt("/v1/sources")))
    expect(others.map(({ status }) => status)).toContain(429)
    expect((await attempt("/metrics", gateway.key)).status).toBe(200)
  })
})

describe("Trace", () => {
  it("A trace leads from the sender to the target, also when another process delivers", async ({
    collector,
    gateway,
    send,
    target
  }) => {
    const { traceId, spanId } = traceIds()
    const { source } = await gateway.route(target, {
      rules: [{ type: "retry", strategy: "linear", interval: 1_000, count: 20 }]
    })
    target.reply = (response) => void response.writeHead(503).end()
    const headers = { traceparent: `00-${traceId}-${spanId}-01`, tracestate: "vendor=a:1" }
    const requestId = await send(source, headers)
    await target.next()
    await collector.trace(traceId, "attempt", 1)
    await gateway.restart("SIGKILL")
    target.reset()
    const [delivery] = await target.next()
    const [, lastSpan] = /^00-[0-9a-f]{32}-([0-9a-f]{16})-01$/.exec(String(delivery!.headers["traceparent"])) ?? []
    // Its span comes a while after it, and there may have been several attempts before.
    const spans = await gateway.eventually("the span of the delivery", () => {
      const known = collector.spans.filter((span) => span.traceId === traceId)
      return Promise.resolve(known.some(({ spanId }) => spanId === lastSpan) ? known : null)
    })

    const server = spans.find(({ kind }) => kind === 2)
    expect(server).toMatchObject({ parentSpanId: spanId })
    expect(attribute(server!, "tidegate.request_id")).toBe(requestId)
    const route = spans.find(({ name }) => name === "route")
    expect(route?.parentSpanId).toBe(server!.spanId)
    const attempts = spans.filter(({ name }) => name === "attempt")
    expect(new Set(attempts.map((span) => span.parentSpanId))).toEqual(new Set([route!.spanId]))
    expect(new Set(attempts.map((span) => span.spanId)).size).toBe(attempts.length)
    expect(attempts[0]!.status.code).toBe(2)
    expect(attribute(attempts[0]!, "http.response.status_code")).toBe(503)
    expect(attempts.map((span) => span.spanId)).toContain(lastSpan)
    expect(delivery!.headers).toMatchObject({
      traceparent: `00-${traceId}-${lastSpan}-01`,
      tracestate: "vendor=a:1"
    })
    expect([collector.services, collector.keys]).toEqual([new Set(["gateway-under-test"]), new Set(["a key"])])
  })

  it("A trace continues behind a transformation's route", async ({ collector, gateway, send, target }) => {
    const { traceId, spanId } = traceIds()
    const { source } = await gateway.route(target, {
      rules: [{ type: "deduplicate", window: 1_000, include_fields: ["body"] }]
    })
    await send(source, { traceparent: `00-${traceId}-${spanId}-01` })
    await target.next()
    const spans = await collector.trace(traceId, "attempt", 1)
    const route = spans.find(({ name }) => name === "route")
    const attempt = spans.find(({ name }) => name === "attempt")
    expect(attempt?.parentSpanId).toBe(route?.spanId)
    expect(route?.parentSpanId).toBe(spans.find(({ kind }) => kind === 2)?.spanId)
  })

  it.for<[string, Record<string, string>]>([
    ["no traceparent", {}],
    ["an invalid traceparent", { traceparent: "00-xyz", tracestate: "vendor=a:1" }]
  ])("A trace starts here when the sender has %s", async ([, headers], { collector, gateway, send, target }) => {
    const { source } = await gateway.route(target)
    const requestId = await send(source, headers)
    const [delivery] = await target.next()
    const [, traceId] = /^00-([0-9a-f]{32})-[0-9a-f]{16}-01$/.exec(String(delivery!.headers["traceparent"])) ?? []
    expect(delivery!.headers).not.toHaveProperty("tracestate")
    const spans = await collector.trace(traceId!, "attempt", 1)
    const server = spans.find(({ kind }) => kind === 2)
    expect(server?.parentSpanId).toBeUndefined()
    expect(attribute(server!, "tidegate.request_id")).toBe(requestId)
  })

  it("An unsampled trace of the sender is passed on unchanged", async ({ gateway, send, target }) => {
    const { traceId, spanId } = traceIds()
    const { source } = await gateway.route(target)
    const headers = { traceparent: `00-${traceId}-${spanId}-00`, tracestate: "vendor=a:1" }
    await send(source, headers)
    const [delivery] = await target.next()
    expect(delivery!.headers).toMatchObject(headers)
  })

  it("A trace contains no header, body or query", async ({ collector, gateway, send, target }) => {
    const { traceId, spanId } = traceIds()
    await send((await gateway.route(target)).source, { traceparent: `00-${traceId}-${spanId}-01` })
    await collector.trace(traceId, "attempt", 1)
    expect(JSON.stringify(collector.spans)).not.toMatch(/in-the-(query|body)/)
  })
})

it("Metrics are exported to the collector", async ({ collector, gateway }) => {
  await gateway.eventually(
    "metrics are there",
    async () => collector.metricNames.has("tidegate_requests_total") || null
  )
  expect(collector.metricNames).toContain("tidegate_destination_backlog")
})

describe("Log", () => {
  it("The log has a line for a request, an attempt and a command, with ids and without content", async ({
    collector,
    gateway,
    line,
    send,
    target
  }) => {
    const { connection, destination, source } = await gateway.route(target)
    const requestId = await send(source, { "x-header": "in-the-header" })
    await target.next()
    const found = await line("the request", (about, message) => message === "request" && about.request_id === requestId)
    expect(found.about).toMatchObject({ outcome: "accepted", source_id: source.id, events: 1, team_id: "tm_demo" })
    const attempt = await line(
      "the attempt",
      (about, message) => message === "attempt" && about.request_id === requestId
    )
    expect(attempt.about).toMatchObject({
      outcome: "none",
      event_status: "SUCCESSFUL",
      event_id: found.about.event_id,
      connection_id: connection.id,
      destination_id: destination.id
    })
    await gateway.api("PUT", `/connections/${connection.id}/pause`)
    await gateway.call("PUT", `/connections/${connection.id}/unpause?secret=in-the-query`)
    const call = await line("the command", (about, message) => message === "call" && about.id === connection.id)
    expect(call.about).toMatchObject({
      outcome: 200,
      method: "PUT",
      route: "/connections/:id/pause",
      team_id: "tm_demo"
    })
    expect(await gateway.logged()).not.toMatch(/in-the-(query|body|header)/)
    // The collector gets the same lines.
    const exported = await gateway.eventually("the collector has the line of the request", async () =>
      collector.lines.find(
        ({ attributes, body }) =>
          body?.stringValue === "request" && attributes.some(({ value }) => value.stringValue === requestId)
      )
    )
    expect(exported.severityText).toBe("INFO")
    expect(exported.attributes).toContainEqual({ key: "source_id", value: { stringValue: source.id } })
    expect(JSON.stringify(collector.lines)).not.toMatch(/in-the-(query|body|header)/)
  })

  it("The log has a line for a failed transformation", async ({ gateway, line, send, target }) => {
    const code = "addHandler('transform', () => { throw new Error('no') })"
    const { source } = await gateway.route(target, {
      rules: [{ type: "transform", transformation: { name: gateway.name("transformation"), code } }]
    })
    const requestId = await send(source)
    const run = await line("the run", (about, message) => message === "run" && about.request_id === requestId)
    expect(run.about).toMatchObject({ outcome: "RUNTIME_ERROR", source_id: source.id })
  })

  it("The log has the cause of a 500 under the error id of the answer", async ({ gateway, line }) => {
    await gateway.sql("alter table transformations rename to transformations_away")
    try {
      const { body, status } = await gateway.call("GET", "/transformations")
      expect([status, body.code]).toEqual([500, "INTERNAL_ERROR"])
      expect(body.data.error_id).toMatch(/^err_[0-9a-f]{24}$/)
      const cause = await line(
        "the cause",
        (about, message) => message !== "call" && about.error_id === body.data.error_id
      )
      expect(cause.text).toContain("a control call failed in the database")
      const call = await line(
        "the call",
        (about, message) => message === "call" && about.error_id === body.data.error_id
      )
      expect(call.about).toMatchObject({ outcome: 500, method: "GET", route: "/transformations" })
    } finally {
      await gateway.sql("alter table transformations_away rename to transformations")
    }
  })

  it("The log has the cause of a 500 at an ingress URL under the error id of the answer", async ({
    gateway,
    line,
    target
  }) => {
    const { source } = await gateway.route(target)
    await gateway.sql("alter table requests add constraint refused check (path <> '/refused')")
    try {
      const answer = await request(gateway.port, { path: `/e/${source.id}/refused`, body: "{}" })
      expect(answer.status).toBe(500)
      const { error_id } = JSON.parse(answer.body).data
      const cause = await line("the cause", (about) => about.error_id === error_id)
      expect(cause.text).toContain("a request could not be stored")
    } finally {
      await gateway.sql("alter table requests drop constraint refused")
    }
  })

  it("The log has the error id of a 503, for senders and for operators", async ({ gateway, line, target }) => {
    const { source } = await gateway.route(target)
    await gateway.link.cut()
    const answer = await request(gateway.port, { path: `/e/${source.id}`, body: "{}" })
    expect(answer.status).toBe(503)
    const { error_id } = JSON.parse(answer.body).data
    expect((await line("the shed", (about) => about.error_id === error_id)).about).toMatchObject({ outcome: "shed" })
    const response = await fetch(`${gateway.origin}/v1/sources`, {
      headers: { authorization: `Bearer ${gateway.key}` }
    })
    expect(response.status).toBe(503)
    const id = response.headers.get("x-error-id")
    expect(id).toMatch(/^err_/)
    await line("the call", (about, message) => message === "call" && about.error_id === id)
  })
})

describe("Metrics port", () => {
  it("A separate metrics port serves only metrics, and the public port then has none", async ({ target }) => {
    const port = await freePort()
    const own = await Gateway.start({ TIDEGATE_METRICS_PORT: String(port) })
    try {
      const metrics = await fetch(`http://127.0.0.1:${port}/metrics`)
      expect(metrics.status).toBe(200)
      expect(parseExposition(await metrics.text()).size).toBeGreaterThan(40)
      for (const path of ["/", "/v1/sources", "/healthz"]) {
        expect((await fetch(`http://127.0.0.1:${port}${path}`)).status).toBe(404)
      }
      const there = await fetch(`${own.origin}/metrics`, { headers: { authorization: `Bearer ${own.key}` } })
      expect(there.status).toBe(404)

      // Without a collector nothing of a trace is touched, whatever it is.
      const { source } = await own.route(target)
      await fetch(`${own.origin}/e/${source.id}`, {
        method: "POST",
        headers: { traceparent: "00-odd", tracestate: "x" }
      })
      const [delivery] = await target.next()
      expect(delivery!.headers).toMatchObject({ traceparent: "00-odd", tracestate: "x" })
    } finally {
      await own.close()
    }
  })
})
