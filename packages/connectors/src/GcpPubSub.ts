import { Schema } from "effect"
import { loopHeader } from "@tidegate/model/HeaderRules"
import type { Message } from "@tidegate/model/Message"
import { apiSender, flat, json, withinLimit } from "./Api.ts"
import { eventFields } from "./BrokerSession.ts"
import { type Answer, type AttemptFacts, connector, payloadPerStep, type Verdict } from "./Connector.ts"
import { codingOf } from "./Envelope.ts"
import { judgeGoogle } from "./Google.ts"
import { endpointOf } from "./Origin.ts"
import { template, TemplateText, Unrenderable } from "./Rendering.ts"
import { concurrency, needed, pacing, setting, text } from "./Settings.ts"

export const pubSubApi = "https://pubsub.googleapis.com"
/** What tokens are asked for. */
export const pubSubScope = "https://www.googleapis.com/auth/pubsub"

/** Bytes of a message's data, and of an ordering key or a value of an attribute. */
const largest = 10_000_000
const longest = 1_024

const notProject =
  "must be the id of a project: 6 to 30 small letters, digits and dashes, with a domain before it in old projects"
const project = /^(?:[a-z\d][a-z\d.-]{0,62}:)?[a-z][a-z\d-]{4,28}[a-z\d]$/
/** The name of a topic or a subscription. `of`: its kind, as the service's own names have it. */
export const PubSubName = (of: "topic" | "subscription", described: { description?: string; examples: [string] }) =>
  text.annotate(described).check(
    Schema.isPattern(/^(?!goog)[A-Za-z][\w.~+%-]{2,254}$/, {
      message: `must be the name of a ${of}, without projects/…/${of}s/: 3 to 255 letters, digits and - _ . ~ + %, which begin with a letter and not with goog`
    })
  )

export const projectId = needed(
  text.annotate({ examples: ["my-shop"] }).check(Schema.isPattern(project, { message: notProject })),
  "the id of the project"
)

export const pubSubEndpoint = endpointOf(
  "Where the service is, such as one of its regions or an emulator; null: Google's for all regions"
)

/** Where the credentials, or tokens for them, go. */
export const leadsToPubSub = ({ endpoint }: { readonly endpoint: string | null }): string =>
  endpoint === null ? pubSubApi : new URL(endpoint).origin

/**
 * The attributes that tell a subscriber about the event. A value that is empty or too long for the service is left out. A loop mark is too long only
 * if other gateways have written most of it; the next message of the loop then has a short one.
 */
const attributesOf = (message: Message, facts: AttemptFacts): Readonly<Record<string, string>> => {
  const contentType = message.headers["content-type"]
  const all = {
    message_id: facts.webhookId,
    ...eventFields(facts),
    content_type: typeof contentType === "string" ? contentType : "",
    content_encoding: codingOf(message) ?? "",
    [loopHeader]: facts.loop ?? ""
  }
  return Object.fromEntries(
    Object.entries(all).filter(([, value]) => value !== "" && Buffer.byteLength(value) <= longest)
  )
}

const isPublished = ({ messageIds }: Readonly<Record<string, unknown>>): boolean =>
  Array.isArray(messageIds) && messageIds.length === 1

/** A topic that is missing may be created while retries last. */
const judge = (answer: Answer): Verdict => {
  const verdict = judgeGoogle(answer, isPublished)
  return verdict === "successful" || answer.status !== 404 ? verdict : { ...verdict, final: false }
}

/** Publishes messages to a topic of Google Cloud Pub/Sub (projects.topics.publish). */
export const gcpPubSub = connector({
  type: "GCP_PUBSUB",
  name: "Google Cloud Pub/Sub",
  description: "Publishes a message to a topic of Google Cloud Pub/Sub.",
  settings: {
    project_id: projectId,
    topic: needed(PubSubName("topic", { examples: ["orders"] }), "the name of the topic"),
    ordering_key: setting(
      TemplateText(1_024).annotate({
        description:
          "Messages of a key keep their order for subscriptions with message ordering. Null, or empty of an event: the ordering key of the connection, if it has one"
      }),
      null
    ),
    endpoint: pubSubEndpoint,
    ...pacing,
    ...concurrency
  },
  auths: ["SERVICE_ACCOUNT", "OAUTH_REFRESH_TOKEN", "OAUTH2_AUTHORIZATION_CODE", "NO_AUTH"],
  scope: pubSubScope,
  origins: [pubSubApi],
  leadsTo: leadsToPubSub,
  credentials: "mask",
  perStep: { ...payloadPerStep("The data of the message"), address: ["endpoint"] },
  example: {
    name: "orders-topic",
    type: "GCP_PUBSUB",
    config: {
      project_id: "my-shop",
      topic: "orders",
      ordering_key: "{{payload.customer.id}}",
      auth_type: "OAUTH_REFRESH_TOKEN",
      auth: {
        client_id: "0000.apps.googleusercontent.com",
        client_secret: "secret-of-the-client",
        refresh_token: "1//token-of-the-account",
        token_url: "https://oauth2.googleapis.com/token"
      }
    }
  },
  open: ({ endpoint, ordering_key, project_id, topic }, { headers }, origins) => {
    const origin = endpoint === null ? origins(pubSubApi) : new URL(endpoint).origin
    const url = `${origin}/v1/projects/${project_id}/topics/${encodeURIComponent(topic)}:publish`
    const key = ordering_key === null ? null : template(ordering_key)
    const sender = apiSender({
      shownUrl: url,
      judge,
      call: (fill, facts, message) => {
        const made = key === null ? "" : fill(key).trim().toWellFormed()
        const orderingKey = made === "" ? facts.orderingKey : made
        if (orderingKey !== null && Buffer.byteLength(orderingKey) > longest) {
          throw new Unrenderable(`config.ordering_key makes more than ${longest} bytes of this event`)
        }
        const { body } = message
        withinLimit(body.byteLength, largest)
        const rest = JSON.stringify({
          attributes: attributesOf(message, facts),
          ...(orderingKey === null ? {} : { orderingKey })
        })
        const data = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("base64")
        return {
          url,
          headers: flat(headers),
          contentType: json,
          // Base64 has nothing to escape. To search the largest message for it would hold the event loop.
          body: `{"messages":[${rest.slice(0, -1)},"data":"${data}"}]}`
        }
      }
    })
    return { ...sender, marksMessages: true }
  }
})
