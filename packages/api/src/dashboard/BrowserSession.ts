import type { Headers } from "effect/http"
import { type CookieKind, removing, setting, textsOf } from "./SealedCookies.ts"

/**
 * The dashboard's session in a browser. Its cookie holds the caller's credential (an API key or a session's token). Browsers send it
 * to `/v1` only, so no source's upstream receives it. A cookie gives no more rights than its credential: a revoked key or an ended
 * session ends it at once.
 */
const session: CookieKind = {
  name: "tidegate_session",
  path: "/v1",
  // A week, as a session of the API.
  lifetimeMs: 7 * 24 * 3_600_000,
  // The first kind of cookie: it has none.
  purpose: ""
}

/** The value of `Set-Cookie` that begins a session with a credential. */
export const begun = (key: Uint8Array, credential: string, publicUrl: string, now: number): string =>
  setting(session, key, [credential], publicUrl, now)

/** The value of `Set-Cookie` that ends a session. */
export const ended = (publicUrl: string): string => removing(session, publicUrl)

/** The credential of the dashboard's cookie; null: the request has none, or it does not count. */
export const cookieCredential = (
  key: Uint8Array,
  headers: Headers.Headers,
  publicUrl: string,
  now: number
): string | null =>
  headers["authorization"] === undefined ? (textsOf(session, key, headers, publicUrl, now)?.[0] ?? null) : null
