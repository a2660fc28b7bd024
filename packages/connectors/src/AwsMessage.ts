import { Schema } from "effect"
import { hash } from "node:crypto"
import { isUtf8 } from "node:buffer"
import { loopHeader } from "@tidegate/model/HeaderRules"
import type { Message } from "@tidegate/model/Message"
import { jsonEscape } from "@tidegate/interpolation/Escape"
import { utf8 } from "@tidegate/json/JsonText"
import { maxParsedBytes } from "@tidegate/json/LargeJson"
import { withinLimit } from "./Api.ts"
import type { AttemptFacts } from "./Connector.ts"
import { codingOf, envelopeOf, metadataOf } from "./Envelope.ts"
import {
  type DeliveryTemplate,
  type Fill,
  filled,
  filledJson,
  template,
  TemplateText,
  Unrenderable
} from "./Rendering.ts"
import { type FieldErrors, setting, type SettingsOf } from "./Settings.ts"

/** What an event becomes in Amazon's messaging services: a text with attributes (SQS, SNS), or one document (EventBridge, Kinesis). */

/** `beside`: the place of the event's ids, beside the body. */
export const contentSettings = (beside: string) => ({
  body_template: setting(
    TemplateText(65_536).annotate({
      description:
        "What is sent; without it, the payload. If it begins like a JSON object or list, placeholders insert JSON, and the result must be JSON"
    }),
    null
  ),
  include_metadata: setting(
    Schema.Boolean.annotate({ description: `Whether ids and time of the event are sent, ${beside}` }),
    true,
    "must be true or false"
  )
})

/** Whether a template is to make JSON: it begins with a brace or a bracket, and not with a placeholder. */
const makesJson = (written: string): boolean => /^\s*(?:\{(?!\{)|\[)/.test(written)

/** Makes the text of a template; null if there is none. */
export const bodyTemplate = (written: string | null): ((fill: Fill) => string) | null => {
  if (written === null) return null
  const compiled = template(written)
  return makesJson(written)
    ? (fill) => JSON.stringify(filledJson(fill, compiled, "body_template", jsonEscape))
    : (fill) => filled(fill, compiled, "body_template")
}

/** The payload as one document: with the ids of its event around it, unless they are switched off or it is too large to be parsed. */
export const documentOf = (message: Message, facts: AttemptFacts, includeMetadata: boolean): Uint8Array =>
  includeMetadata && message.body.byteLength <= maxParsedBytes
    ? envelopeOf(message.body, codingOf(message), facts)
    : message.body

/** The characters that a message may have. */
const sendable = /^[\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]*$/u

/** Text attributes by name. */
export type Attributes = Readonly<Record<string, string>>

export interface Content {
  readonly text: string
  readonly attributes: Attributes
  /** As the services count them. */
  readonly bytes: number
}

/** The type of all attributes. */
export const attributeType = "String"

/** The service refuses other values. It is better to leave out the sender's media type than to lose the message. */
const asAttribute = (value: Message["headers"][string] | undefined): string =>
  typeof value === "string" && value.length <= 256 && sendable.test(value) ? value : ""

/** Bytes as the services count them: the text, and names, types and values of the attributes. */
const sizeOf = (text: string, attributes: Attributes): number =>
  Object.entries(attributes).reduce(
    (bytes, [name, value]) => bytes + name.length + attributeType.length + Buffer.byteLength(value),
    Buffer.byteLength(text)
  )

/** The message of an event, of at most `limit` bytes. Bytes that a message cannot have are sent as base64, and an attribute says so. */
export const contentOf = (
  fill: Fill,
  message: Message,
  facts: AttemptFacts,
  body: ((fill: Fill) => string) | null,
  includeMetadata: boolean,
  limit: number
): Content => {
  // First, because a payload that is much too large would hold the event loop.
  if (body === null) withinLimit(message.body.byteLength, limit)
  const payload = body === null && isUtf8(message.body) ? utf8(message.body) : null
  const isPlain = payload !== null && sendable.test(payload)
  const text = body !== null ? body(fill) : isPlain ? payload : Buffer.from(message.body).toString("base64")
  if (text === "") throw new Unrenderable("the payload is empty, and a message may not be: set config.body_template")
  if (body !== null && !sendable.test(text)) {
    throw new Unrenderable(
      "config.body_template makes a text of this event with characters that a message may not have"
    )
  }
  const { team_id: _, ...ids } = metadataOf(facts)
  const isEncoded = body === null && !isPlain
  const all: Attributes = {
    ...(includeMetadata ? { ...ids, content_type: asAttribute(message.headers["content-type"]) } : {}),
    ...(facts.loop === undefined ? {} : { [loopHeader]: facts.loop }),
    ...(isEncoded ? { payload_encoding: "base64", payload_content_encoding: codingOf(message) ?? "" } : {})
  }
  // An attribute may not be empty: the call of a workflow step has no connection.
  const attributes = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ""))
  const bytes = sizeOf(text, attributes)
  withinLimit(bytes, limit)
  return { text, attributes, bytes }
}

/** The settings of queues and topics that keep an order. */
export const fifoSettings = {
  message_group_id: setting(
    TemplateText(1_024).annotate({
      description:
        "Messages of a group keep their order. Null: of a FIFO target, the ordering key of the connection, or one group for the destination"
    }),
    null
  ),
  message_deduplication_id: setting(
    TemplateText(1_024).annotate({
      description: "By it a FIFO target recognises a message that it has already. Null: the id of the event"
    }),
    null
  )
}

type Fifo = SettingsOf<typeof fifoSettings>

/** Errors of a target that keeps no order. */
export const faultsOfFifo = (isFifo: boolean, { message_deduplication_id }: Fifo): FieldErrors =>
  isFifo || message_deduplication_id === null
    ? []
    : [{ path: "config.message_deduplication_id", message: "is for FIFO targets, whose names end in .fifo" }]

/** An id in place of a text that the services would refuse. Equal texts must give equal ids. */
export const hashed = (text: string): string => `sha256-${hash("sha256", text, "hex")}`

const idOf = (text: string): string => (/^[!-~]{1,128}$/.test(text) ? text : hashed(text))

/** Makes the ids of a message, as members of a call. */
export const fifoIds = (isFifo: boolean, settings: Fifo) => {
  const compiled = (written: string | null): DeliveryTemplate | null => (written === null ? null : template(written))
  const group = compiled(settings.message_group_id)
  const deduplication = compiled(settings.message_deduplication_id)
  return (fill: Fill, facts: AttemptFacts): Readonly<Record<string, string>> => {
    const groupId =
      group !== null
        ? idOf(filled(fill, group, "message_group_id"))
        : isFifo
          ? // The call of a workflow step has no destination.
            (facts.orderingKey ?? (facts.destinationId === "" ? facts.requestId : facts.destinationId))
          : null
    const id =
      deduplication !== null
        ? idOf(filled(fill, deduplication, "message_deduplication_id"))
        : isFifo
          ? facts.webhookId
          : null
    return {
      ...(groupId === null ? {} : { MessageGroupId: groupId }),
      ...(id === null ? {} : { MessageDeduplicationId: id })
    }
  }
}
