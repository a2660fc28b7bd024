import { createServer, type IncomingMessage, Server, type ServerResponse } from "node:http"
import { NodeHttpServer } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import type { HttpServer, HttpServerError } from "effect/http"
import { ingressPath } from "@tidegate/doors/InboundRequest"
import { IngressDoor } from "@tidegate/doors/IngressDoor"

/**
 * One port for two listeners: ingress URLs go straight to the door, everything else to the router. The door is not a
 * route of the router because it runs for every webhook, and routing, fibers and response objects would be most of its cost.
 */
export const layer = (options: {
  readonly host: string
  readonly port: number
}): Layer.Layer<HttpServer.HttpServer, HttpServerError.ServeError, IngressDoor> =>
  Layer.unwrap(
    Effect.map(IngressDoor, ({ handle }) =>
      NodeHttpServer.layerServer(() => intercept(createServer(serverOptions), handle), {
        ...options,
        // In-flight requests end with their commit; what takes longer is cut off.
        gracefulShutdownTimeout: "5 seconds"
      })
    )
  )

const serverOptions = {
  // Longer than a load balancer keeps an idle connection, so that it never sends on one that closes.
  keepAliveTimeout: 65_000,
  headersTimeout: 20_000,
  requestTimeout: 120_000,
  connectionsCheckingInterval: 5_000,
  maxHeaderSize: 32 * 1024,
  // Some HTTP clients offer h2c with every request. A sender's offer is not taken, its request is.
  shouldUpgradeCallback: ({ url = "" }: IncomingMessage): boolean => !pathOf(url).startsWith(ingressPath)
}

/** A request's target without the origin that it may begin with (RFC 9112, 3.2.2). */
const pathOf = (url: string): string => (url.startsWith("/") ? url : url.replace(/^https?:\/\/[^/?]*/i, "") || "/")

const intercept = (server: Server, handle: (request: IncomingMessage, response: ServerResponse) => void): Server => {
  const emit = server.emit.bind(server)
  server.emit = (event: string, ...args: ReadonlyArray<unknown>): boolean => {
    if (event === "request" || event === "checkContinue") {
      const request = args[0] as IncomingMessage
      request.url = pathOf(request.url ?? "")
      if (request.url.startsWith(ingressPath)) {
        const response = args[1] as ServerResponse
        if (event === "checkContinue") response.writeContinue()
        handle(request, response)
        return true
      }
    }
    return emit(event, ...args)
  }
  return server
}
