import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import type { LogsData } from "effect/observability/OtlpLogger"
import type { MetricsData } from "effect/observability/OtlpMetrics"
import type { TraceData } from "effect/observability/OtlpTracer"
import { waitUntil } from "./Waiting.ts"

export type Span = TraceData["resourceSpans"][number]["scopeSpans"][number]["spans"][number]

export type LogRecord = NonNullable<LogsData["resourceLogs"][number]["scopeLogs"][number]["logRecords"]>[number]

/** An OTLP collector (HTTP, JSON) that keeps what it receives. */
export class Collector {
  readonly origin: string
  readonly spans: Array<Span> = []
  readonly lines: Array<LogRecord> = []
  readonly metricNames = new Set<string>()
  readonly services = new Set<string>()
  readonly keys = new Set<string | undefined>()
  /** All bodies as received. */
  readonly texts: Array<string> = []
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
    this.origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  static async start(): Promise<Collector> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()))
    const collector = new Collector(server)
    server.on("request", (message, response) => {
      const chunks: Array<Buffer> = []
      message.on("data", (chunk: Buffer) => chunks.push(chunk))
      message.on("end", () => {
        collector.keys.add(message.headers["x-collector-key"] as string | undefined)
        collector.#take(message.url ?? "", Buffer.concat(chunks).toString())
        response.writeHead(200, { "content-type": "application/json" }).end("{}")
      })
    })
    return collector
  }

  #take(path: string, text: string): void {
    this.texts.push(text)
    if (path === "/v1/traces") {
      for (const { resource, scopeSpans } of (JSON.parse(text) as TraceData).resourceSpans) {
        for (const { key, value } of resource.attributes)
          if (key === "service.name") this.services.add(String(value.stringValue))
        for (const { spans } of scopeSpans) this.spans.push(...spans)
      }
    } else if (path === "/v1/logs") {
      for (const { scopeLogs } of (JSON.parse(text) as LogsData).resourceLogs)
        for (const { logRecords = [] } of scopeLogs) this.lines.push(...logRecords)
    } else if (path === "/v1/metrics") {
      for (const { scopeMetrics } of (JSON.parse(text) as MetricsData).resourceMetrics)
        for (const { metrics } of scopeMetrics) for (const { name } of metrics) this.metricNames.add(name)
    }
  }

  /** The spans of a trace, once it has `count` spans with this name and the span of the request. Spans arrive in any order. */
  async trace(traceId: string, name: string, count: number): Promise<ReadonlyArray<Span>> {
    const found = (): ReadonlyArray<Span> => this.spans.filter((span) => span.traceId === traceId)
    await waitUntil(
      `${count} spans ${name} of ${traceId}`,
      () => found().filter((span) => span.name === name).length >= count && found().some(({ kind }) => kind === 2)
    )
    return found()
  }

  close(): Promise<void> {
    this.#server.closeAllConnections()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }
}
