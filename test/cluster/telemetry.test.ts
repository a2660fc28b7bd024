import { randomBytes } from "node:crypto"
import { expect } from "vitest"
import { Collector } from "../support/Collector.ts"
import { type Exposed, parseExposition, sampleValue } from "../support/Exposition.ts"
import { GatewayProcess, type Role, usualSettings } from "../support/GatewayProcess.ts"
import { it } from "../support/it.ts"

const key = "gwk_cluster_telemetry_key"

it("Edge and runner each export their part of a trace and their own metrics", async ({
  onTestFinished,
  place,
  target
}) => {
  const collector = await Collector.start()
  const living: Array<GatewayProcess> = []
  onTestFinished(async () => {
    await Promise.all(living.map((process) => process.end("SIGKILL")))
    await collector.close()
  })
  const begin = async (role: Role): Promise<GatewayProcess> => {
    const process = await GatewayProcess.make(role, role, place.folder, {
      ...usualSettings(place.folder, key),
      DATABASE_URL: place.databaseUrl,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_SERVICE_NAME: role
    })
    living.push(process)
    await process.start()
    return process
  }
  const runner = await begin("runner")
  const edge = await begin("edge")
  const authorization = `Bearer ${key}`
  const create = async (path: string, body: unknown): Promise<string> => {
    const headers = { authorization, "content-type": "application/json" }
    const response = await fetch(`${edge.origin}/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) })
    expect(response.status, path).toBe(200)
    return ((await response.json()) as { id: string }).id
  }
  const metricsOf = async ({ origin }: GatewayProcess): Promise<ReadonlyMap<string, Exposed>> => {
    expect((await fetch(`${origin}/metrics`)).status).toBe(401)
    return parseExposition(await (await fetch(`${origin}/metrics`, { headers: { authorization } })).text())
  }

  const source_id = await create("/sources", { name: "s" })
  const destination_id = await create("/destinations", { name: "d", type: "HTTP", config: { url: target.origin } })
  await create("/connections", { name: "c", source_id, destination_id, rules: [] })
  const traceId = randomBytes(16).toString("hex")
  const traceparent = `00-${traceId}-${randomBytes(8).toString("hex")}-01`
  await fetch(`${edge.origin}/e/${source_id}`, { method: "POST", headers: { traceparent }, body: "{}" })

  await collector.trace(traceId, "attempt", 1)
  const spans = await collector.trace(traceId, "route", 1)
  const server = spans.find(({ kind }) => kind === 2)
  const route = spans.find(({ name }) => name === "route")
  expect(spans.find(({ name }) => name === "attempt")?.parentSpanId).toBe(route?.spanId)
  expect(route?.parentSpanId).toBe(server?.spanId)
  expect(collector.services).toEqual(new Set(["edge", "runner"]))

  const [ofEdge, ofRunner] = [await metricsOf(edge), await metricsOf(runner)]
  const counts = (of: ReadonlyMap<string, Exposed>) => [
    sampleValue(of, "tidegate_requests_total", { outcome: "accepted" }),
    sampleValue(of, "tidegate_attempts_total", { error: "none" }) ?? 0
  ]
  expect([counts(ofEdge), counts(ofRunner)]).toEqual([
    [1, 0],
    [0, 1]
  ])
  expect(sampleValue(ofEdge, "tidegate_cluster_messages_total", { direction: "sent" })).toBeGreaterThan(0)
  expect(sampleValue(ofRunner, "tidegate_shards_held")).toBeGreaterThan(0)
  expect(sampleValue(ofEdge, "tidegate_shards_held")).toBe(0)
})
