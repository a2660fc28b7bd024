import { connectionNames, isGateways, pushHeader, setByClient } from "@tidegate/model/HeaderRules"
import type { Message } from "@tidegate/model/Message"
import { signDelivery } from "@tidegate/outbound-auth/DeliverySignature"
import { type AttemptFacts, type OpenAuth, type OutboundRequest, Refusal } from "./Connector.ts"
import { forwardedUrl } from "./ForwardedUrl.ts"

/** Where and how requests are forwarded. */
export interface ForwardTarget {
  /** Absolute. */
  readonly url: string
  readonly http_method: string | null
  readonly path_forwarding_disabled: boolean
}

const deliverable = new Set(["POST", "PUT", "PATCH", "DELETE"])

/** Headers that belong to the sender's connection, or that the gateway sets itself. */
const notForwarded: ReadonlySet<string> = new Set([...setByClient, "user-agent"])

/** Header values cannot contain all characters of a name: names outside latin-1 are percent-encoded. */
const headerText = (text: string): string => (/^[\t\x20-\x7e\xa0-\xff]*$/.test(text) ? text : encodeURIComponent(text))

/**
 * Limit of URL and headers in bytes. Ingress and transformations allow far less, and targets accept less. It covers data that was stored under
 * other limits, and the operator's own settings.
 */
const maxHeadBytes = 256 * 1024

/** The name of a parameter, as targets read it. */
const parameterName = (part: string): string => {
  const [name = ""] = part.split("=", 1)
  return /[%+]/.test(name) ? ([...new URLSearchParams(name).keys()][0] ?? "") : name
}

/** The URL with this parameter exactly once, whether or not it had the parameter before. All other parts stay as they are. */
const withParameter = (url: string, name: string, value: string): string => {
  const at = url.indexOf("?")
  const [place, query] = at === -1 ? [url, ""] : [url.slice(0, at), url.slice(at + 1)]
  const others = query === "" ? [] : query.split("&").filter((part) => parameterName(part) !== name)
  return `${place}?${[...others, `${encodeURIComponent(name)}=${encodeURIComponent(value)}`].join("&")}`
}

const keyed = (url: string, query: OpenAuth["query"], shown?: string): string =>
  query === undefined ? url : withParameter(url, query.name, shown ?? query.value)

/** The request of one attempt: the forwarded message with the gateway's own headers. */
export const forward =
  (target: ForwardTarget, { headers: set, query, signing }: Pick<OpenAuth, "headers" | "query" | "signing">) =>
  (message: Message, facts: AttemptFacts): OutboundRequest | Refusal => {
    const method = target.http_method ?? (deliverable.has(message.method) ? message.method : "POST")
    // Headers that the operator sets replace those of the gateway and of the sender.
    const headers: Array<string> = Object.hasOwn(set, "user-agent") ? [] : ["user-agent", "event-gateway/1"]
    const dropped = connectionNames(message.headers["connection"])
    let hasIdempotencyKey = Object.hasOwn(set, "idempotency-key")
    for (const name in message.headers) {
      if (notForwarded.has(name) || isGateways(name) || Object.hasOwn(set, name) || dropped.has(name)) continue
      if (signing !== null && name.startsWith("webhook-")) continue
      if (name === "idempotency-key") hasIdempotencyKey = true
      pushHeader(headers, name, message.headers[name])
    }
    if (!hasIdempotencyKey) headers.push("idempotency-key", facts.eventId)
    const isEvent = facts.isStep !== true
    if (isEvent) headers.push("x-gateway-event-id", facts.eventId)
    headers.push(
      "x-gateway-request-id",
      facts.requestId,
      "x-gateway-attempt-count",
      String(facts.attemptNumber),
      "x-gateway-attempt-trigger",
      facts.trigger,
      "x-gateway-source-name",
      headerText(facts.sourceName)
    )
    if (isEvent) headers.push("x-gateway-connection-name", headerText(facts.connectionName))
    headers.push("x-gateway-destination-name", headerText(facts.destinationName))
    if (isEvent) headers.push("x-gateway-verified", facts.verified ? "true" : "false")
    if (facts.willRetryAfter !== null) headers.push("x-gateway-will-retry-after", String(facts.willRetryAfter))
    if (facts.originalIp !== null) headers.push("x-gateway-original-ip", facts.originalIp)
    for (const name in set) headers.push(name, set[name]!)
    if (signing !== null) {
      const signature = signDelivery({
        secrets: signing,
        webhookId: facts.webhookId,
        timestampSeconds: facts.timestampSeconds,
        body: message.body
      })
      for (const [name, value] of Object.entries(signature)) headers.push(name, value)
    } else headers.push("x-gateway-timestamp", String(facts.timestampSeconds))
    const plain = target.path_forwarding_disabled ? target.url : forwardedUrl(target.url, message.path, message.query)
    // Fails closed, because only the target knows where such a path leads.
    if (plain === null) {
      return new Refusal({
        code: "PATH_NOT_ALLOWED",
        message: "the path holds encoded steps that could lead out of the path of the destination's URL",
        method,
        shownUrl: target.url
      })
    }
    const url = keyed(plain, query)
    let bytes = url.length
    for (let i = 0; i < headers.length; i++) bytes += headers[i]!.length
    if (bytes > maxHeadBytes) {
      return new Refusal({
        code: "REQUEST_TOO_LARGE",
        message: `URL and headers have more than ${maxHeadBytes} bytes`,
        method,
        shownUrl: target.url
      })
    }
    const { shown } = facts
    const isShownAsSent = target.path_forwarding_disabled || shown.query === message.query
    const shownPlain = isShownAsSent ? plain : (forwardedUrl(target.url, shown.path, shown.query) ?? target.url)
    const shownUrl = keyed(shownPlain, query, "****")
    return { method, url, shownUrl, headers, body: message.body }
  }

/** Adds the headers of a signature. A sender's own headers of these names would be taken for them. */
export const signedBy =
  (sign: NonNullable<OpenAuth["sign"]>) =>
  async (request: OutboundRequest, facts: AttemptFacts): Promise<OutboundRequest> => {
    const { drops = () => false, headers: added, secret, url = request.url } = await sign(request, facts)
    const names = new Set(added.filter((_, i) => i % 2 === 0))
    const others = request.headers.filter((_, i, flat) => {
      const name = flat[i - (i % 2)]!.toLowerCase()
      return !names.has(name) && !drops(name)
    })
    return { ...request, url, headers: [...others, ...added], ...(secret === undefined ? {} : { secret }) }
  }
