import { connectionNames, isGateways, pushHeader, setByClient } from "@tidegate/model/HeaderRules"
import type { Message } from "@tidegate/model/Message"
import { signDelivery, type SigningSecret } from "@tidegate/signatures/DeliverySignature"
import { forwardedUrl } from "./ForwardedUrl.ts"

/** The settings of an HTTP (or MOCK_API) destination, as stored. */
export interface HttpTarget {
  /** Absolute; for MOCK_API the mock's own base. */
  readonly url: string
  readonly http_method: string | null
  readonly path_forwarding_disabled: boolean
  /** Headers that every delivery carries, by lower-case name. */
  readonly authHeaders: Readonly<Record<string, string>>
  /** The team's signing secrets in force, newest first; null when deliveries are not signed. */
  readonly signing: readonly [SigningSecret, ...ReadonlyArray<SigningSecret>] | null
}

/** What one attempt says about itself. */
export interface AttemptContext {
  readonly eventId: string
  readonly requestId: string
  /** The root event's id: the same for every attempt and every retry of it, so that receivers can deduplicate. */
  readonly webhookId: string
  readonly attemptNumber: number
  readonly trigger: string
  /** Seconds until the next attempt should this one fail; null when it is the last. */
  readonly willRetryAfter: number | null
  readonly sourceName: string
  readonly connectionName: string
  readonly destinationName: string
  readonly verified: boolean
  readonly originalIp: string | null
  readonly timestampSeconds: number
}

export interface OutboundParts {
  readonly method: string
  /** Null when the inbound path would lead out of the destination's. */
  readonly url: string | null
  /** Flat: name, value, name, value. */
  readonly headers: ReadonlyArray<string>
  readonly body: Uint8Array
}

const deliverable = new Set(["POST", "PUT", "PATCH", "DELETE"])

/** Headers that belong to the sender's connection, or that the gateway sets itself. */
const notForwarded: ReadonlySet<string> = new Set([...setByClient, "user-agent"])

/** Header values cannot hold everything a name may: what is outside latin-1 is percent-encoded. */
const headerText = (text: string): string => (/^[\t\x20-\x7e\xa0-\xff]*$/.test(text) ? text : encodeURIComponent(text))

/**
 * Where this request goes: the destination's URL, with the inbound path and query appended unless that is disabled. Null when
 * the path would lead out of the URL's.
 */
export const targetUrl = (
  target: Pick<HttpTarget, "url" | "path_forwarding_disabled">,
  path: string,
  query: string
): string | null => (target.path_forwarding_disabled ? target.url : forwardedUrl(target.url, path, query))

/** The request of one attempt: the inbound one, forwarded, with the gateway's own headers. */
export const prepare = (target: HttpTarget, inbound: Message, context: AttemptContext): OutboundParts => {
  const method = target.http_method ?? (deliverable.has(inbound.method) ? inbound.method : "POST")
  const set = target.authHeaders
  // What the operator sets takes the place of what the gateway would say, as it does of what the sender said.
  const headers: Array<string> = Object.hasOwn(set, "user-agent") ? [] : ["user-agent", "event-gateway/1"]
  const dropped = connectionNames(inbound.headers["connection"])
  let hasIdempotencyKey = Object.hasOwn(set, "idempotency-key")
  for (const name in inbound.headers) {
    if (notForwarded.has(name) || isGateways(name) || Object.hasOwn(set, name) || dropped.has(name)) continue
    if (target.signing !== null && name.startsWith("webhook-")) continue
    if (name === "idempotency-key") hasIdempotencyKey = true
    pushHeader(headers, name, inbound.headers[name])
  }
  if (!hasIdempotencyKey) headers.push("idempotency-key", context.eventId)
  headers.push(
    "x-gateway-event-id",
    context.eventId,
    "x-gateway-request-id",
    context.requestId,
    "x-gateway-attempt-count",
    String(context.attemptNumber),
    "x-gateway-attempt-trigger",
    context.trigger,
    "x-gateway-source-name",
    headerText(context.sourceName),
    "x-gateway-connection-name",
    headerText(context.connectionName),
    "x-gateway-destination-name",
    headerText(context.destinationName),
    "x-gateway-verified",
    context.verified ? "true" : "false"
  )
  if (context.willRetryAfter !== null) headers.push("x-gateway-will-retry-after", String(context.willRetryAfter))
  if (context.originalIp !== null) headers.push("x-gateway-original-ip", context.originalIp)
  for (const name in set) headers.push(name, set[name]!)
  if (target.signing !== null) {
    const signature = signDelivery({
      secrets: target.signing,
      webhookId: context.webhookId,
      timestampSeconds: context.timestampSeconds,
      body: inbound.body
    })
    for (const [name, value] of Object.entries(signature)) headers.push(name, value)
  } else headers.push("x-gateway-timestamp", String(context.timestampSeconds))
  return { method, url: targetUrl(target, inbound.path, inbound.query), headers, body: inbound.body }
}

/** Why a prepared request is not sent. It would be the same at the next attempt: there is none. */
export interface Refusal {
  readonly code: "PATH_NOT_ALLOWED" | "REQUEST_TOO_LARGE"
  readonly message: string
}

/**
 * Bytes of URL and headers. Far more than a door takes in, or lets a transformation make, and than a target accepts: it
 * holds for what was stored under other limits, and for an operator's own settings.
 */
const mostHeadBytes = 256 * 1024

/** What stands against sending a request; null: nothing. Fails closed on a path that only the target could judge. */
export const refusalOf = ({ headers, url }: Pick<OutboundParts, "headers" | "url">): Refusal | null => {
  if (url === null) {
    return {
      code: "PATH_NOT_ALLOWED",
      message: "the path holds encoded steps that could lead out of the path of the destination's URL"
    }
  }
  let bytes = url.length
  for (let i = 0; i < headers.length; i++) bytes += headers[i]!.length
  return bytes <= mostHeadBytes
    ? null
    : { code: "REQUEST_TOO_LARGE", message: `URL and headers have more than ${mostHeadBytes} bytes` }
}
