import { describe, expect } from "vitest"
import { request } from "../support/RawHttp.ts"
import { ownIt as gatewayIt } from "../support/it.ts"
import { Session } from "../support/Session.ts"

/** What counts, series and summaries tell of what has just happened, by the API alone. */

const it = gatewayIt
  /** A source whose requests are delivered on one connection, and filtered by another; `sent` of them. */
  .extend("lived", ({ gateway }) => async (sent: number) => {
    const source = await gateway.source({ allowed_http_methods: ["POST"] })
    const destination = await gateway.destination({ path: "/hooks" }, "MOCK_API")
    const delivers = await gateway.connection(source, destination)
    const filters = await gateway.connection(source, destination, [{ type: "filter", body: { a: 2 } }])
    for (let n = 0; n < sent; n++) {
      const headers: Array<[string, string]> = [["content-type", "application/json"]]
      await request(gateway.port, { path: `/e/${source.id}`, headers, body: '{"a":1}' })
    }
    const refused = await fetch(`${gateway.origin}/e/${source.id}`, { method: "PUT", body: "{}" })
    expect(refused.status).toBe(405)
    await gateway.eventually("all are delivered", async () => {
      const { count } = await gateway.api("GET", `/events?source_id=${source.id}&status=SUCCESSFUL`)
      return count === sent ? true : null
    })
    return { source, destination, delivers, filters }
  })

const sum = (series: ReadonlyArray<object>, measure: string): number =>
  series.reduce((total, bucket) => total + ((bucket as Record<string, number>)[measure] ?? 0), 0)

