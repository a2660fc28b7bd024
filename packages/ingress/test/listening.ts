import { once } from "node:events"
import type { AddressInfo } from "node:net"
import { Effect } from "effect"
import { wireServer } from "@tidegate/ingress/wire/WireServer"

/** The port of a server that takes requests below this path, for the time of a scope. */
export const listening = Effect.fnUntraced(function* (
  prefix: string,
  handle: NonNullable<Parameters<typeof wireServer>[0]>["handle"]
) {
  const server = wireServer({ prefixes: [prefix], host: null, handle })
  yield* Effect.acquireRelease(
    Effect.promise(() => once(server.listen({ port: 0, host: "127.0.0.1" }), "listening")),
    () =>
      Effect.callback<void>((resume) => {
        server.closeAllConnections()
        server.close(() => resume(Effect.void))
      })
  )
  return (server.address() as AddressInfo).port
})
