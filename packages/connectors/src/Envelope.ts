import { isUtf8 } from "node:buffer"
import type { Message } from "@tidegate/model/Message"
import type { AttemptFacts } from "./Connector.ts"
import { payloadOf } from "./Rendering.ts"

/** A payload together with the ids of its event, for targets that keep one document and nothing beside it. */

/** The ids and the time of an event. */
export const metadataOf = (facts: AttemptFacts) => ({
  event_id: facts.eventId,
  request_id: facts.requestId,
  team_id: facts.teamId,
  source_id: facts.sourceId,
  connection_id: facts.connectionId,
  destination_id: facts.destinationId,
  created_at: new Date(facts.createdAt).toISOString()
})

/** The members that hold any bytes as base64. */
const inBase64 = (body: Uint8Array, coding: string | null): string => {
  const inner = coding === null ? "" : `"payload_content_encoding":${JSON.stringify(coding)},`
  return `${inner}"payload_encoding":"base64","payload":"${Buffer.from(body).toString("base64")}"`
}

/** A payload that is no JSON, or too large to be parsed, as an object; `facts`: with the ids of its event. */
export const base64Object = (body: Uint8Array, coding: string | null, facts: AttemptFacts | null): string => {
  const head = facts === null ? "{" : `${JSON.stringify(metadataOf(facts)).slice(0, -1)},`
  return `${head}${inBase64(body, coding)}}`
}

/**
 * The payload in an object with the ids of its event. JSON is included unchanged, text as a string, and other bytes as base64. (A large body
 * becomes the object itself, because detecting its kind would block the event loop.)
 */
export const envelopeOf = (body: Uint8Array, coding: string | null, facts: AttemptFacts): Uint8Array => {
  const head = JSON.stringify(metadataOf(facts)).slice(0, -1)
  if (!isUtf8(body)) {
    return Buffer.from(`${head},${inBase64(body, coding)}}`)
  }
  const value = payloadOf({ body })
  return typeof value === "string"
    ? Buffer.from(`${head},"payload":${JSON.stringify(value)}}`)
    : Buffer.concat([Buffer.from(`${head},"payload":`), body, Buffer.from("}")])
}

/**
 * The compression of a body that is stored as it came; null if it is not compressed. It is stored with the object, because readers could not
 * detect it otherwise.
 */
export const codingOf = ({ body, headers }: Pick<Message, "body" | "headers">): string | null => {
  const written = headers["content-encoding"]
  const coding = (typeof written === "string" ? written : "").trim().toLowerCase()
  // Some senders write a charset into this header.
  const names = coding.split(/\s*,\s*/)
  if (names.length > 4 || !names.every((name) => /^(?:(?:x-)?(?:gzip|compress)|deflate|br|zstd)$/.test(name)))
    return null
  // A transformation may have replaced the body but kept the request's headers.
  const isGzip = body[0] === 0x1f && body[1] === 0x8b
  return /^(?:x-)?gzip$/.test(coding) && !isGzip ? null : names.join(", ")
}
