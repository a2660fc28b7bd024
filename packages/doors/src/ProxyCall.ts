import { hopByHop } from "@tidegate/model/HopByHop"
import type { InboundRequest } from "./InboundRequest.ts"

/** Where the requests of a proxy source go (gateway contract, 2.5). */
export interface ProxyTarget {
  /** Absolute, http or https; may have a path and a query of its own. */
  readonly target_url: string
  readonly path_forwarding: boolean
  readonly query_forwarding: boolean
}

type Headers = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

const ofConnection: ReadonlySet<string> = new Set(hopByHop)

/** What the gateway says itself. */
const setByGateway = new Set([
  "host",
  "content-length",
  "expect",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto"
])

const requestIdHeader = "x-gateway-request-id"

/**
 * The URL that a request is forwarded to: the target's path with the inbound path behind it, the target's query with the
 * inbound one behind it. Null when the inbound path would lead out of the target's: fails closed, because what lies beside
 * the path that the operator wrote is not the sender's. A target that is no URL is given back as it is: nobody sends there.
 *
 * `path` begins with a slash; `path` and `query` are as they arrived, undecoded.
 */
export const upstreamUrl = (target: ProxyTarget, path: string, query: string): string | null => {
  const url = URL.parse(target.target_url)
  if (url === null) return target.target_url
  url.hash = ""
  if (target.path_forwarding) {
    const suffix = containedPath(path)
    if (suffix === null) return null
    const base = url.pathname
    if (suffix !== "/") url.pathname = base.endsWith("/") ? base + suffix.slice(1) : base + suffix
  }
  if (target.query_forwarding && query !== "") {
    // Setting a query takes off its first question mark, and the sender's may begin with one.
    url.search = url.search === "" ? `?${ascii(query)}` : `${url.search}&${ascii(query)}`
  }
  return url.href
}

/**
 * An inbound path with its steps up taken, which end at its root; null when steps remain that only the upstream would see,
 * because it decodes slashes and dots, or cuts off path parameters, before it takes them.
 */
const containedPath = (path: string): string | null => {
  // A backslash would become a slash, a hash and a question mark would end the path.
  const plain = ascii(path).replaceAll("\\", "%5C").replaceAll("#", "%23").replaceAll("?", "%3F")
  const { pathname } = new URL(`http://upstream${plain}`)
  const decoded = fullyDecoded(pathname)
  return decoded === null || /[/\\]\.\.(?:[/\\;]|$)/.test(decoded) ? null : pathname
}

/** No upstream decodes more often, and nobody encodes more often for a good reason. */
const mostDecodings = 4

/** What comes of decoding for as long as there is something to decode, as far as ASCII goes; null when that takes too long. */
const fullyDecoded = (path: string): string | null => {
  let decoded = path
  for (let pass = 0; pass <= mostDecodings; pass++) {
    const before = decoded
    decoded = before.replace(/%([0-7][0-9a-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    if (decoded === before) return decoded
  }
  return null
}

/** Node reads a request's target byte by byte; a URL would take the bytes beyond ASCII for characters. */
const ascii = (text: string): string =>
  text.replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`)

/** The headers of the upstream request, flat. `publicUrl`: where the sender found the gateway. */
export const upstreamHeaders = (
  request: Pick<InboundRequest, "headers" | "originalIp">,
  publicUrl: URL,
  requestId: string
): ReadonlyArray<string> => {
  const headers: Array<string> = []
  const named = connectionNames(request.headers["connection"])
  for (const name in request.headers) {
    // Whoever reads the gateway's own headers has to know that the gateway wrote them.
    if (setByGateway.has(name) || name.startsWith("x-gateway-")) continue
    if (!ofConnection.has(name) && !named.has(name)) push(headers, name, request.headers[name])
  }
  const path = [request.headers["x-forwarded-for"] ?? [], request.originalIp?.replace(/^::ffff:(?=\d+\.)/, "") ?? []]
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
    if (ofConnection.has(name) || named.has(name) || name === requestIdHeader) continue
    // A 204 has no body, and a length says that it has (RFC 9110, 8.6).
    if (name === "content-length" && status === 204) continue
    push(headers, name, upstream[name])
  }
  headers.push(requestIdHeader, requestId)
  return headers
}

const noNames: ReadonlySet<string> = new Set()

/** The headers that a Connection header names: they belong to the connection too. */
const connectionNames = (connection: Headers[string]): ReadonlySet<string> =>
  connection === undefined
    ? noNames
    : new Set([connection].flat().flatMap((list) => list.split(",").map((name) => name.trim().toLowerCase())))

const push = (headers: Array<string>, name: string, value: Headers[string]): void => {
  if (value === undefined) return
  if (typeof value === "string") headers.push(name, value)
  else for (const one of value) headers.push(name, one)
}
