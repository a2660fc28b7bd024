import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Layer, Logger, Redacted } from "effect"
import { describe } from "vitest"
import { metrics } from "../src/Metrics.ts"
import * as Otlp from "../src/Otlp.ts"
import { Tracing } from "../src/Tracing.ts"

interface Asked {
  readonly url: string
  readonly type: string
  readonly key: string
  readonly body: Buffer
}

/** A collector that answers with this status, or, with none, never. */
const collector = (status: number | null, signal = "traces") =>
  Effect.gen(function* () {
    const asked = yield* Deferred.make<Asked>()
    const server = yield* Effect.acquireRelease(
      Effect.callback<Server>((resume) => {
        const server = createServer((message, response) => {
          const chunks: Array<Buffer> = []
          message.on("data", (chunk: Buffer) => chunks.push(chunk))
          message.on("end", () => {
            const { headers, url = "" } = message
            const about = {
              url,
              type: headers["content-type"] ?? "",
              key: String(headers["x-key"]),
              body: Buffer.concat(chunks)
            }
            if (url === `/otlp/v1/${signal}`) Deferred.doneUnsafe(asked, Effect.succeed(about))
            if (status !== null) response.writeHead(status).end()
          })
        })
        server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
      }),
      (server) =>
        Effect.sync(() => {
          server.closeAllConnections()
          server.close()
        })
    )
    return { asked, endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/otlp` }
  })

const options = (endpoint: string): Otlp.OtlpOptions => ({
  endpoint,
  headers: Redacted.make({ "x-key": "a key" }),
  protocol: "http/protobuf",
  serviceName: "under test",
  sampler: "always_on",
  ratio: 1
})

const accepted = (tracing: Tracing, at: number, events = 0) =>
  tracing.accepted({
    requestId: `req_${at}`,
    teamId: "tm",
    sourceId: "src",
    method: "POST",
    headers: {},
    startedAt: 1,
    endedAt: 2,
    rejection: null,
    events: Array.from({ length: events }, (_, event) => ({
      id: `evt_${at}_${event}`,
      connectionId: "web_1"
    }))
  })

const counted = () => ({
  exported: metrics.spansExported.value,
  lost: metrics.spansDropped.at("collector").value
})

/** Without the loggers of the test's own output. */
const silently = Layer.provide(Logger.layer([]))

/** The members of a protobuf message that are messages or text, by the number of their field. */
const fieldsOf = (message: Buffer, field: number): ReadonlyArray<Buffer> => {
  const found: Array<Buffer> = []
  let at = 0
  const varint = (): number => {
    for (let value = 0, factor = 1; ; factor *= 128) {
      const byte = message[at++]!
      value += (byte % 128) * factor
      if (byte < 128) return value
    }
  }
  while (at < message.length) {
    const tag = varint()
    if (tag % 8 === 2) {
      const length = varint()
      if (tag >> 3 === field) found.push(message.subarray(at, at + length))
      at += length
    } else if (tag % 8 === 0) varint()
    else at += tag % 8 === 1 ? 8 : 4
  }
  return found
}

/** resource_spans, scope_spans and spans are fields 1, 2 and 2 of what they stand in. */
const spansOf = (body: Buffer): ReadonlyArray<Buffer> =>
  [1, 2, 2].reduce<ReadonlyArray<Buffer>>((messages, field) => messages.flatMap((m) => fieldsOf(m, field)), [body])

describe("OTLP collector", () => {
  it.live("Spans are sent to the collector as protobuf with the operator's key", () =>
    Effect.gen(function* () {
      const { asked, endpoint } = yield* collector(200)
      const before = counted()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const context = yield* Layer.build(Otlp.layer(options(endpoint)))
          accepted(yield* Effect.provideContext(Tracing, context), 1)
          const about = yield* Deferred.await(asked)
          expect(about).toMatchObject({ url: "/otlp/v1/traces", type: "application/x-protobuf", key: "a key" })
          expect(spansOf(about.body).length).toBe(1)
        })
      )
      expect(counted().exported - before.exported).toBe(1)
    }).pipe(Effect.scoped)
  )

  it.live("All waiting spans are sent to the collector in one request, although they are encoded in parts", () =>
    Effect.gen(function* () {
      const { asked, endpoint } = yield* collector(200)
      const body = yield* Effect.scoped(
        Effect.gen(function* () {
          const context = yield* Layer.build(Otlp.layer(options(endpoint)))
          const tracing = yield* Effect.provideContext(Tracing, context)
          for (let i = 0; i < 20; i++) accepted(tracing, i, 2)
          return (yield* Deferred.await(asked)).body
        })
      )
      const spans = spansOf(body)
      expect(spans.length).toBe(60)
      for (let i = 0; i < 20; i++) {
        expect(spans[3 * i]!.includes(`req_${i}`)).toBe(true)
        expect(spans[3 * i + 2]!.includes(`evt_${i}_1`)).toBe(true)
      }
    }).pipe(Effect.scoped)
  )

  it.live("Spans that the collector refuses are lost and counted as lost", () =>
    Effect.gen(function* () {
      const { asked, endpoint } = yield* collector(400)
      const before = counted()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const context = yield* Layer.build(Otlp.layer(options(endpoint)))
          const tracing = yield* Effect.provideContext(Tracing, context)
          for (let i = 0; i < 3; i++) accepted(tracing, i)
          yield* Deferred.await(asked)
        })
      )
      expect(counted()).toEqual({ exported: before.exported, lost: before.lost + 3 })
    }).pipe(Effect.scoped)
  )

  it.live("A collector that never answers delays neither requests nor the end of the process for long", () =>
    Effect.gen(function* () {
      const { asked, endpoint } = yield* collector(null)
      let since = 0
      const before = counted()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const context = yield* Layer.build(Otlp.layer(options(endpoint)))
          const tracing = yield* Effect.provideContext(Tracing, context)
          accepted(tracing, 1)
          yield* Deferred.await(asked)
          since = performance.now()
          for (let i = 0; i < 10; i++) accepted(tracing, i, 3)
        })
      )
      // Its patience with one request alone is ten seconds.
      expect(performance.now() - since).toBeLessThan(9_000)
      expect(counted()).toEqual({ exported: before.exported, lost: before.lost + 41 })
    }).pipe(Effect.scoped)
  )

  it.live(
    "Lines of the log are sent to the collector without what their text hides, except those that the log leaves out",
    () =>
      Effect.gen(function* () {
        const { asked, endpoint } = yield* collector(200, "logs")
        const before = metrics.linesExported.value
        yield* Effect.scoped(
          Effect.gen(function* () {
            const context = yield* Layer.build(
              Otlp.layer(options(endpoint), (message) => String(message).includes("left out"))
            )
            yield* Effect.all([
              Effect.logInfo("a line that is left out"),
              Effect.logWarning("a line").pipe(
                Effect.annotateLogs({ request_id: "req_1", key: Redacted.make("a-secret") })
              )
            ]).pipe(Effect.provideContext(context))
            const about = yield* Deferred.await(asked)
            expect(about).toMatchObject({ url: "/otlp/v1/logs", type: "application/x-protobuf", key: "a key" })
            // resource_logs, scope_logs and log_records have the numbers of their counterparts in a trace.
            const [line, ...others] = spansOf(about.body)
            expect(others).toEqual([])
            for (const text of ["a line", "WARN", "request_id", "req_1"]) expect(line!.includes(text)).toBe(true)
            expect(about.body.includes("a-secret")).toBe(false)
          })
        )
        expect(metrics.linesExported.value - before).toBe(1)
      }).pipe(Effect.scoped)
  )

  it.live("Lines of the log that the collector refuses are lost and counted as lost", () =>
    Effect.gen(function* () {
      const { asked, endpoint } = yield* collector(400, "logs")
      const lost = () => metrics.linesDropped.at("collector").value
      const before = lost()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const context = yield* Layer.build(silently(Otlp.layer(options(endpoint))))
          yield* Effect.provideContext(Effect.logInfo("a line"), context)
          yield* Deferred.await(asked)
        })
      )
      expect(lost() - before).toBe(1)
    }).pipe(Effect.scoped)
  )
})
