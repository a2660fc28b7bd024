import { hash, timingSafeEqual } from "node:crypto"
import type { InboundRequest } from "./Provider.ts"

/** Whether a request presents the stored credential. Never throws, and takes constant time. */
export type CredentialCheck = (request: InboundRequest) => boolean

/** Compares digests of equal length, so that the time reveals neither where two secrets differ nor how long they are. */
const matcher = (secret: string): ((presented: Uint8Array) => boolean) => {
  const expected = hash("sha256", Buffer.from(secret, "utf8"), "buffer")
  return (presented) => timingSafeEqual(hash("sha256", presented, "buffer"), expected)
}

const basicCredentials = /^basic +([A-Za-z0-9+/]+)(={0,2})$/i

/**
 * HTTP Basic. User name and password have exactly one base64 form. Comparing that form checks both at once, needs no decoding, and
 * refuses credentials that are not the UTF-8 of the stored ones.
 */
export const basicCheck = (username: string, password: string): CredentialCheck => {
  const matches = matcher(Buffer.from(`${username}:${password}`, "utf8").toString("base64").replace(/=+$/, ""))
  return ({ headers }) => {
    const header = headers["authorization"]
    const found = typeof header === "string" ? basicCredentials.exec(header) : null
    if (found === null) return false
    const [, digits = "", padding = ""] = found
    const isWellPadded = padding === "" || (digits.length + padding.length) % 4 === 0
    return isWellPadded && matches(Buffer.from(digits, "latin1"))
  }
}

/** Where a key may be: a header, a query parameter, or either. */
export interface KeyPlaces {
  readonly header: string | undefined
  readonly query: string | undefined
}

/** If the header is present it decides, even if it is wrong; the query is read only without it. */
export const keyCheck = (key: string, { header, query }: KeyPlaces): CredentialCheck => {
  const matches = matcher(key)
  const name = header?.toLowerCase()
  return (request) => {
    const value = name === undefined ? undefined : request.headers[name]
    // Header strings hold one byte per character: a key with non-ASCII characters is compared as the UTF-8 that was sent.
    if (value !== undefined) return typeof value === "string" && matches(Buffer.from(value, "latin1"))
    if (query === undefined) return false
    const [first, ...others] = new URLSearchParams(request.query).getAll(query)
    return first !== undefined && others.length === 0 && matches(Buffer.from(first, "utf8"))
  }
}
