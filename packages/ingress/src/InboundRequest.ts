import type { MessageHead, Values } from "@tidegate/model/Message"
import { presentedMask } from "@tidegate/verification/PresentedSecrets"

/**
 * A request as it arrived at a door, before anything is decided about it. `path` is what follows the source's name in the URL,
 * at least "/".
 */
export interface InboundRequest extends MessageHead {
  readonly id: string
  /** Unix ms. */
  readonly receivedAt: number
  /** The request target as it was sent: path and query. */
  readonly target: string
  /** The raw bytes; null when they were too many to keep. */
  readonly body: Uint8Array | null
  readonly bodySize: number
  /** The address of the client, as far as it is known (`TrustedProxies`). */
  readonly originalIp: string | null
  /** Whether it is in a chain that leads back to the gateway too often (`Loops`). */
  readonly isLoop?: boolean
}

/** Headers by lower-case name. Nothing is merged or dropped: what was sent twice is a list of two. */
export const readHeaders = (raw: ReadonlyArray<string>): Values => {
  const headers: Record<string, string | Array<string>> = {}
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase()
    const value = raw[i + 1]!
    // A header may be called __proto__: assigning it would not make a property.
    const known = Object.hasOwn(headers, name) ? headers[name] : undefined
    if (known === undefined) {
      if (name === "__proto__")
        Object.defineProperty(headers, name, { value, enumerable: true, configurable: true, writable: true })
      else headers[name] = value
    } else if (typeof known === "string") headers[name] = [known, value]
    else known.push(value)
  }
  return headers
}

/** Where senders put the id of a delivery, the most specific first. */
const deliveryIdHeaders = [
  "webhook-id",
  "svix-id",
  "x-github-delivery",
  "x-gitlab-event-uuid",
  "x-shopify-webhook-id",
  "x-request-id",
  "idempotency-key"
]

/** The sender's own id of this request, when it names one; cut to 255 characters. A mask is nobody's id. */
export const externalId = (headers: Values): string | null => {
  for (const name of deliveryIdHeaders) {
    const value = headers[name]
    if (typeof value === "string" && value !== "" && value !== presentedMask) return value.slice(0, 255)
  }
  return null
}
