import { once } from "node:events"
import { get as httpGet, type IncomingMessage } from "node:http"
import type { ProxyExchange, Source } from "../support/Contract.ts"
import { type Answer, request } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"

/** A source in proxy mode: its sender is answered by its upstream, and what came in is routed beside that: contract 2.5. */

export const it = gatewayIt
  .extend(
    "proxying",
    ({ gateway, upstream }) =>
      (proxy: object = {}, config: object = {}): Promise<Source> =>
        gateway.source({
          allowed_http_methods: allMethods,
          mode: "proxy",
          proxy: { target_url: upstream.origin, ...proxy },
          ...config
        })
  )
  .extend(
    "send",
    ({ gateway }) =>
      (source: Source, { suffix = "", ...parts }: Sent = {}): Promise<Answer> =>
        request(gateway.port, { ...parts, path: `/e/${source.id}${suffix}` })
  )
  /** The exchange of a request once it is stored, which is after the caller has been answered. */
  .extend(
    "exchangeOf",
    ({ gateway }) =>
      (requestId: string): Promise<ProxyExchange> =>
        gateway.eventually(`the exchange of ${requestId}`, async () => {
          const { proxy_exchange } = await gateway.api("GET", `/requests/${requestId}`)
          return proxy_exchange
        })
  )
  /** Asks through Node's own client, which reads an answer as it comes. */
  .extend("ask", ({ gateway }) => async (source: Source, suffix = ""): Promise<IncomingMessage> => {
    const asked = httpGet(`${gateway.origin}/e/${source.id}${suffix}`, { agent: false })
    const [message] = await once(asked, "response")
    return message
  })

export const allMethods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] as const

export interface Sent {
  readonly method?: string
  readonly suffix?: string
  readonly headers?: ReadonlyArray<readonly [string, string]>
  readonly body?: string | Uint8Array
}

export const idOf = ({ headers }: { readonly headers: Answer["headers"] | IncomingMessage["headers"] }): string =>
  String(headers["x-gateway-request-id"])
