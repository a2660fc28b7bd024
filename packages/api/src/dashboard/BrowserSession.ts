import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto"
import { Context } from "effect"
import type { Headers } from "effect/http"

/**
 * The dashboard's session in a browser. Its cookie holds the caller's credential (an API key or a session's token), encrypted with a
 * key that only gateways have. Scripts cannot read it (`HttpOnly`), and browsers send it to `/v1` only, so no source's upstream
 * receives it. A cookie gives no more rights than its credential: a revoked key or an ended session ends it at once.
 */

/** Encrypts the cookies, 32 bytes. Processes with the same key accept each other's cookies; the default is a key of the process. */
export const BrowserSessionKey = Context.Reference<Uint8Array>("@tidegate/api/BrowserSessionKey", {
  defaultValue: () => randomBytes(32)
})

export const cookieName = "tidegate_session"

/**
 * A page of another site cannot send this header without a preflight, which the gateway refuses. Without it the cookie is ignored.
 */
export const pageHeader = "x-tidegate-dashboard"

/** How long a cookie is valid (ms): a week, as a session of the API. */
const lifetimeMs = 7 * 24 * 3_600_000

const nonceBytes = 12
const tagBytes = 16

const encrypt = (key: Uint8Array, text: string): string => {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv("aes-256-gcm", key, nonce)
  return Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]).toString("base64url")
}

/** Null if the value was not made with this key. */
const decrypt = (key: Uint8Array, value: string): string | null => {
  const bytes = Buffer.from(value, "base64url")
  if (bytes.length <= nonceBytes + tagBytes) return null
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, nonceBytes))
  decipher.setAuthTag(bytes.subarray(-tagBytes))
  try {
    return decipher.update(bytes.subarray(nonceBytes, -tagBytes), undefined, "utf8") + decipher.final("utf8")
  } catch {
    return null
  }
}

/** Where the gateway is reached: `https://hooks.example.com/gateway`. */
const attributes = (publicUrl: string): string => {
  const { pathname, protocol } = new URL(publicUrl)
  const path = `${pathname.replace(/\/+$/, "")}/v1`
  return `Path=${path}; HttpOnly; SameSite=Strict${protocol === "https:" ? "; Secure" : ""}`
}

/** The value of `Set-Cookie` that begins a session with a credential. */
export const begun = (key: Uint8Array, credential: string, publicUrl: string, now: number): string =>
  `${cookieName}=${encrypt(key, JSON.stringify([now + lifetimeMs, credential]))}; Max-Age=${lifetimeMs / 1_000}; ${attributes(publicUrl)}`

/** The value of `Set-Cookie` that ends a session. */
export const ended = (publicUrl: string): string => `${cookieName}=; Max-Age=0; ${attributes(publicUrl)}`

const cookiePattern = new RegExp(`(?:^|;)\\s*${cookieName}=([\\w-]{1,8192})(?:;|$)`)

const hostOf = (origin: string): string | null => URL.parse(origin)?.host ?? null

/**
 * Whether the gateway's own page sent the request. A page's calls carry its header; a WebSocket's handshake cannot, but always
 * names its origin. Fails closed: whatever a browser says of another site or origin, the cookie does not count.
 */
const isOwnPage = (headers: Headers.Headers, publicUrl: string): boolean => {
  const site = headers["sec-fetch-site"]
  if (site !== undefined && site !== "same-origin") return false
  const { host, origin } = headers
  // A reverse proxy may pass on another host than the one that the browser has called.
  if (origin !== undefined && ![host, hostOf(publicUrl)].includes(hostOf(origin) ?? "")) return false
  return headers["upgrade"]?.toLowerCase() === "websocket" ? origin !== undefined : headers[pageHeader] !== undefined
}

/** The credential of the dashboard's cookie; null: the request has none, or it does not count. */
export const cookieCredential = (
  key: Uint8Array,
  headers: Headers.Headers,
  publicUrl: string,
  now: number
): string | null => {
  const [, value] = cookiePattern.exec(headers["cookie"] ?? "") ?? []
  if (value === undefined || headers["authorization"] !== undefined || !isOwnPage(headers, publicUrl)) return null
  const text = decrypt(key, value)
  if (text === null) return null
  const [until, credential] = JSON.parse(text) as [number, string]
  return until > now ? credential : null
}
