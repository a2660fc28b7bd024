import { parseJson } from "@tidegate/json/JsonText"
import { createHmac, timingSafeEqual } from "node:crypto"
import { signingKey } from "@tidegate/model/SigningKey"
import type { SecretForm } from "@tidegate/model/SigningKey"

export const algorithms = ["md5", "sha1", "sha256", "sha512"] as const
export type Algorithm = (typeof algorithms)[number]

export const encodings = ["hex", "base64", "base64url"] as const
export type Encoding = (typeof encodings)[number]

/** Headers by lower-cased name, with the byte-per-character strings of Node's `IncomingHttpHeaders`. */
export type Headers = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

/**
 * How a kind of sender signs, as data: the HMAC of a source's own settings is such a row, and so is a provider's. Header names are
 * in lower case.
 */
export interface SignatureScheme {
  /** With `{n}` in it, a series of headers: `x-signature-{n}` is `x-signature-1`, `-2`, … as long as they exist. */
  readonly header: string
  /** What separates the items of the header (`t=1,v1=a,v1=b`); null when the whole value is one item. */
  readonly separator: string | null
  /** Prefix of a signature item (`v1=`, `sha256=`, or nothing). Other items are ignored. */
  readonly prefix: string
  readonly algorithm: Algorithm
  readonly encoding: Encoding
  /**
   * The signed content: text with `{body}`, `{timestamp}`, `{method}`, `{url}` (the public one, with its query),
   * `{decodedUrl}` (see below) and `{header:<name>}`, as in `v0:{timestamp}:{body}`.
   */
  readonly content: string
  readonly timestamp: TimestampRule | null
  readonly secret: SecretForm
}

/** Where the timestamp is, and how far from now it may be: `toleranceSeconds` in the past, and the same but at most 5 minutes ahead. */
export interface TimestampRule {
  /** `bodyMember`: a number that is a member of the JSON object in the body; it is signed with the body. */
  readonly from: { readonly header: string } | { readonly itemPrefix: string } | { readonly bodyMember: string }
  /** Unix time, or a date and time of RFC 3339. */
  readonly unit: "seconds" | "milliseconds" | "rfc3339"
  readonly toleranceSeconds: number
}

/** The parts of a request that can be signed. `nowSeconds` is Unix time. */
export interface SignedRequest {
  readonly method: string
  readonly url: string
  readonly headers: Headers
  readonly body: Uint8Array
  readonly nowSeconds: number
}

/** Whether a holder of the secret signed the request recently enough. */
export type SignatureCheck = (request: SignedRequest) => boolean

const namedParts = ["body", "timestamp", "method", "url", "decodedUrl"] as const

export type ContentPart =
  | { readonly kind: "literal"; readonly text: string }
  | { readonly kind: "header"; readonly name: string }
  | { readonly kind: (typeof namedParts)[number] }

export const parseContent = (template: string): ReadonlyArray<ContentPart> =>
  template
    .split(/(\{[^}]*\})/)
    .filter((text) => text !== "")
    .map((text): ContentPart => {
      if (!text.startsWith("{")) return { kind: "literal", text }
      const name = text.slice(1, -1)
      const kind = namedParts.find((part) => part === name)
      if (kind !== undefined) return { kind }
      if (name.startsWith("header:")) return { kind: "header", name: name.slice("header:".length) }
      throw new Error(`unknown placeholder ${text} in the signed content ${template}`)
    })

/** The URL as HubSpot signs it: these escapes are decoded, and no others. */
export const decodeUrl = (url: string): string =>
  url.replace(/%(?:3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)/gi, (escape) =>
    String.fromCharCode(Number.parseInt(escape.slice(1), 16))
  )

const digestBytes: Readonly<Record<Algorithm, number>> = { md5: 16, sha1: 20, sha256: 32, sha512: 64 }

/** Digits only: no sign, exponent or space, so that each instant has one spelling. */
const integer = /^\d{1,15}$/
const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/

/** A header that occurs once and is not empty. Several values are refused: it is unknown which one was signed. */
const single = (headers: Headers, name: string): string | null => {
  const value = headers[name]
  return typeof value === "string" && value !== "" ? value : null
}

/** More headers of a series than any sender has keys. */
const maxHeaders = 100

/** Null if one is missing, empty or occurs twice. */
const familyOf = (headers: Headers, header: string): ReadonlyArray<string> | null => {
  const values: Array<string> = []
  for (let n = 1; n <= maxHeaders; n++) {
    const name = header.replace("{n}", String(n))
    if (headers[name] === undefined) break
    const value = single(headers, name)
    if (value === null) return null
    values.push(value)
  }
  return values
}

/** Unix seconds; NaN if `text` is not a timestamp. NaN passes no comparison, so it is refused. */
const secondsOf = (text: string, unit: TimestampRule["unit"]): number => {
  if (unit === "rfc3339") return rfc3339.test(text) ? Date.parse(text) / 1000 : Number.NaN
  if (!integer.test(text)) return Number.NaN
  return unit === "seconds" ? Number(text) : Number(text) / 1000
}

