import { Context } from "effect"
import type { HttpServerRequest } from "effect/http"

/** The origins whose pages may call the control API (`TIDEGATE_CORS_ORIGINS`): none unless the operator names some. */
export const CorsOrigins = Context.Reference<ReadonlySet<string>>("@tidegate/api/CorsOrigins", {
  defaultValue: () => new Set<string>()
})

/** It is for whoever has its token or link: a page of anybody may show it, and no search engine lists it. */
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

/** What a page may send. Never cookies: `Access-Control-Allow-Credentials` is not answered, and a credential is a header. */
const sent = "authorization, content-type, x-team-id, idempotency-key, if-none-match, prefer"
const shown =
  "etag, idempotent-replayed, preference-applied, ratelimit, ratelimit-policy, retry-after, x-error-id, allow"

/** What a path is to pages of other origins. */
export interface Openness {
  /** The methods that pages of any origin may use. */
  readonly toAnybody: ReadonlyArray<string>
  /** All methods that there are. */
  readonly methods: ReadonlyArray<string>
}

/** What an answer says to the browser of a page of another origin: nothing, unless the path is open or the operator has named the origin. */
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
  // The same URL is answered otherwise to another origin: no cache may mix them up.
  const vary = { vary: "Origin" }
  const { origin } = headers
  if (origin === undefined || !origins.has(origin)) return vary
  const allowed = { ...vary, "access-control-allow-origin": origin }
  return isPreflight
    ? { ...allowed, ...preflighted(methods, sent) }
    : { ...allowed, "access-control-expose-headers": shown }
}
