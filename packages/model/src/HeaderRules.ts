import type { Values } from "./Message.ts"

/** Header names that belong to one connection, or frame a message on it: a proxy sets its own. */
export const hopByHop: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade"
])

/** Those, and the headers that the HTTP client sets itself: never copied from another message, and not settable. */
export const setByClient: ReadonlySet<string> = new Set([...hopByHop, "content-length", "expect", "host"])

/**
 * Response headers that affect a browser beyond the one answer: the whole origin, or data that the browser stores for it. An
 * answer under an ingress URL comes from another party and may share its origin with the control API, so none of these is sent
 * with it.
 */
export const originWide: ReadonlySet<string> = new Set([
  // Cookies and sessions of the origin.
  "set-cookie",
  "set-cookie2",
  "set-login",
  "sec-session-registration",
  "secure-session-registration",
  // What is stored for the origin, and what answers for it from then on.
  "clear-site-data",
  "service-worker-allowed",
  "use-as-dictionary",
  // How the origin, or its whole domain, is reached.
  "strict-transport-security",
  "public-key-pins",
  "public-key-pins-report-only",
  "expect-ct",
  "alt-svc",
  // Where the browser reports activity on the origin.
  "nel",
  "report-to",
  "reporting-endpoints",
  // What pages of the origin may do, and what the browser sends to it with each request.
  "accept-ch",
  "accept-ch-lifetime",
  "critical-ch",
  "origin-agent-cluster",
  "origin-trial",
  "speculation-rules",
  "supports-loading-mode",
  "activate-storage-access",
  // What the browser stores about the origin for advertisers.
  "observe-browsing-topics",
  "attribution-reporting-register-source",
  "attribution-reporting-register-trigger",
  "attribution-reporting-register-os-source",
  "attribution-reporting-register-os-trigger",
  "shared-storage-write",
  "ad-auction-allowed",
  "ad-auction-signals",
  "ad-auction-additional-bid",
  "x-permitted-cross-domain-policies"
])

/** Headers that tell a browser what it may do with an answer. Under an ingress URL the gateway sets them. */
export const policies: ReadonlySet<string> = new Set([
  "content-security-policy",
  "content-security-policy-report-only",
  "x-content-type-options"
])

/** A browser that shows the answer runs nothing, gives it no origin, and loads nothing. */
export const inertPolicy = "default-src 'none'; sandbox"

/** The header that shows which gateways a request has passed, and which request it started from (`LoopMark.ts`). */
export const loopHeader = "gateway-loop"

/** The header of a test request that a member of the team has sent. It only says so: everybody can send it. */
export const testRequestHeader = "x-gateway-test-request"

/** Headers that only the gateway may set, so that receivers can trust them. `name` in lower case. */
export const isGateways = (name: string): boolean => name.startsWith("x-gateway-") || name === loopHeader

const noNames: ReadonlySet<string> = new Set()

/** The header names that a Connection header declares to belong to the connection. */
export const connectionNames = (connection: string | ReadonlyArray<string> | undefined): ReadonlySet<string> =>
  connection === undefined || connection === "keep-alive" || connection === "close"
    ? noNames
    : new Set(
        String(connection)
          .split(",")
          .map((name) => name.trim().toLowerCase())
      )

/** Adds a header to a flat list of names and values; a header with several values is added repeatedly. */
export const pushHeader = (flat: Array<string>, name: string, value: Values[string] | undefined): void => {
  if (value === undefined) return
  if (typeof value === "string") flat.push(name, value)
  else for (const one of value) flat.push(name, one)
}
