import { Schema } from "effect"
import { isUtf8 } from "node:buffer"
import { createHmac } from "node:crypto"
import { utf8 } from "@tidegate/json/JsonText"
import type { Message } from "@tidegate/model/Message"
import { apiBatch, apiSender, failed, flat, judgeCall, proved, rejected, withinLimit } from "./Api.ts"
import { batching, batchLimits, type BatchMost, faultsOfBatches, judgeWhole } from "./Batches.ts"
import { eventFields } from "./BrokerSession.ts"
import {
  type Answer,
  type AttemptFacts,
  type BatchPart,
  connector,
  type HttpSender,
  type OpenAuth,
  payloadPerStep,
  type Verdict
} from "./Connector.ts"
import { codingOf } from "./Envelope.ts"
import { Endpoint } from "./Origin.ts"
import { type DeliveryTemplate, type Fill, template, TemplateText, Unrenderable } from "./Rendering.ts"
import { concurrency, needed, pacing, setting, text } from "./Settings.ts"

/** The largest message (bytes) that a namespace of the premium tier accepts over HTTP. Other tiers accept a quarter of this. */
const largest = 1024 * 1024
/** The limits of one call. The service documents no maximum number of messages. It accepts as many bytes as for a single message. */
const maxTogether: BatchMost = { maxCount: 100, maxBytes: largest }
/** Characters of a session's id and of a subject. */
const longest = { session_id: 128, subject: 1_024 } as const

const notEntity =
  "must be the name of a queue or topic: at most 260 letters, digits and . - _, with single slashes between its parts"
const entity = /^(?=.{1,260}$)[A-Za-z\d][\w.-]*(?:\/[A-Za-z\d][\w.-]*)*$/

/** How long a token is valid (seconds). Each token is for one call; the time allows for clocks that differ. */
const lifeSeconds = 900

/** The token of a shared access policy for what is at an address, and its secret part. */
const tokenOf = (key: { readonly name: string; readonly value: string }, address: string, timestampSeconds: number) => {
  const scope = encodeURIComponent(address)
  const expiry = timestampSeconds + lifeSeconds
  // The key looks like base64, but it is used as a text and not decoded.
  const signature = createHmac("sha256", key.value).update(`${scope}\n${expiry}`).digest("base64")
  return `SharedAccessSignature sr=${scope}&sig=${encodeURIComponent(signature)}&se=${expiry}&skn=${encodeURIComponent(key.name)}`
}

/** Null: the destination has no access policy. It has its own token in the headers, or no credentials. */
const keyOf = ({ settings }: OpenAuth) =>
  typeof settings["key_name"] === "string" && typeof settings["key"] === "string"
    ? { name: settings["key_name"], value: settings["key"] }
    : null

/** JSON as the value of a header. */
const inHeader = (value: unknown): string =>
  JSON.stringify(value).replaceAll(
    /[^\x20-\x7e]/g,
    (unit) => String.raw`\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`
  )

/** The text of a template for this event; null: it makes none. */
const textOf = (fill: Fill, name: keyof typeof longest, compiled: DeliveryTemplate | null): string | null => {
  const made = compiled === null ? "" : fill(compiled).trim().toWellFormed()
  if (made.length > longest[name]) {
    throw new Unrenderable(`config.${name} makes more than ${longest[name]} characters of this event`)
  }
  return made === "" ? null : made
}

/** Properties of the message, which a receiver reads beside its body. */
const propertiesOf = (message: Message, facts: AttemptFacts): ReadonlyArray<readonly [name: string, value: string]> =>
  Object.entries({ ...eventFields(facts), content_encoding: codingOf(message) ?? "" }).filter(
    ([, value]) => value !== ""
  )

const contentTypeOf = ({ headers }: Message): string => {
  const written = headers["content-type"]
  return typeof written === "string" && /^[\x20-\x7e]{1,256}$/.test(written) ? written : "application/octet-stream"
}

/** Answers to a message that is too large come with the status of a full queue. */
const saidOfSize = /too large|MessageSizeExceeded|maximum message size/i

/** Bytes of an answer's body that are searched: the detail is at its beginning. */
const searched = 4_096

const judge = (answer: Answer): Verdict => {
  const { status } = answer
  const document = answer.body.toString("latin1", 0, searched)
  // "40103: Invalid authorization token signature", or "SubCode=40400. The messaging entity …"
  const said = /<Detail>(?:[^<]{0,200}SubCode=)?(\w{1,64})/.exec(document)?.[1]
  switch (status) {
    case 401:
      return rejected("HTTP 401", said)
    case 403:
      // A full queue is emptied meanwhile.
      return failed(status, said, saidOfSize.test(document))
    case 404:
    case 410:
      // It may be made while retries last.
      return failed(status, said, false)
    default: {
      const verdict = judgeCall(answer, said)
      return proved(answer, verdict, status === 201)
    }
  }
}

