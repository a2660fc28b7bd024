import { createHmac } from "node:crypto"
import { Option, Result } from "effect"
import { parseJson } from "@tidegate/json/JsonText"
import { hmacScheme, validateGenericAuth } from "./GenericAuth.ts"
import type { ProviderAuth } from "./Provider.ts"
import { providerFor } from "./Providers.ts"
import { decodeUrl, parseContent, type SignatureScheme, type TimestampRule } from "./SignatureScheme.ts"
import type { Signer } from "./Signer.ts"
import { signingKey } from "@tidegate/model/SigningKey"

/* Signs requests as a sender does. It reads the same rows as verification, so that a developer can imitate a provider. */

export type { Signed, Signer, Unsigned } from "./Signer.ts"

const timestampText = (nowSeconds: number, unit: TimestampRule["unit"]): string => {
  if (unit === "rfc3339") return new Date(Math.floor(nowSeconds) * 1000).toISOString()
  return String(Math.floor(unit === "seconds" ? nowSeconds : nowSeconds * 1000))
}

/** Adds the timestamp to the body as a number; null if the body is not a JSON object. */
const withMember = (body: Uint8Array, name: string, timestamp: string): Uint8Array | null => {
  const parsed = parseJson(body)
  if (parsed.kind !== "json" || typeof parsed.value !== "object" || parsed.value === null) return null
  if (Array.isArray(parsed.value)) return null
  return Buffer.from(JSON.stringify({ ...parsed.value, [name]: Number(timestamp) }), "utf8")
}

/** Returns null if `secret` yields no key. */
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

/** The verification settings of a source whose requests are imitated, with secrets in plain text. */
export interface Verifying {
  readonly type: string
  readonly auth_type: string | null
  readonly auth: Readonly<Record<string, unknown>>
}

/** The signer of a source that has no provider's type, by its settings. */
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

/** The name of the setting that holds the secret of a source; null if its requests cannot be signed. */
export const signingSecretOf = ({ auth_type, type }: Omit<Verifying, "auth">): string | null => {
  const verification = providerFor(type, auth_type)?.verification
  if (verification?.kind === "code") return verification.sign === undefined ? null : "webhook_secret_key"
  switch (verification?.kind ?? auth_type) {
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
 * The signer whose requests the source accepts. Null if its settings yield no key, or if its provider verifies by code that has no
 * counterpart. If there are several schemes, the first is used.
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
      return webhook_secret_key === undefined ? null : (verification.sign?.(webhook_secret_key) ?? null)
  }
}
