import { createHmac, timingSafeEqual } from "node:crypto"
import { signingKey } from "./SigningKey.ts"
import type { SecretForm } from "./SigningKey.ts"

export const algorithms = ["md5", "sha1", "sha256", "sha512"] as const
export type Algorithm = (typeof algorithms)[number]

export const encodings = ["hex", "base64", "base64url"] as const
export type Encoding = (typeof encodings)[number]

/** Headers by lower-cased name, with the byte-per-character strings of Node's `IncomingHttpHeaders`. */
export type Headers = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

/**
 * How one kind of sender signs, as data: the HMAC of a source's own settings is a row of this, and so is a provider's.
 * Header names are lower-cased.
 */
export interface SignatureScheme {
  readonly header: string
  /** What separates the items of the header (`t=1,v1=a,v1=b`); null when the whole value is one item. */
  readonly separator: string | null
  /** What a signature item begins with (`v1=`, `sha256=`, or nothing). Other items are ignored. */
  readonly prefix: string
  readonly algorithm: Algorithm
  readonly encoding: Encoding
  /** What is signed: text with `{body}`, `{timestamp}` and `{header:<name>}`, as in `v0:{timestamp}:{body}`. */
  readonly content: string
  readonly timestamp: TimestampRule | null
  readonly secret: SecretForm
}

/** Where the signed timestamp is, and how far from now it may be, in either direction. */
export interface TimestampRule {
  readonly from: { readonly header: string } | { readonly itemPrefix: string }
  readonly unit: "seconds" | "milliseconds"
  readonly toleranceSeconds: number
}

/** Whether `body` was signed, and recently enough, by a holder of the secret. `nowSeconds` is Unix time. */
export type SignatureCheck = (headers: Headers, body: Uint8Array, nowSeconds: number) => boolean

type ContentPart =
  | { readonly kind: "literal"; readonly text: string }
  | { readonly kind: "header"; readonly name: string }
  | { readonly kind: "body" | "timestamp" }

const parseContent = (template: string): ReadonlyArray<ContentPart> =>
  template
    .split(/(\{[^}]*\})/)
    .filter((text) => text !== "")
    .map((text): ContentPart => {
      if (!text.startsWith("{")) return { kind: "literal", text }
      const name = text.slice(1, -1)
      if (name === "body" || name === "timestamp") return { kind: name }
      if (name.startsWith("header:")) return { kind: "header", name: name.slice("header:".length) }
      throw new Error(`unknown placeholder ${text} in the signed content ${template}`)
    })

const digestBytes: Readonly<Record<Algorithm, number>> = { md5: 16, sha1: 20, sha256: 32, sha512: 64 }

/** Digits only: no sign, no exponent, no space, so that one instant has one spelling. */
const integer = /^\d{1,15}$/

/** A header that occurs once and is not empty. Several values are refused: which one was signed is a guess. */
const single = (headers: Headers, name: string): string | null => {
  const value = headers[name]
  return typeof value === "string" && value !== "" ? value : null
}

const isRecent = (timestamp: string, rule: TimestampRule, nowSeconds: number): boolean => {
  if (!integer.test(timestamp)) return false
  const seconds = rule.unit === "seconds" ? Number(timestamp) : Number(timestamp) / 1000
  return Math.abs(nowSeconds - seconds) <= rule.toleranceSeconds
}

/**
 * Prepares the check once, so that a request costs its HMAC and little else. Null when `secret` yields no key.
 *
 * The *encoded* signatures are compared, in constant time: a decoder would also accept other alphabets, stray
 * characters and loose trailing bits. Hex may be upper-case, base64 may lack its padding. What does not look like a
 * signature is refused before anything is hashed. Every doubt is a refusal.
 */
export const compileScheme = (scheme: SignatureScheme, secret: string): SignatureCheck | null => {
  const key = signingKey(secret, scheme.secret)
  if (key === null) return null
  const parts = parseContent(scheme.content)
  const { algorithm, encoding, header, prefix, separator, timestamp: rule } = scheme
  if (rule === null && parts.some((part) => part.kind === "timestamp")) {
    throw new Error(`the signed content ${scheme.content} needs a timestamp rule`)
  }

  const bytes = digestBytes[algorithm]
  const digits = encoding === "hex" ? bytes * 2 : Math.ceil((bytes * 8) / 6)
  const padding = encoding === "hex" ? "" : "=".repeat(4 - (digits % 4))
  // Scratch space shared by all calls: a check never yields while it uses them.
  const expected = Buffer.alloc(digits)
  const presented = Buffer.alloc(digits)

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

  /** The timestamp as the sender wrote it, or null when it is missing, given twice, or too far from now. */
  const timestampOf = (headers: Headers, items: ReadonlyArray<string>, nowSeconds: number): string | null => {
    if (rule === null) return ""
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

  return (headers, body, nowSeconds) => {
    const value = single(headers, header)
    if (value === null) return false
    const items = separator === null ? [value] : value.split(separator).map((item) => item.trim())
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
        case "header": {
          const text = single(headers, part.name)
          if (text === null) return false
          hmac.update(text, "latin1")
          break
        }
      }
    }
    expected.write(hmac.digest(encoding), "latin1")
    return signatures.some(matches)
  }
}
