import type { MessageHead, Values } from "@tidegate/model/Message"
import { presentedMask } from "@tidegate/verification/PresentedSecrets"

/** A request as it arrived, before anything is decided about it. `path` is the part of the URL after the source's name, at least "/". */
export interface InboundRequest extends MessageHead {
  readonly id: string
  /** Unix ms. */
  readonly receivedAt: number
  /** The request target as it was sent: path and query. */
  readonly target: string
  /** The raw bytes; null if there were too many to keep. */
  readonly body: Uint8Array | null
  readonly bodySize: number
  /** The client's address, as far as known (`TrustedProxies`). */
  readonly originalIp: string | null
  /** Whether the request's chain has led back to the gateway too often (`Loops`). */
  readonly isLoop?: boolean
  /** Whether it follows from a system event of the team whose source admitted it (`Loops`). */
  readonly isSystem?: boolean
}

/** Headers by lower-case name. Nothing is merged or dropped: a header that was sent twice is a list of two values. */
export const readHeaders = (raw: ReadonlyArray<string>): Values => {
  const headers: Record<string, string | Array<string>> = {}
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase()
    const value = raw[i + 1]!
    // A header may be named __proto__: assigning it would not create a property.
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

/** Headers in which senders put the id of a delivery, the most specific first. */
const deliveryIdHeaders = [
  "webhook-id",
  "svix-id",
  "x-github-delivery",
  "x-gitlab-event-uuid",
  "x-shopify-webhook-id",
  "x-request-id",
  "idempotency-key"
]

/** The sender's own id of this request, if there is one; cut to 255 characters. A masked value is not used as an id. */
export const externalId = (headers: Values): string | null => {
  for (const name of deliveryIdHeaders) {
    const value = headers[name]
    if (typeof value === "string" && value !== "" && value !== presentedMask) return value.slice(0, 255)
  }
  return null
}
