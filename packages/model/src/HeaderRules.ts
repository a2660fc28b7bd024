import type { Values } from "./Message.ts"

/** Header names that belong to one connection, or frame a message on it: whoever passes a message on sets its own. */
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

/** Those, and what the HTTP client says for itself: never copied from another message, and nobody's to set. */
export const setByClient: ReadonlySet<string> = new Set([...hopByHop, "content-length", "expect", "host"])

/**
 * Headers by which an answer changes more than itself for a browser: its whole origin, or what the browser keeps of that. What is answered
 * under an ingress URL is another party's and may share its origin with the control API, so none of these goes out with it.
 */
export const originWide: ReadonlySet<string> = new Set([
  // Cookies and sessions of the origin.
  "set-cookie",
  "set-cookie2",
  "set-login",
  "sec-session-registration",
  "secure-session-registration",
  // What is stored for the origin, and who answers for it from then on.
  "clear-site-data",
  "service-worker-allowed",
  "use-as-dictionary",
  // How the origin, or its whole domain, is reached.
  "strict-transport-security",
  "public-key-pins",
  "public-key-pins-report-only",
  "expect-ct",
  "alt-svc",
  // Where the browser reports what it does on the origin.
  "nel",
  "report-to",
  "reporting-endpoints",
  // What pages of the origin may do, and what the browser tells it with each request.
  "accept-ch",
  "accept-ch-lifetime",
  "critical-ch",
  "origin-agent-cluster",
  "origin-trial",
  "speculation-rules",
  "supports-loading-mode",
  "activate-storage-access",
  // What the browser keeps of the origin for advertisers.
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

/** Headers that say what a browser may do with an answer. Of what is answered under an ingress URL, the gateway says it. */
export const policies: ReadonlySet<string> = new Set([
  "content-security-policy",
  "content-security-policy-report-only",
  "x-content-type-options"
])

/** Nothing that a browser shows of it runs, has the origin it came from, or loads anything. */
export const inertPolicy = "default-src 'none'; sandbox"

/** Where a request tells which gateways it has come through, and what began it (`LoopMark.ts`). */
export const loopHeader = "gateway-loop"

/** Whoever reads the gateway's own headers has to know that the gateway wrote them. `name` in lower case. */
export const isGateways = (name: string): boolean => name.startsWith("x-gateway-") || name === loopHeader

const noNames: ReadonlySet<string> = new Set()

/** The header names that a Connection header declares to be the connection's own too. */
export const connectionNames = (connection: string | ReadonlyArray<string> | undefined): ReadonlySet<string> =>
  connection === undefined || connection === "keep-alive" || connection === "close"
    ? noNames
    : new Set(
        String(connection)
          .split(",")
          .map((name) => name.trim().toLowerCase())
      )

/** Adds a header to a flat list of names and values; one with several values is sent repeatedly. */
export const pushHeader = (flat: Array<string>, name: string, value: Values[string] | undefined): void => {
  if (value === undefined) return
  if (typeof value === "string") flat.push(name, value)
  else for (const one of value) flat.push(name, one)
}
