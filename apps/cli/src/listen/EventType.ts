import type { Delivery } from "@tidegate/client/source"
import { parseJson } from "@tidegate/json/JsonText"

/** Which event a request is, as its provider calls it: only for people who read along. */

/** Headers in which providers name the event. */
const headers = ["x-github-event", "x-gitlab-event", "x-shopify-topic", "x-event-key", "x-wc-webhook-topic"]
/** Members of a body in which they do. */
const members = ["type", "event_type", "event", "event_name", "topic", "action"]
/** Larger bodies are not read: the line must not delay deliveries. */
const largestBody = 64 * 1024
const longest = 80

const textOf = (value: unknown): string | null =>
  typeof value === "string" && value !== "" && value.length <= longest ? value : null

const inBody = (body: string | undefined): string | null => {
  if (body === undefined || body.length > largestBody || !body.trimStart().startsWith("{")) return null
  const parsed = parseJson(body)
  if (parsed.kind !== "json") return null
  const value = parsed.value as { readonly [member: string]: unknown }
  // Slack has the event inside of an envelope.
  if (value["type"] === "event_callback") {
    const inner = value["event"] as { readonly type?: unknown } | null | undefined
    return textOf(inner?.type) ?? "event_callback"
  }
  for (const member of members) {
    const found = textOf(value[member])
    if (found !== null) return found
  }
  return null
}

/** Null if the request does not say. */
export const eventTypeOf = ({ body, headers: given }: Pick<Delivery["request"], "body" | "headers">): string | null => {
  for (const name of headers) {
    const found = textOf(given[name])
    if (found !== null) return found
  }
  return inBody(body)
}
