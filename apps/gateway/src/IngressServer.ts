import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect, Layer } from "effect"
import type { HttpServer, HttpServerError } from "effect/http"
import { IngressHandler } from "@tidegate/ingress/IngressHandler"
import { wireServer } from "@tidegate/ingress/wire/WireServer"
import { ingressPaths } from "@tidegate/model/Ingress"
import { TrustedProxies } from "@tidegate/model/TrustedProxies"
import { supervisor } from "./processes/Supervised.ts"
import type { Settings, SettingsError } from "./Settings.ts"
import { followTlsFiles } from "./TlsFiles.ts"

const hostOf = (url: string | null): string | null => (url === null ? null : new URL(url).host)

/**
 * One port for two handlers: URLs of sources and callbacks go directly to ingress, everything else to the router. Ingress is not a
 * route of the router because it runs for every webhook, and routing, fibers and response objects would be most of its cost.
 */
export const layer = ({
  host,
  ingressUrl,
  port,
  tls
}: Pick<Settings, "host" | "port" | "ingressUrl" | "tls">): Layer.Layer<
  HttpServer.HttpServer,
  HttpServerError.ServeError | SettingsError,
  IngressHandler
> =>
  Layer.unwrap(
    Effect.map(
      Effect.all([IngressHandler, TrustedProxies.Current, tls === null ? Effect.succeed(null) : followTlsFiles(tls)]),
      ([{ handle }, proxies, handshakes]) =>
        NodeHttpServer.layerServer(
          () =>
            wireServer(
              { prefixes: ingressPaths, host: hostOf(ingressUrl), handle },
              { proxies, tls: handshakes, connections: supervisor?.connections() ?? null }
            ),
          {
            host,
            port,
            // Requests in progress end with their commit; those that take longer are cut off.
            gracefulShutdownTimeout: "5 seconds"
          }
        )
    )
  )