/** Sends messages to a queue or topic of Azure Service Bus (Send Message). */
export const azureServiceBus = connector({
  type: "AZURE_SERVICE_BUS",
  name: "Azure Service Bus",
  description: "Sends a message to a queue or topic of Azure Service Bus.",
  settings: {
    endpoint: needed(
      Endpoint.annotate({
        description: "Where the namespace is",
        examples: ["https://my-shop.servicebus.windows.net"]
      }),
      "the URL of the namespace"
    ),
    entity: needed(
      text.annotate({ examples: ["orders"] }).check(Schema.isPattern(entity, { message: notEntity })),
      "the name of the queue or topic"
    ),
    session_id: setting(
      TemplateText(1_024).annotate({
        description:
          "Messages of a session keep their order. Null, or empty of an event: the ordering key of the connection, if it has one"
      }),
      null
    ),
    subject: setting(
      TemplateText(1_024).annotate({
        description: "The subject (label) of the message, by which subscriptions of a topic can select"
      }),
      null
    ),
    ...batching,
    ...pacing,
    ...concurrency
  },
  check: (settings) => faultsOfBatches(settings, maxTogether),
  auths: ["AZURE_SAS_KEY", "OAUTH2_CLIENT_CREDENTIALS"],
  scope: "https://servicebus.azure.net/.default",
  leadsTo: ({ endpoint }) => new URL(endpoint).origin,
  credentials: "mask",
  perStep: { ...payloadPerStep("The body of the message"), address: ["endpoint"] },
  example: {
    name: "orders-queue",
    type: "AZURE_SERVICE_BUS",
    config: {
      endpoint: "https://my-shop.servicebus.windows.net",
      entity: "orders",
      session_id: "{{payload.customer.id}}",
      auth_type: "AZURE_SAS_KEY",
      auth: { key_name: "gateway-send", key: "secret-of-the-policy" }
    }
  },
  open: ({ endpoint, entity, session_id, subject, ...settings }, auth) => {
    const address = `${new URL(endpoint).origin}/${entity}`
    const url = `${address}/messages`
    const session = session_id === null ? null : template(session_id)
    const label = subject === null ? null : template(subject)
    const key = keyOf(auth)
    const brokerPropertiesOf = (fill: Fill, facts: AttemptFacts) => {
      const sessionId = textOf(fill, "session_id", session) ?? facts.orderingKey
      const labelText = textOf(fill, "subject", label)
      return {
        MessageId: facts.webhookId,
        ...(sessionId === null ? {} : { SessionId: sessionId }),
        ...(labelText === null ? {} : { Label: labelText })
      }
    }
    const single = apiSender({
      shownUrl: url,
      judge,
      call: (fill, facts, message) => {
        withinLimit(message.body.byteLength, largest)
        return {
          url,
          headers: [
            "BrokerProperties",
            inHeader(brokerPropertiesOf(fill, facts)),
            ...propertiesOf(message, facts).flatMap(([name, value]) => [name, inHeader(value)]),
            ...flat(auth.headers)
          ],
          contentType: contentTypeOf(message),
          body: message.body
        }
      }
    })
    /**
     * Null: bodies in a batch are texts, so a body of other bytes is sent alone. So is an empty body, because its use in a batch is not documented.
     */
    const partOf = (fill: Fill, facts: AttemptFacts, message: Message): BatchPart | null => {
      const { body } = message
      withinLimit(body.byteLength, largest)
      if (body.byteLength === 0 || !isUtf8(body)) return null
      const contentType = contentTypeOf(message)
      const text = JSON.stringify({
        Body: utf8(body),
        BrokerProperties: { ...brokerPropertiesOf(fill, facts), ContentType: contentType },
        UserProperties: { ...Object.fromEntries(propertiesOf(message, facts)), content_type: contentType }
      })
      return { text, bytes: Buffer.byteLength(text) + 1 }
    }
    const limits = batchLimits(settings, maxTogether)
    const sender: HttpSender =
      limits === null
        ? single
        : {
            ...single,
            batch: apiBatch({
              shownUrl: url,
              limits,
              judge: judgeWhole(judge, (_, { final }) => final),
              part: partOf,
              call: (parts) => ({
                url,
                headers: flat(auth.headers),
                contentType: "application/vnd.microsoft.servicebus.json",
                body: `[${parts.map(({ text }) => text).join(",")}]`
              })
            })
          }
    return key === null
      ? sender
      : {
          ...sender,
          complete: (request, { timestampSeconds }) => {
            const secret = tokenOf(key, address, timestampSeconds)
            return Promise.resolve({ ...request, headers: [...request.headers, "authorization", secret], secret })
          }
        }
  }
})