describe("Metrics", () => {
  it("Metrics count requests, events and attempts by every dimension in every granularity", async ({
    gateway,
    lived
  }) => {
    const { delivers, destination, filters, source } = await lived(5)
    for (const granularity of ["1s", "5s", "10s", "30s", "1m", "5m", "15m", "1h"] as const) {
      const range = `from=now-10m&to=now&granularity=${granularity}`
      const requests = await gateway.api("GET", `/metrics/requests?${range}&source_id=${source.id}`)
      expect(requests).toMatchObject({ granularity, partial: false, unavailable_shard_count: 0 })
      expect(["count", "accepted_count", "rejected_count"].map((name) => sum(requests.series, name))).toEqual([6, 5, 1])
      for (const [filter, ignored] of [
        [`source_id=${source.id}`, 5],
        [`destination_id=${destination.id}`, 0],
        [`connection_id=${delivers.id}`, 0],
        [`webhook_id=${filters.id},${delivers.id}`, 5],
        [`source_id=${source.id}&destination_id=${destination.id}&status=SUCCESSFUL`, 0]
      ] as const) {
        const { date_range, series } = await gateway.api("GET", `/metrics/events?${range}&${filter}`)
        const counted = ["count", "delivered_count", "failed_count", "queued_count", "ignored_count"].map((name) =>
          sum(series, name)
        )
        expect(counted, `${granularity} ${filter}`).toEqual([5, 5, 0, 0, ignored])
        expect(series[0]!.timestamp).toBe(date_range.start)
      }
    }
    const only = await gateway.api("GET", `/metrics/events?start=now-1m&end=now&measure=count&measures=hold_count`)
    for (const bucket of only.series) expect(Object.keys(bucket)).toEqual(["timestamp", "count", "hold_count"])
    expect((await gateway.api("GET", `/events/count?source_id=${source.id}`)).total).toBe(5)
    expect((await gateway.api("GET", `/requests/count?source_id=${source.id}&status=rejected`)).total).toBe(1)
  })

  it("Metrics summarize 24 hours and accept every name of the id parameter", async ({ gateway, lived }) => {
    const { delivers, destination, source } = await lived(3)
    for (const alias of ["id", "ids", "source_id", "source_ids"]) {
      const path = `/metrics/sources?${alias}=${source.id},src_none` as "/metrics/sources"
      const { count, models } = await gateway.api("GET", path)
      expect(count).toBe(2)
      expect(models).toMatchObject([
        {
          id: source.id,
          source_id: source.id,
          connections_count: 2,
          requests_24h_count: 4,
          requests_24h_accepted_count: 3,
          requests_24h_rejected_bins: [0, 0, 0, 0, 0, 1],
          events_24h_successful_count: 3
        },
        { id: "src_none", requests_24h_total_count: 0, events_24h_bins: [0, 0, 0, 0, 0, 0] }
      ])
    }
    const byDestination = await gateway.api("GET", `/metrics/destinations?destination_ids=${destination.id}`)
    expect(byDestination.models).toMatchObject([
      {
        destination_id: destination.id,
        attempts_24h_count: 3,
        attempts_24h_bins: [0, 0, 0, 0, 0, 3],
        events_24h_count: 3
      }
    ])
    for (const alias of ["id", "connection_ids", "webhook_id", "webhook_ids"]) {
      const path = `/metrics/connections?${alias}=${delivers.id}` as "/metrics/connections"
      const { models } = await gateway.api("GET", path)
      expect(models).toMatchObject([
        { connection_id: delivers.id, webhook_id: delivers.id, source_id: source.id, events_24h_pending_count: 0 }
      ])
    }
    for (const alias of ["id", "ids"]) {
      const path = `/metrics/rates?${alias}=${source.id},${delivers.id}&${alias}=${destination.id}` as "/metrics/rates"
      const { date_range, models } = await gateway.api("GET", path)
      expect(Date.parse(date_range.end)).toBeGreaterThan(Date.parse(date_range.start))
      expect(models).toMatchObject([
        { id: source.id, requests_count: 4, events_count: 3 },
        { id: delivers.id, requests_count: 0, events_count: 3, successful_count: 3 },
        { id: destination.id, events_count: 3, attempts_count: 3 }
      ])
    }
    expect((await gateway.call("GET", "/metrics/rates")).status).toBe(400)
    const [none] = (await gateway.api("GET", "/metrics/transformations?transformation_id=trs_none")).models
    expect(none).toMatchObject({ executions_24h_count: 0, connections_count: 0 })
  })

  it("Metrics show held and cancelled events by their connection's current state", async ({ gateway, lived }) => {
    const { delivers, source } = await lived(1)
    await gateway.api("PUT", `/connections/${delivers.id}/pause`)
    await request(gateway.port, { path: `/e/${source.id}`, body: "{}" })
    const range = "from=now-5m&to=now&granularity=1m"
    const { series } = await gateway.api("GET", `/metrics/events?${range}&connection_id=${delivers.id}`)
    expect(["count", "hold_count", "queued_count"].map((name) => sum(series, name))).toEqual([2, 1, 0])
    await gateway.api("PUT", `/connections/${delivers.id}/disable`)
    const after = await gateway.api("GET", `/metrics/events?${range}&connection_id=${delivers.id}&status=CANCELLED`)
    expect(["count", "hold_count"].map((name) => sum(after.series, name))).toEqual([1, 0])
  })

  it.for([
    ["/metrics/requests", "VALIDATION_ERROR", "from"],
    ["/metrics/events?from=now-1h", "VALIDATION_ERROR", "to"],
    ["/metrics/events?from=now-1h&to=now&granularity=2m", "VALIDATION_ERROR", "granularity"],
    ["/metrics/events?from=now-1h&to=now&measures=accepted_count", "VALIDATION_ERROR", "measures"],
    ["/metrics/events?from=now-1h&to=soon", "VALIDATION_ERROR", "to"],
    ["/metrics/events?from=now&to=now-1h", "INVALID_TIME_RANGE", "later"],
    ["/metrics/requests?from=now-1h&to=now&granularity=1s", "INVALID_TIME_RANGE", "take 5s or coarser"],
    ["/metrics/requests?from=now-1000d&to=now", "INVALID_TIME_RANGE", "shorter"],
    ["/metrics/sources", "VALIDATION_ERROR", "id"]
  ] as const)("The metrics query %s is refused with 400 %s", async ([path, code, says], { gateway }) => {
    const answer = await gateway.call("GET", path)
    expect([answer.status, answer.body.code]).toEqual([400, code])
    expect(answer.body.message).toContain(says)
  })

  it("Metrics show deliveries under way by destination, with or without a rate limit, within seconds", async ({
    gateway,
    target
  }) => {
    const answered = Promise.withResolvers<void>()
    target.reply = async (response) => {
      await answered.promise
      response.end("ok")
    }
    const { source } = await gateway.route(target)
    const other = await gateway.route(target, { destination: { rate_limit: 5 } })
    for (const { id } of [source, source, other.source]) {
      expect((await fetch(`${gateway.origin}/e/${id}`, { method: "POST", body: "{}" })).status).toBe(200)
    }
    const sums = async (id: string) => {
      const { series } = await gateway.api("GET", `/metrics/events?from=now-2h&to=now&granularity=1h&source_id=${id}`)
      const sum = (measure: "processing_count" | "queued_count" | "delivered_count") =>
        series.reduce((total, bucket) => total + (bucket[measure] ?? 0), 0)
      return { processing: sum("processing_count"), queued: sum("queued_count"), delivered: sum("delivered_count") }
    }
    const counted = (id: string, processing: number, delivered: number) =>
      gateway.eventually(`${processing} are being delivered, ${delivered} are`, async () => {
        const found = await sums(id)
        return found.processing === processing && found.delivered === delivered && found.queued === 0 ? true : null
      })
    try {
      await counted(other.source.id, 1, 0)
      await counted(source.id, 2, 0)
    } finally {
      answered.resolve()
    }
    await counted(source.id, 0, 2)
    await counted(other.source.id, 0, 1)
  })

  it("Slow metrics queries delay no other caller and end when nobody waits for them", async ({ gateway, lived }) => {
    const { source } = await lived(1)
    await gateway.sql("insert into teams (id, name) values ('tm_beside', 'beside') on conflict do nothing")
    const beside = await gateway.session("owner", "tm_beside")
    const underWay = async () => {
      const [row] = await gateway.sql(
        `select count(*)::int4 as n from pg_stat_activity
         where datname = current_database() and application_name = 'tidegate-reports' and wait_event_type = 'Lock'`
      )
      return row!["n"]
    }
    // Reports read the rollups, and lists do not.
    const holder = await Session.on(gateway.databaseUrl)
    await holder.query("begin")
    await holder.query("lock table rollups in access exclusive mode")
    const gone = new AbortController()
    const answers: Array<Response> = []
    const ask = (credential: string) =>
      void fetch(`${gateway.origin}/v1/metrics/events?from=now-1h&to=now&granularity=1m`, {
        headers: { authorization: `Bearer ${credential}` },
        signal: gone.signal
      }).then(
        (answer) => answers.push(answer),
        () => undefined
      )
    try {
      for (let n = 0; n < 30; n++) ask(gateway.key)
      await gateway.eventually("as many as may are under way, and what is too much is refused", async () =>
        (await underWay()) === 2 && answers.length === 8 ? true : null
      )
      for (const answer of answers) {
        expect(answer.status).toBe(429)
        expect(answer.headers.get("retry-after")).toBe("1")
        expect(await answer.json()).toMatchObject({ code: "RATE_LIMITED", data: { scope: "reports" } })
      }
      // Pages with data, and lists without an index, are reports too.
      for (const path of ["/events?include=data", "/requests?include=data", "/events?response_status=500"]) {
        const { body, status } = await gateway.call("GET", path)
        expect([path, status, body]).toMatchObject([path, 429, { data: { scope: "reports" } }])
      }
      ask(beside)
      for (const credential of [beside, gateway.key]) {
        expect((await gateway.call("GET", "/events", undefined, credential)).status).toBe(200)
        expect((await gateway.call("GET", "/requests", undefined, credential)).status).toBe(200)
      }
      const accepted = await fetch(`${gateway.origin}/e/${source.id}`, { method: "POST", body: "{}" })
      expect(accepted.status).toBe(200)
      // All that was while the reports were held: those of one team left the other a connection.
      await gateway.eventually("the other team's report is under way", async () =>
        (await underWay()) === 3 ? true : null
      )
      gone.abort()
      await gateway.eventually("those whose callers have gone are cancelled", async () =>
        (await underWay()) === 0 ? true : null
      )
    } finally {
      gone.abort()
      await holder.close()
    }
    expect((await gateway.api("GET", `/events/count?source_id=${source.id}`)).total).toBeGreaterThan(0)
  })
})
