import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { connect } from "node:net"
import type { Loops } from "@tidegate/entities/Loops"
import { TrustedProxies } from "@tidegate/model/TrustedProxies"
import type { Journal } from "@tidegate/storage/Journal"
import { request, requestBytes } from "../../../test/support/RawHttp.ts"
import { eventually } from "../../../test/support/Waiting.ts"
import { Bodies } from "../src/Bodies.ts"
import { Admission } from "../src/handler/Admission.ts"
import { Refusals } from "../src/handler/Refusals.ts"
import { IngressTelemetry } from "../src/IngressTelemetry.ts"
import { listening } from "./listening.ts"

/** An ingress whose sources are unknown, and are looked up until the test ends that. */
const open = Effect.gen(function* () {
  const lookedUp: Array<() => void> = []
  const proxies = new TrustedProxies([])
  const bodies = new Bodies(proxies)
  const admission = new Admission({
    bodies,
    clock: yield* Clock.Clock,
    // Of a source that is not there nothing is asked.
    journal: {} as Journal["Service"],
    loops: {} as Loops,
    proxies,
    refusals: new Refusals(yield* IngressTelemetry.make(() => bodies.heldBytes)),
    snapshots: {
      get: () => undefined,
      load: () => new Promise<null>((resolve) => lookedUp.push(() => resolve(null)))
    },
    admitted: () => expect.fail("there is no source")
  })
  const port = yield* listening("/e/", (message, response) => admission.admit(message, response))
  return { lookedUp, port }
})

/** A connection on which so many requests are sent at once. */
const flood = (port: number, count: number) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const socket = connect({ port, host: "127.0.0.1" })
      const one = requestBytes({ method: "GET", path: "/e/unknown", keepAlive: true })
      socket.write(Buffer.concat(Array.from<Buffer>({ length: count }).fill(one)))
      return socket.resume()
    }),
    (socket) => Effect.sync(() => socket.destroy())
  )

const seen = (what: string, read: () => boolean) => Effect.promise(() => eventually(what, () => read() || null))

describe("Look-ups of unknown sources", () => {
  it.live("One address has half of them: beyond that it is refused, and others are not", () =>
    Effect.gen(function* () {
      const { lookedUp, port } = yield* open
      for (let i = 0; i < 8; i++) yield* flood(port, 256)
      yield* seen("all of its requests wait", () => lookedUp.length === 2_048)
      const ask = (from: string) => Effect.promise(() => request(port, { method: "GET", path: "/e/another", from }))
      const refused = yield* ask("127.0.0.1")
      expect([refused.status, refused.headers["retry-after"]]).toEqual([429, "1"])
      const other = yield* Effect.forkChild(ask("127.0.0.2"))
      yield* seen("another address waits, too", () => lookedUp.length === 2_049)
      for (const end of lookedUp.splice(0)) end()
      expect((yield* Fiber.join(other)).status).toBe(404)
    }).pipe(Effect.scoped)
  )

  it.live("A request whose look-up has ended gives its place to another one", () =>
    Effect.gen(function* () {
      const { lookedUp, port } = yield* open
      for (let i = 0; i < 8; i++) yield* flood(port, 256)
      yield* seen("all of its requests wait", () => lookedUp.length === 2_048)
      for (const end of lookedUp.splice(0)) end()
      yield* flood(port, 1)
      yield* seen("the next request is looked up", () => lookedUp.length === 1)
    }).pipe(Effect.scoped)
  )
})
