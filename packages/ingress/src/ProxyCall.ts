import { forwardedUrl } from "@tidegate/connectors/ForwardedUrl"
import { connectionNames, hopByHop, isGateways, pushHeader, setByClient } from "@tidegate/model/HeaderRules"
import type { InboundRequest } from "./InboundRequest.ts"

/** Where the requests of a proxy source go (gateway contract, 2.5). */
export interface ProxyTarget {
  /** Absolute, http or https; may have a path and a query of its own. */
  readonly target_url: string
  readonly path_forwarding: boolean
  readonly query_forwarding: boolean
}

type Headers = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

/** What of a request does not go on: the gateway says it itself. */
const notForwarded = new Set([...setByClient, "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"])

const requestIdHeader = "x-gateway-request-id"

/**
 * The URL that a request is forwarded to: the target's with the inbound path and query behind its own. Null when the inbound
 * path would lead out of the target's (`forwardedUrl`). A target that is no URL is given back as it is: nobody sends there.
 */
export const upstreamUrl = (target: ProxyTarget, path: string, query: string): string | null => {
  const url = URL.parse(target.target_url)
  if (url === null) return target.target_url
  url.hash = ""
  const forwarded = forwardedUrl(url.href, target.path_forwarding ? path : "/", target.query_forwarding ? query : "")
  return forwarded === null ? null : new URL(forwarded).href
}

/**
 * The headers of the upstream request, flat. `peer`: the address of who is connected, a proxy or the client; each link of the chain adds who asked it.
 * `publicUrl`: where the sender found the gateway.
 */
export const upstreamHeaders = (
  request: Pick<InboundRequest, "headers">,
  peer: string | null,
  publicUrl: URL,
  requestId: string
): ReadonlyArray<string> => {
  const headers: Array<string> = []
  const named = connectionNames(request.headers["connection"])
  for (const name in request.headers) {
    if (notForwarded.has(name) || isGateways(name) || named.has(name)) continue
    pushHeader(headers, name, request.headers[name])
  }
  const path = [request.headers["x-forwarded-for"] ?? [], peer?.replace(/^::ffff:(?=\d+\.)/, "") ?? []]
  const forwardedFor = path.flat().join(", ")
  if (forwardedFor !== "") headers.push("x-forwarded-for", forwardedFor)
  headers.push("x-forwarded-proto", publicUrl.protocol.slice(0, -1), "x-forwarded-host", publicUrl.host)
  headers.push(requestIdHeader, requestId)
  return headers
}

/** The headers that the caller gets with an upstream's answer, flat. */
export const callerHeaders = (status: number, upstream: Headers, requestId: string): ReadonlyArray<string> => {
  const headers: Array<string> = []
  const named = connectionNames(upstream["connection"])
  for (const name in upstream) {
    if (hopByHop.has(name) || named.has(name) || name === requestIdHeader) continue
    // A 204 has no body, and a length says that it has (RFC 9110, 8.6).
    if (name === "content-length" && status === 204) continue
    pushHeader(headers, name, upstream[name])
  }
  headers.push(requestIdHeader, requestId)
  return headers
}
