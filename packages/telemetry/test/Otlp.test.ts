import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Layer, Redacted } from "effect"
import { describe } from "vitest"
import { metrics } from "../src/Metrics.ts"
import * as Otlp from "../src/Otlp.ts"
import { Tracing } from "../src/Tracing.ts"

interface Asked {
  readonly url: string
  readonly type: string
  readonly key: string
  readonly bytes: number
}

/** A collector that answers with this status, or, with none, never. */
const collector = (status: number | null) =>
  Effect.gen(function* () {
    const asked = yield* Deferred.make<Asked>()
    const server = yield* Effect.acquireRelease(
      Effect.callback<Server>((resume) => {
        const server = createServer((message, response) => {
          let bytes = 0
          message.on("data", (chunk: Buffer) => (bytes += chunk.length))
          message.on("end", () => {
            const { headers, url = "" } = message
            const about = { url, type: headers["content-type"] ?? "", key: String(headers["x-key"]), bytes }
            if (url === "/otlp/v1/traces") Deferred.doneUnsafe(asked, Effect.succeed(about))
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

const accepted = (tracing: Tracing, at: number) =>
  tracing.accepted({
    requestId: `req_${at}`,
    teamId: "tm",
    sourceId: "src",
    method: "POST",
    headers: {},
    startedAt: 1,
    endedAt: 2,
    rejection: null,
    events: []
  })

const counted = () => ({
  exported: metrics.spansExported.value,
  lost: metrics.spansDropped.at("collector").value
})

describe("a collector", () => {
  it.live("is sent spans in protobuf, with the operator's key", () =>
    Effect.gen(function* () {
      const { asked, endpoint } = yield* collector(200)
      const before = counted()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const context = yield* Layer.build(Otlp.layer(options(endpoint)))
          accepted(yield* Effect.provideContext(Tracing, context), 1)
          const about = yield* Deferred.await(asked)
          expect(about).toMatchObject({ url: "/otlp/v1/traces", type: "application/x-protobuf", key: "a key" })
          expect(about.bytes).toBeGreaterThan(100)
        })
      )
      expect(counted().exported - before.exported).toBe(1)
    }).pipe(Effect.scoped)
  )

  it.live("that takes nothing loses what it was sent, and it is counted", () =>
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

  it.live("that never answers holds nobody up, nor the end of the process for long", () =>
    Effect.gen(function* () {
      const { asked, endpoint } = yield* collector(null)
      const since = performance.now()
      const before = counted()
      yield* Effect.scoped(
        Effect.gen(function* () {
          const context = yield* Layer.build(Otlp.layer(options(endpoint)))
          const tracing = yield* Effect.provideContext(Tracing, context)
          accepted(tracing, 1)
          yield* Deferred.await(asked)
          for (let i = 0; i < 100; i++) accepted(tracing, i)
        })
      )
      // Its patience with one request alone is ten seconds.
      expect(performance.now() - since).toBeLessThan(9_000)
      expect(counted()).toEqual({ exported: before.exported, lost: before.lost + 101 })
    }).pipe(Effect.scoped)
  )
})
