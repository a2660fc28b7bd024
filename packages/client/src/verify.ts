/** A delivery that is not what the gateway has sent, or is too old to be taken for it. */
export class WebhookVerificationError extends Error {
  override readonly name = "WebhookVerificationError"
}

export type WebhookHeaders = Headers | Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

export interface Verified {
  /** The same for each attempt and each retry of an event: what has been handled under it needs no handling again. */
  readonly id: string
  /** When this attempt was signed. */
  readonly at: Date
}

/** Signatures that are looked at: a delivery has two at the most, and each costs as much as the body is long. */
const maxSignatures = 8
/** Of SHA-256, in bytes. */
const signatureBytes = 32

/** How far the signer's clock and this one may be apart. */
const toleranceSeconds = 300

const headerOf = (headers: WebhookHeaders, name: string): string => {
  const found =
    headers instanceof Headers
      ? headers.get(name)
      : Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  if (Array.isArray(found) && found.length === 1) return headerOf({ [name]: found[0] as string }, name)
  if (typeof found !== "string" || found === "") throw new WebhookVerificationError(`no header ${name}`)
  return found
}

const bytesOf = (base64: string): Uint8Array<ArrayBuffer> | null => {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
  } catch {
    return null
  }
}

const keyOf = (secret: string): Promise<CryptoKey> => {
  const bytes = secret.startsWith("whsec_") ? bytesOf(secret.slice(6)) : new TextEncoder().encode(secret)
  if (bytes === null || bytes.length === 0) throw new WebhookVerificationError("the secret is not one")
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["verify"])
}

/**
 * Checks a delivery of a destination with `auth_type` SERVICE_SIGNATURE, by its Standard Webhooks headers. `payload` is the body as it
 * came, before anything has parsed it; `secret` is the team's signing secret. While a secret is being changed a delivery has a
 * signature by each, and either is enough. Rejects with `WebhookVerificationError`.
 */
export const verify = async (
  payload: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string
): Promise<Verified> => {
  const id = headerOf(headers, "webhook-id")
  const timestamp = headerOf(headers, "webhook-timestamp")
  const signatures = headerOf(headers, "webhook-signature")
  if (!/^\d{1,12}$/.test(timestamp)) throw new WebhookVerificationError("the timestamp is not one")
  const seconds = Number(timestamp)
  if (Math.abs(Date.now() / 1_000 - seconds) > toleranceSeconds) {
    throw new WebhookVerificationError("the timestamp is too old or too new")
  }
  const encoder = new TextEncoder()
  const prefix = encoder.encode(`${id}.${timestamp}.`)
  const body = typeof payload === "string" ? encoder.encode(payload) : payload
  const signed = new Uint8Array(prefix.length + body.length)
  signed.set(prefix)
  signed.set(body, prefix.length)
  const key = await keyOf(secret)
  for (const signature of signatures.split(" ", maxSignatures)) {
    const [version, base64 = ""] = signature.split(",")
    const bytes = version === "v1" ? bytesOf(base64) : null
    if (bytes?.length === signatureBytes && (await crypto.subtle.verify("HMAC", key, bytes, signed))) {
      return { id, at: new Date(seconds * 1_000) }
    }
  }
  throw new WebhookVerificationError("no signature is by this secret")
}
