import { forwardedUrl } from "@tidegate/connectors/ForwardedUrl"
import { connectionNames, hopByHop, isGateways, pushHeader, setByClient } from "@tidegate/model/HeaderRules"
import type { InboundRequest } from "./InboundRequest.ts"

/** Where the requests of a source in proxy mode are forwarded (gateway contract, 2.5). */
export interface ProxyTarget {
  /** Absolute, http or https; may have its own path and query. */
  readonly target_url: string
  readonly path_forwarding: boolean
  readonly query_forwarding: boolean
}

type Headers = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

/** Headers that are not forwarded: the gateway sets them itself. */
const notForwarded = new Set([...setByClient, "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"])

const requestIdHeader = "x-gateway-request-id"

/**
 * The URL to which a request is forwarded: the target's, with the inbound path and query appended. Null if the inbound path would leave
 * the target's path (`forwardedUrl`). A target that is no valid URL is returned unchanged: sending to it fails.
 */
export const upstreamUrl = (target: ProxyTarget, path: string, query: string): string | null => {
  const url = URL.parse(target.target_url)
  if (url === null) return target.target_url
  url.hash = ""
  const forwarded = forwardedUrl(url.href, target.path_forwarding ? path : "/", target.query_forwarding ? query : "")
  return forwarded === null ? null : new URL(forwarded).href
}

/**
 * The headers of the upstream request, flat. `peer`: address of the connected client or proxy; each proxy of the chain adds the address of
 * its own client. `publicUrl`: the gateway's origin as senders see it.
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

/** The headers of an upstream's answer that the caller gets, flat. */
export const callerHeaders = (status: number, upstream: Headers, requestId: string): ReadonlyArray<string> => {
  const headers: Array<string> = []
  const named = connectionNames(upstream["connection"])
  for (const name in upstream) {
    if (hopByHop.has(name) || named.has(name) || name === requestIdHeader) continue
    // A 204 has no body, and a length would announce one (RFC 9110, 8.6).
    if (name === "content-length" && status === 204) continue
    pushHeader(headers, name, upstream[name])
  }
  headers.push(requestIdHeader, requestId)
  return headers
}
