import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { WebSocket } from "@effect/platform-node/NodeWS"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { kind, maxPerAddress, maxStrangersPerAddress, Sockets } from "../../src/streams/Sockets.ts"

/** Who takes whose places. */

/** A server whose handshakes say by their path who they are of; and what becomes of one: open, or why not. */
const world = Effect.gen(function* () {
  const sockets = yield* Sockets
  const run = Effect.runForkWith(yield* Effect.context())
  const readers = kind({ maxPayload: 1_024 }, "bin.v1")
  const refusals: Array<string> = []
  const open: Array<WebSocket> = []
  const server = yield* Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const server = createServer()
      server.on("upgrade", (message: IncomingMessage) =>
        run(
          sockets
            .open({
              message,
              kind: readers,
              admit:
                message.url === "/nobody"
                  ? fail("INVALID_API_KEY", "none")
                  : Effect.succeed({ isStranger: message.url === "/stranger" }),
              limits: () => ({}),
              serve: () => Effect.never
            })
            .pipe(
              Effect.catch((error: GatewayError) =>
                Effect.sync(() => {
                  refusals.push(error.code)
                  message.socket.destroy()
                })
              )
            )
        )
      )
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) =>
      Effect.sync(() => {
        for (const socket of open) socket.terminate()
        server.close()
      })
  )
  const { port } = server.address() as AddressInfo
  /** What becomes of as many handshakes: how many are open. */
  const opened = (who: string, count: number) =>
    Effect.map(
      Effect.forEach(
        Array.from({ length: count }),
        () =>
          Effect.callback<number>((resume) => {
            const socket = new WebSocket(`ws://127.0.0.1:${port}/${who}`, ["bin.v1"])
            open.push(socket)
            socket.on("open", () => resume(Effect.succeed(1)))
            socket.on("error", () => resume(Effect.succeed(0)))
          }),
        { concurrency: 8 }
      ),
      (all) => all.reduce((sum, one) => sum + one, 0)
    )
  return { opened, refusals }
})

it.live("Streams without credentials are limited separately from streams with credentials", () =>
  Effect.gen(function* () {
    const { opened, refusals } = yield* world
    expect(yield* opened("stranger", maxStrangersPerAddress + 2)).toBe(maxStrangersPerAddress)
    expect(refusals).toEqual(["RATE_LIMITED", "RATE_LIMITED"])
    expect(yield* opened("member", maxPerAddress + 1)).toBe(maxPerAddress)
    expect(refusals).toHaveLength(3)
    expect(yield* opened("nobody", 1), "is told by a code").toBe(1)
  }).pipe(Effect.scoped, Effect.provide(Sockets.layer))
)
