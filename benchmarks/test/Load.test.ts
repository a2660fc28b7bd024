import { expect, it } from "@effect/vitest"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import * as Effect from "effect/Effect"
import { request } from "undici"
import { makeGenerator } from "../src/Generator.ts"
import { makePayload } from "../src/Payload.ts"
import { makeTarget } from "../src/Target.ts"

const target = Effect.acquireRelease(Effect.promise(makeTarget), (made) => Effect.promise(made.close))
const generator = Effect.acquireRelease(Effect.sync(makeGenerator), (made) => Effect.promise(made.close))

const server = (answer: (at: number) => { readonly status: number; readonly afterMillis: number }) =>
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      let at = 0
      const made = createServer((incoming, response) => {
        const { status, afterMillis } = answer(at++)
        incoming.resume().on("end", () => setTimeout(() => response.writeHead(status).end(), afterMillis))
      })
      made.listen(0, "127.0.0.1", () => resume(Effect.succeed(made)))
    }),
    (made) => Effect.sync(() => made.closeAllConnections()).pipe(Effect.andThen(Effect.sync(() => made.close())))
  ).pipe(Effect.map((made) => `http://127.0.0.1:${(made.address() as AddressInfo).port}/`))

it.live("Benchmark target counts each sent request once, and repeated requests again", () =>
  Effect.gen(function* () {
    const { port, drained, report } = yield* target
    const { saturate } = yield* generator
    const input = { urls: [`http://127.0.0.1:${port()}/targetPath`], run: 1, inFlight: 8, seconds: 10, count: 500 }
    const sent = yield* Effect.promise(() => saturate(input))
    expect(sent).toMatchObject({ acknowledged: 500, refused: 0, refusal: null })
    const expected = { run: 1, targetPaths: ["/targetPath"], count: 500, stallMillis: 5_000, limitMillis: 5_000 }
    const arrived = yield* Effect.promise(() => drained(expected))
    expect(arrived).toMatchObject({ delivered: 500, duplicates: 0, malformed: 0, distinct: { "/targetPath": 500 } })
    expect(arrived.latency.count).toBe(500)

    yield* Effect.promise(() => saturate(input))
    expect(report({ run: 1 })).toMatchObject({ delivered: 500, duplicates: 500 })
    expect(report({ run: 2 }).delivered).toBe(0)
  })
)

it.live("Load generator sends each customer's requests in order, and the target counts inversions", () =>
  Effect.gen(function* () {
    const { port, report } = yield* target
    const { saturate } = yield* generator
    const url = `http://127.0.0.1:${port()}/targetPath`
    const inTurn = { urls: [url], run: 1, inFlight: 8, seconds: 10, count: 300, customers: 3 }
    expect(yield* Effect.promise(() => saturate(inTurn))).toMatchObject({ acknowledged: 300 })
    expect(report({ run: 1 })).toMatchObject({ delivered: 300, inversions: 0 })

    const post = (sequence: number, customer: number) =>
      Effect.promise(async () => {
        const { body } = await request(url, {
          method: "POST",
          body: makePayload({ sentAt: 0, run: 2, sequence, customer })
        })
        await body.dump()
      })
    yield* post(5, 1)
    yield* post(4, 2)
    yield* post(3, 1)
    yield* post(5, 1)
    expect(report({ run: 2 })).toMatchObject({ delivered: 3, duplicates: 1, inversions: 1 })
  })
)

it.live("Benchmark target stops waiting for missing requests and reports how many arrived", () =>
  Effect.gen(function* () {
    const { drained } = yield* target
    const arrived = yield* Effect.promise(() =>
      drained({ run: 1, targetPaths: ["/targetPath"], count: 1, stallMillis: 30, limitMillis: 5_000 })
    )
    expect(arrived).toMatchObject({ delivered: 0, distinct: {} })
  })
)

it.live("Benchmark target counts bodies that the generator did not send", () =>
  Effect.gen(function* () {
    const { port, report } = yield* target
    yield* Effect.promise(async () => {
      const { body } = await request(`http://127.0.0.1:${port()}/targetPath`, { method: "POST", body: "{}" })
      await body.dump()
    })
    expect(report({ run: 0 })).toMatchObject({ delivered: 0, malformed: 1 })
    expect(report({ run: 0 })).toMatchObject({ delivered: 0, malformed: 0 })
  })
)

it.live("Load generator adds a stall of the server to the latency of every request that waited", () =>
  Effect.gen(function* () {
    // Only the first answer is late, but the one connection makes the others wait behind it.
    const url = yield* server((at) => ({ status: 200, afterMillis: at === 0 ? 300 : 0 }))
    const { offer } = yield* generator
    const sent = yield* Effect.promise(() =>
      offer({ urls: [url], run: 1, perSecond: 100, seconds: 0.4, connections: 1 })
    )
    expect(sent.acknowledged).toBe(40)
    expect(sent.acknowledge.p50).toBeGreaterThanOrEqual(60)
  })
)

it.live("Load generator counts refused requests and reports the first refusal", () =>
  Effect.gen(function* () {
    const url = yield* server((at) => ({ status: at % 2 === 0 ? 503 : 200, afterMillis: 0 }))
    const { saturate } = yield* generator
    const sent = yield* Effect.promise(() => saturate({ urls: [url], run: 1, inFlight: 1, seconds: 5, count: 4 }))
    expect(sent).toMatchObject({ acknowledged: 2, refused: 2, limited: 0 })
    expect(sent.refusal ?? "").toMatch(/^503/)
  })
)
