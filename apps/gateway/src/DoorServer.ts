import { NodeHttpServer } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import type { HttpServer, HttpServerError } from "effect/http"
import { IngressDoor } from "@tidegate/doors/IngressDoor"
import { wireServer } from "@tidegate/doors/wire/WireServer"
import { ingressPath } from "@tidegate/model/Ingress"

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
      NodeHttpServer.layerServer(() => wireServer({ prefix: ingressPath, handle }), {
        ...options,
        // In-flight requests end with their commit; what takes longer is cut off.
        gracefulShutdownTimeout: "5 seconds"
      })
    )
  )
