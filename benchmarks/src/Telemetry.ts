/**
 * The observers of a gateway that is measured with all telemetry on: a collector that accepts everything and keeps nothing, and a
 * scraper of its metrics. Both cost this process almost nothing, and cost the gateway as much as real ones.
 */
import { createServer } from "node:http"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { request } from "undici"

/** The collector's address. */
export const collector: Effect.Effect<string, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.callback<ReturnType<typeof createServer>>((resume) => {
      const server = createServer((message, response) => {
        message.resume()
        message.on("end", () => response.end())
      })
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) =>
      Effect.sync(() => {
        server.closeAllConnections()
        server.close()
      })
  ),
  (server) => {
    const address = server.address()
    return `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`
  }
)

/** Reads the metrics every five seconds while the scope is open. A version without metrics answers 404, which is ignored. */
export const scrape = (origin: string, key: string): Effect.Effect<void, never, Scope.Scope> =>
  Effect.tryPromise(async () => {
    const { body } = await request(`${origin}/metrics`, { headers: { authorization: `Bearer ${key}` } })
    await body.dump()
  }).pipe(Effect.ignore, Effect.repeat(Schedule.spaced("5 seconds")), Effect.forkScoped, Effect.asVoid)