/**
 * A sender's clock may be ahead by at most this, even if the tolerance for the past is longer: a signature with a future timestamp could be
 * replayed from now until the tolerance after that timestamp.
 */
export const maxAheadSeconds = 300

const isRecent = (timestamp: string, { toleranceSeconds, unit }: TimestampRule, nowSeconds: number): boolean => {
  const ahead = secondsOf(timestamp, unit) - nowSeconds
  return ahead >= -toleranceSeconds && ahead <= Math.min(toleranceSeconds, maxAheadSeconds)
}

/** A number in the JSON object `body`, as text; null if it has none. */
const memberOf = (body: Uint8Array, name: string): string | null => {
  const parsed = parseJson(body)
  if (parsed.kind !== "json") return null
  const { value } = parsed
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return null
  const member: unknown = Reflect.get(value, name)
  return typeof member === "number" ? String(member) : null
}

/**
 * Prepares the check once, so that a request costs little more than its HMAC. Returns null if `secret` yields no key.
 *
 * The *encoded* signatures are compared, in constant time: a decoder would also accept other alphabets, stray
 * characters and loose trailing bits. Hex may be upper-case, base64 may lack its padding. A text that cannot be a signature is refused
 * before anything is hashed. Fails closed: every doubtful request is refused, because accepting one could accept a forgery.
 */
export const compileScheme = (scheme: SignatureScheme, secret: string): SignatureCheck | null => {
  const key = signingKey(secret, scheme.secret)
  if (key === null) return null
  const parts = parseContent(scheme.content)
  const { algorithm, encoding, header, prefix, separator, timestamp: rule } = scheme
  const bodyMember = rule !== null && "bodyMember" in rule.from ? rule.from.bodyMember : null
  if ((rule === null || bodyMember !== null) && parts.some((part) => part.kind === "timestamp")) {
    throw new Error(`the signed content ${scheme.content} needs a timestamp rule`)
  }

  const isFamily = header.includes("{n}")
  const bytes = digestBytes[algorithm]
  const digits = encoding === "hex" ? bytes * 2 : Math.ceil((bytes * 8) / 6)
  const padding = encoding === "hex" ? "" : "=".repeat(4 - (digits % 4))
  // Scratch space shared by all calls: a check is synchronous, so no two use it at once.
  const expected = Buffer.alloc(digits)
  const presented = Buffer.alloc(digits)

  const itemsOf = (headers: Headers): ReadonlyArray<string> | null => {
    if (isFamily) return familyOf(headers, header)
    const value = single(headers, header)
    if (value === null) return null
    return separator === null ? [value] : value.split(separator).map((item) => item.trim())
  }

  /** The digits of a signature item, or null. */
  const signatureOf = (item: string): string | null => {
    if (!item.startsWith(prefix)) return null
    const length = item.length - prefix.length
    if (length === digits) return prefix === "" ? item : item.slice(prefix.length)
    return length === digits + padding.length && item.endsWith(padding)
      ? item.slice(prefix.length, -padding.length)
      : null
  }

  const matches = (signature: string): boolean =>
    presented.write(encoding === "hex" ? signature.toLowerCase() : signature, "utf8") === digits &&
    timingSafeEqual(presented, expected)

  /** The timestamp as the sender wrote it; null if it is missing, occurs twice, or is too far from now. */
  const timestampOf = (headers: Headers, items: ReadonlyArray<string>, nowSeconds: number): string | null => {
    if (rule === null || "bodyMember" in rule.from) return ""
    let text: string | null
    if ("header" in rule.from) {
      text = single(headers, rule.from.header)
    } else {
      const { itemPrefix } = rule.from
      const found = items.filter((item) => item.startsWith(itemPrefix))
      text = found.length === 1 ? found[0]!.slice(itemPrefix.length) : null
    }
    return text !== null && isRecent(text, rule, nowSeconds) ? text : null
  }

  return ({ body, headers, method, nowSeconds, url }) => {
    const items = itemsOf(headers)
    if (items === null) return false
    const signatures = items.map(signatureOf).filter((signature) => signature !== null)
    if (signatures.length === 0) return false
    const timestamp = timestampOf(headers, items, nowSeconds)
    if (timestamp === null) return false

    const hmac = createHmac(algorithm, key)
    for (const part of parts) {
      switch (part.kind) {
        case "body":
          hmac.update(body)
          break
        case "literal":
          hmac.update(part.text, "utf8")
          break
        case "timestamp":
          hmac.update(timestamp, "latin1")
          break
        case "method":
          hmac.update(method, "utf8")
          break
        case "url":
          hmac.update(url, "utf8")
          break
        case "decodedUrl":
          hmac.update(decodeUrl(url), "utf8")
          break
        case "header": {
          const text = single(headers, part.name)
          if (text === null) return false
          hmac.update(text, "latin1")
          break
        }
      }
    }
    expected.write(hmac.digest(encoding), "latin1")
    if (!signatures.some(matches)) return false
    if (rule === null || bodyMember === null) return true
    // The body is parsed only after the signature is verified: only a holder of the secret can cause the work.
    const signedAt = memberOf(body, bodyMember)
    return signedAt !== null && isRecent(signedAt, rule, nowSeconds)
  }
}
