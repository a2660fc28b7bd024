/** The payload is not a delivery that the gateway has sent, or it is too old. */
export class WebhookVerificationError extends Error {
  override readonly name = "WebhookVerificationError"
}

export type WebhookHeaders = Headers | Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

export interface Verified {
  /** The same for each attempt and each retry of an event. If you have handled this id, do not handle it again. */
  readonly id: string
  /** When this attempt was signed. */
  readonly at: Date
}

/**
 * The number of signatures that are checked. A delivery has at most two, and checking one costs time in proportion to the body.
 */
const maxSignatures = 8
/** The bytes of an SHA-256 signature. */
const signatureBytes = 32

/** The largest difference between the signer's clock and this one. */
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
 * Verifies a delivery of a destination with `auth_type` SERVICE_SIGNATURE, by its Standard Webhooks headers. `payload` is the
 * body as received, before it is parsed. `secret` is the team's signing secret. While the secret is being changed, a delivery has
 * a signature with each of the two, and one valid signature is enough. Rejects with `WebhookVerificationError`.
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
