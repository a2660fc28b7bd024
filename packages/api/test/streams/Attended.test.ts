import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { WebSocket } from "@effect/platform-node/NodeWS"
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { eventually } from "../../../../test/support/Waiting.ts"
import type { Admitted } from "../../src/streams/Admission.ts"
import { Sockets } from "../../src/streams/Sockets.ts"
import { PingEveryMs, Streams } from "../../src/streams/Streams.ts"
import { Watches } from "../../src/streams/Watches.ts"

/** What becomes of a stream while it is open, by whether its reader answers and may still see what it is told. */

const bin = { source: "src_1", team: "tm_a", endsAt: null, isStranger: false }

const watches = Layer.succeed(Watches, { watch: () => Effect.void, unwatch: () => {} })
const pinging = (everyMs: number) =>
  Streams.layer.pipe(Layer.provide([watches, Sockets.layer, Layer.succeed(PingEveryMs, everyMs)]))
const world = pinging(250)
/** For readers that answer: a busy machine, on which one of them is late, must not look like a reader that is gone. */
const patientWorld = pinging(1_000)

interface Reader {
  readonly socket: WebSocket
  readonly told: Array<unknown>
  closed: number | null
  pings: number
}

/** A stream that is open, and how often its reader was admitted so far. */
const opened = Effect.fnUntraced(function* (
  admit: (times: number) => Effect.Effect<Admitted, GatewayError>,
  options: { readonly autoPong?: boolean } = {}
) {
  const streams = yield* Streams
  const run = Effect.runForkWith(yield* Effect.context())
  const asked = { times: 0 }
  const server = yield* Effect.acquireRelease(
    Effect.promise(
      () =>
        new Promise<ReturnType<typeof createServer>>((resolve) => {
          const server = createServer()
          server.on("upgrade", (message: IncomingMessage) =>
            run(
              Effect.ignore(
                streams.open(
                  message,
                  bin.source,
                  Effect.suspend(() => admit(++asked.times))
                )
              )
            )
          )
          server.listen(0, "127.0.0.1", () => resolve(server))
        })
    ),
    (server) => Effect.sync(() => server.close())
  )
  const { port } = server.address() as AddressInfo
  const reader: Reader = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const socket = new WebSocket(`ws://127.0.0.1:${port}/`, ["bin.v1"], { autoPong: true, ...options })
      const reader: Reader = { socket, told: [], closed: null, pings: 0 }
      socket.on("message", (data: Buffer) => reader.told.push(JSON.parse(data.toString())))
      socket.on("ping", () => reader.pings++)
      socket.on("close", (code) => (reader.closed = code))
      socket.on("error", () => {})
      return reader
    }),
    ({ socket }) => Effect.sync(() => socket.terminate())
  )
  yield* Effect.promise(() => eventually("a greeting", () => reader.told[0]))
  return { asked, reader }
})

const closed = ({ reader }: { readonly reader: Reader }) =>
  Effect.promise(() => eventually("the end of the stream", () => reader.closed))

const allowed = Effect.succeed(bin)

it.live("Event stream stays open while its reader answers pings and has access", () =>
  Effect.gen(function* () {
    const { asked, reader } = yield* opened(() => allowed)
    yield* Effect.promise(() => eventually("three pings", () => (reader.pings >= 3 ? true : null)))
    expect(asked.times).toBeGreaterThanOrEqual(3)
    expect(reader.told).toContainEqual({ type: "alive" })
    expect(reader.closed).toBeNull()
  }).pipe(Effect.scoped, Effect.provide(patientWorld))
)

it.live("Event stream ends when its reader answers no pings", () =>
  Effect.gen(function* () {
    const stream = yield* opened(() => allowed, { autoPong: false })
    expect(yield* closed(stream)).toBe(1006)
    expect(stream.reader.pings).toBe(1)
  }).pipe(Effect.scoped, Effect.provide(world))
)

const ends = [
  ["its credential is revoked", fail("INVALID_API_KEY", "revoked"), 4401],
  ["its reader has left the team", fail("TEAM_FORBIDDEN", "no member"), 4403],
  ["its resource is deleted", fail("NOT_FOUND", "gone"), 4404],
  ["its bin has expired", fail("BIN_EXPIRED", "over"), 4410],
  ["its bin belongs to another team", Effect.succeed({ ...bin, team: "tm_b" }), 4410],
  ["its reader exceeds the rate limit", fail("RATE_LIMITED", "too often"), 1013]
] as const
for (const [what, then, code] of ends) {
  it.live(`Event stream ends when ${what}`, () =>
    Effect.gen(function* () {
      const stream = yield* opened((times) => (times === 1 ? allowed : then))
      expect(yield* closed(stream)).toBe(code)
      expect(stream.asked.times).toBe(2)
    }).pipe(Effect.scoped, Effect.provide(world))
  )
}

it.live("Event stream stays open while access cannot be checked, and ends by the next answer", () =>
  Effect.gen(function* () {
    const unavailable = fail("QUEUE_UNAVAILABLE", "the database does not answer")
    const stream = yield* opened((times) =>
      times === 1 ? allowed : times < 4 ? unavailable : fail("SESSION_EXPIRED", "over")
    )
    expect(yield* closed(stream)).toBe(4401)
    expect(stream.asked.times).toBe(4)
  }).pipe(Effect.scoped, Effect.provide(patientWorld))
)
