import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto"
import { Context } from "effect"
import type { Headers } from "effect/http"

/**
 * Cookies of the dashboard: their values are encrypted with a key that only gateways have, scripts cannot read them (`HttpOnly`), and
 * no other site can make a browser send them (`SameSite=Strict`).
 */

/** Encrypts the cookies, 32 bytes. Processes with the same key accept each other's cookies; the default is a key of the process. */
export const BrowserSessionKey = Context.Reference<Uint8Array>("@tidegate/api/BrowserSessionKey", {
  defaultValue: () => randomBytes(32)
})

/**
 * A page of another site cannot send this header without a preflight, which the gateway refuses. Without it the cookies are ignored.
 */
export const pageHeader = "x-tidegate-dashboard"

const nonceBytes = 12
const tagBytes = 16

/** A kind of cookie. */
export interface CookieKind {
  readonly name: string
  /** Where browsers send it: a path below the gateway's. */
  readonly path: string
  /** How long a browser keeps it (ms). */
  readonly lifetimeMs: number
  /** Bound to the encryption, so that no cookie of one kind is accepted as one of another. */
  readonly purpose: string
}

const encrypt = (key: Uint8Array, text: string, purpose: string): string => {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(purpose))
  return Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()]).toString("base64url")
}

/** Null if the value was not made with this key for this purpose. */
const decrypt = (key: Uint8Array, value: string, purpose: string): string | null => {
  const bytes = Buffer.from(value, "base64url")
  if (bytes.length <= nonceBytes + tagBytes) return null
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, nonceBytes)).setAAD(Buffer.from(purpose))
  decipher.setAuthTag(bytes.subarray(-tagBytes))
  try {
    return decipher.update(bytes.subarray(nonceBytes, -tagBytes), undefined, "utf8") + decipher.final("utf8")
  } catch {
    return null
  }
}

/** `publicUrl`: where the gateway is reached, such as `https://hooks.example.com/gateway`. */
const attributes = ({ path }: CookieKind, publicUrl: string): string => {
  const { pathname, protocol } = new URL(publicUrl)
  const secure = protocol === "https:" ? "; Secure" : ""
  return `Path=${pathname.replace(/\/+$/, "")}${path}; HttpOnly; SameSite=Strict${secure}`
}

/** The value of `Set-Cookie` that stores texts in a browser. */
export const setting = (
  kind: CookieKind,
  key: Uint8Array,
  texts: ReadonlyArray<string>,
  publicUrl: string,
  now: number
): string => {
  const value = encrypt(key, JSON.stringify([now + kind.lifetimeMs, ...texts]), kind.purpose)
  return `${kind.name}=${value}; Max-Age=${kind.lifetimeMs / 1_000}; ${attributes(kind, publicUrl)}`
}

/** The value of `Set-Cookie` that removes the cookie. */
export const removing = (kind: CookieKind, publicUrl: string): string =>
  `${kind.name}=; Max-Age=0; ${attributes(kind, publicUrl)}`

export const hostOf = (origin: string): string | null => URL.parse(origin)?.host ?? null

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

/** The texts that a request's cookie has; null: it has no such cookie, or the cookie does not count. */
export const textsOf = (
  kind: CookieKind,
  key: Uint8Array,
  headers: Headers.Headers,
  publicUrl: string,
  now: number
): ReadonlyArray<string> | null => {
  const { cookie } = headers
  if (cookie === undefined || !isOwnPage(headers, publicUrl)) return null
  const [, value] = new RegExp(`(?:^|;)\\s*${kind.name}=([\\w-]{1,8192})(?:;|$)`).exec(cookie) ?? []
  if (value === undefined) return null
  const text = decrypt(key, value, kind.purpose)
  if (text === null) return null
  const [until, ...texts] = JSON.parse(text) as [number, ...Array<string>]
  return until > now ? texts : null
}
