import type { Received } from "@tidegate/connectors/Subscriptions"
import { maxMessageBody, messageIdHeader } from "@tidegate/model/BrokerSource"
import { isGateways, loopHeader, setByClient } from "@tidegate/model/HeaderRules"
import type { Message } from "@tidegate/model/Message"
import { credentialHeaders } from "@tidegate/verification/PresentedPlaces"
import type { Loops } from "../Loops.ts"

const headerName = /^[!#$%&'*+.^_`|~0-9a-z-]{1,256}$/
/** What a header's value may have: HTTP has no other characters. */
const headerValue = /^[\x20-\x7e\x80-\xff]+$/

/** A header with such a name would say something else of the request than of the message, or is a secret that everybody could read. */
const isKept = (name: string): boolean =>
  headerName.test(name) &&
  !setByClient.has(name) &&
  !credentialHeaders.includes(name) &&
  (name === loopHeader || !isGateways(name))

const headersOf = ({ contentEncoding, contentType, facts, headers, id }: Received): Record<string, string> => {
  const all: Record<string, string> = Object.create(null)
  const own = headers.map(([name, value]) => [name.toLowerCase(), value] as const).filter(([name]) => isKept(name))
  // What the broker says comes last, so that no header of the sender stands in its place.
  const said: ReadonlyArray<readonly [string, string | null]> = [
    ["content-type", contentType],
    ["content-encoding", contentEncoding],
    [messageIdHeader, id],
    ...Object.entries(facts)
  ]
  for (const [name, value] of [...own, ...said]) {
    if (value !== null && headerValue.test(value)) all[name] = value
  }
  return { ...all }
}

/** The request that a message becomes, or why it becomes none: then the broker gives it to nobody any more. */
export const requestOf = (received: Received, loops: Pick<Loops, "admits">): Message | string => {
  const { body, size } = received
  if (body === null) return `a message of ${size} bytes is too large: at most ${maxMessageBody} become a request`
  const headers = headersOf(received)
  if (!loops.admits(headers)) return "a message has led back to the gateway too often"
  return { method: "POST", path: "/", query: "", headers, body }
}
