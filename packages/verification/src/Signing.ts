import { createHmac } from "node:crypto"
import { Option, Result } from "effect"
import { parseJson } from "@tidegate/json/JsonText"
import { hmacScheme, validateGenericAuth } from "./GenericAuth.ts"
import type { ProviderAuth } from "./Provider.ts"
import { providerFor } from "./Providers.ts"
import { decodeUrl, parseContent, type SignatureScheme, type TimestampRule } from "./SignatureScheme.ts"
import { signingKey } from "@tidegate/model/SigningKey"

/*
 * Signs as a sender does: the other side of what sources verify, made of the same rows, so that a developer can stand in
 * for a provider.
 */

/** A request before it is signed. Names of headers are lower-cased; `nowSeconds` is Unix time. */
export interface Unsigned {
  readonly method: string
  /** The public URL that it is sent to, with its query. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  readonly nowSeconds: number
  /** What headers that are signed and not there are set to: a message's id. */
  readonly id: string
}

/** What signing adds. The body is another one where the provider keeps its timestamp in there. */
export interface Signed {
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** Signs one request after the other; null of one that cannot be signed: its body would have to be a JSON object. */
export type Signer = (request: Unsigned) => Signed | null

const timestampText = (nowSeconds: number, unit: TimestampRule["unit"]): string => {
  if (unit === "rfc3339") return new Date(Math.floor(nowSeconds) * 1000).toISOString()
  return String(Math.floor(unit === "seconds" ? nowSeconds : nowSeconds * 1000))
}

/** The body with the time in it, as a number; null when it is no JSON object. */
const withMember = (body: Uint8Array, name: string, timestamp: string): Uint8Array | null => {
  const parsed = parseJson(body)
  if (parsed.kind !== "json" || typeof parsed.value !== "object" || parsed.value === null) return null
  if (Array.isArray(parsed.value)) return null
  return Buffer.from(JSON.stringify({ ...parsed.value, [name]: Number(timestamp) }), "utf8")
}

/** Null when `secret` yields no key. */
const schemeSigner = (scheme: SignatureScheme, secret: string): Signer | null => {
  const key = signingKey(secret, scheme.secret)
  if (key === null) return null
  const parts = parseContent(scheme.content)
  const { algorithm, encoding, prefix, separator, timestamp: rule } = scheme
  return ({ body: written, headers: given, id, method, nowSeconds, url }) => {
    const timestamp = rule === null ? "" : timestampText(nowSeconds, rule.unit)
    const added: Record<string, string> = {}
    let body: Uint8Array | null = written
    if (rule !== null && "header" in rule.from) added[rule.from.header] = timestamp
    if (rule !== null && "bodyMember" in rule.from) body = withMember(written, rule.from.bodyMember, timestamp)
    if (body === null) return null
    const hmac = createHmac(algorithm, key)
    for (const part of parts) {
      if (part.kind === "body") hmac.update(body)
      else if (part.kind === "literal") hmac.update(part.text, "utf8")
      else if (part.kind === "header") hmac.update((added[part.name] ??= given[part.name] ?? id), "latin1")
      else hmac.update({ timestamp, method, url, decodedUrl: decodeUrl(url) }[part.kind], "utf8")
    }
    const signature = prefix + hmac.digest(encoding)
    const isItem = rule !== null && "itemPrefix" in rule.from
    const value = isItem ? `${rule.from.itemPrefix}${timestamp}${separator}${signature}` : signature
    return { headers: { ...added, [scheme.header.replace("{n}", "1")]: value }, body }
  }
}

const presents =
  (name: string, value: string): Signer =>
  ({ body }) => ({ headers: { [name.toLowerCase()]: value }, body })

const basic = (username: string, password: string): Signer =>
  presents("authorization", `Basic ${Buffer.from(`${username}:${password}`, "utf8").toString("base64")}`)

/** A source that requests are made for: what it verifies by, secrets in the clear. */
export interface Verifying {
  readonly type: string
  readonly auth_type: string | null
  readonly auth: Readonly<Record<string, unknown>>
}

/** By the settings that a source of no provider's type has. */
const genericSigner = ({ auth, auth_type }: Verifying): Signer | null => {
  const generic = Option.getOrNull(Result.getSuccess(validateGenericAuth(auth_type, auth) ?? Result.fail([])))
  switch (generic?.auth_type) {
    case "HMAC":
      return schemeSigner(hmacScheme(generic.auth), generic.auth.webhook_secret_key)
    case "API_KEY":
      return generic.auth.header_key === undefined ? null : presents(generic.auth.header_key, generic.auth.api_key)
    case "BASIC_AUTH":
      return basic(generic.auth.username, generic.auth.password)
    default:
      return null
  }
}

/** What a source of a provider's type takes as its secret; null where requests cannot be made from the provider's row. */
export const signingSecretOf = ({ auth_type, type }: Omit<Verifying, "auth">): string | null => {
  switch (providerFor(type, auth_type)?.verification.kind ?? auth_type) {
    case "scheme":
    case "HMAC":
      return "webhook_secret_key"
    case "token":
    case "API_KEY":
      return "api_key"
    case "basic":
    case "BASIC_AUTH":
      return "password"
    default:
      return null
  }
}

/**
 * What signs requests as those do that the source verifies; null when its settings yield no key, or its provider verifies by code,
 * which no row tells. Of several schemes the first is used.
 */
export const signerOf = (source: Verifying): Signer | null => {
  const provider = providerFor(source.type, source.auth_type)
  if (provider === undefined) return genericSigner(source)
  const { verification } = provider
  const { api_key, header_key, password, username, webhook_secret_key } = source.auth as ProviderAuth
  switch (verification.kind) {
    case "scheme":
      return webhook_secret_key === undefined ? null : schemeSigner(verification.schemes[0], webhook_secret_key)
    case "token": {
      const header = verification.header ?? header_key
      return api_key === undefined || header === undefined ? null : presents(header, api_key)
    }
    case "basic":
      return username === undefined || password === undefined ? null : basic(username, password)
    default:
      return null
  }
}
