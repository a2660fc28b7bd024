import { Context } from "effect"
import type { HttpServerRequest } from "effect/http"

/** The origins whose pages may call the control API (`TIDEGATE_CORS_ORIGINS`): none by default. */
export const CorsOrigins = Context.Reference<ReadonlySet<string>>("@tidegate/api/CorsOrigins", {
  defaultValue: () => new Set<string>()
})

/** For answers that a token or link gives access to: any page may show them, and search engines must not list them. */
const openly = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers": "retry-after",
  "x-robots-tag": "noindex, nofollow"
}

const preflighted = (methods: ReadonlyArray<string>, headers: string) => ({
  "access-control-allow-methods": methods.join(", "),
  "access-control-allow-headers": headers,
  "access-control-max-age": "600"
})

/**
 * The headers that a page may send. Never cookies: `Access-Control-Allow-Credentials` is not sent, and a credential is a header.
 */
const sent = "authorization, content-type, x-team-id, idempotency-key, if-none-match, prefer"
const shown =
  "etag, deprecation, idempotent-replayed, link, preference-applied, ratelimit, ratelimit-policy, retry-after, sunset, x-error-id, allow"

/** What pages of other origins may do at a path. */
export interface Openness {
  /** The methods for pages of any origin. */
  readonly toAnybody: ReadonlyArray<string>
  /** All methods of the path. */
  readonly methods: ReadonlyArray<string>
}

/** The CORS headers for a page of another origin: none, unless the path is open or the operator has listed the origin. */
export const crossOrigin = (
  origins: ReadonlySet<string>,
  { headers, method }: HttpServerRequest.HttpServerRequest,
  { methods, toAnybody }: Openness
): Record<string, string> => {
  const isPreflight = method === "OPTIONS" && headers["access-control-request-method"] !== undefined
  const asked = isPreflight ? headers["access-control-request-method"]! : method === "HEAD" ? "GET" : method
  if (toAnybody.includes(asked)) {
    return isPreflight ? { ...openly, ...preflighted(toAnybody, "authorization, content-type, x-bin-token") } : openly
  }
  if (origins.size === 0) return {}
  // The same URL has another answer for another origin: caches must not mix them up.
  const vary = { vary: "Origin" }
  const { origin } = headers
  if (origin === undefined || !origins.has(origin)) return vary
  const allowed = { ...vary, "access-control-allow-origin": origin }
  return isPreflight
    ? { ...allowed, ...preflighted(methods, sent) }
    : { ...allowed, "access-control-expose-headers": shown }
}
