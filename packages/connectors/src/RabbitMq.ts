import { Schema } from "effect"
import { loopHeader } from "@tidegate/model/HeaderRules"
import type { Message } from "@tidegate/model/Message"
import type { AmqpMessage } from "./Brokers.ts"
import { eventFields, lasting, type Meaning, messagesAtOnce, passing, publishing } from "./BrokerSession.ts"
import { type AttemptFacts, connector, payloadPerStep } from "./Connector.ts"
import { type DeliveryTemplate, filling, template, TemplateText, Unrenderable } from "./Rendering.ts"
import { inUrl, leadsToServer, serverAddress, serverConnection, serverPlace, serverSignIn } from "./Server.ts"
import { concurrency, pacing, setting, text } from "./Settings.ts"

/** The protocol writes the length of a short text in one byte. */
const longestShort = 255

const isShort = (written: string): boolean => Buffer.byteLength(written) <= longestShort

const notName = "must be a name of at most 255 bytes without control characters"
/** A name that the protocol writes as a short text. */
export const ShortName = (description: string) =>
  text.annotate({ description }).check(
    Schema.isPattern(/^\P{Cc}{0,255}$/u, { message: notName }).abort(),
    Schema.makeFilter((name: string) => isShort(name) || notName)
  )

const YesOrNo = (description: string, otherwise: boolean) =>
  setting(Schema.Boolean.annotate({ description }), otherwise, "must be true or false")

/** A header of the event for the message's property; null if it does not fit there. */
const property = (value: Message["headers"][string] | undefined): string | null =>
  typeof value === "string" && isShort(value) ? value : null

const messageOf = (
  message: Message,
  facts: AttemptFacts,
  key: DeliveryTemplate,
  { mandatory, persistent }: { readonly persistent: boolean; readonly mandatory: boolean }
): AmqpMessage => {
  const routingKey = filling(message, facts)(key).toWellFormed()
  if (!isShort(routingKey)) throw new Unrenderable("config.routing_key makes more than 255 bytes of this event")
  return {
    mandatory,
    persistent,
    id: facts.webhookId,
    routingKey,
    contentType: property(message.headers["content-type"]),
    contentEncoding: property(message.headers["content-encoding"]),
    headers: facts.loop === undefined ? eventFields(facts) : { ...eventFields(facts), [loopHeader]: facts.loop },
    body: message.body
  }
}

/** By the reply code of AMQP. `NACK` and `BLOCKED` stand for the two refusals without a reply code. */
const meanings: Readonly<Record<string, Meaning>> = {
  "311": lasting("the message is too large for the broker"),
  "312": passing("no queue gets a message with this routing key"),
  "313": passing("no consumer gets a message with this routing key"),
  "320": passing("the broker has closed the connection", "SOCKET_CLOSED"),
  "402": passing("there is no such virtual host"),
  "403": passing("the broker does not let the destination in", "AUTH_REJECTED"),
  "404": passing("there is no such exchange"),
  "406": lasting("the broker does not take such a message"),
  "530": passing("the virtual host is not there, or the user may not use it", "AUTH_REJECTED"),
  NACK: passing("the broker could not keep the message, for example because a queue is full"),
  BLOCKED: passing("the broker takes no messages now, because its memory or its disk is full")
}

/** Publishes messages to an exchange of RabbitMQ, by AMQP 0-9-1. */
export const rabbitMq = connector({
  type: "RABBITMQ",
  name: "RabbitMQ",
  description: "Publishes a message to an exchange of RabbitMQ.",
  settings: {
    ...serverAddress(5_671, "rabbit.example.com"),
    vhost: setting(ShortName("The virtual host"), "/"),
    exchange: setting(
      ShortName("The exchange. Empty: the default exchange, whose routing keys are the names of queues"),
      ""
    ),
    routing_key: setting(TemplateText(1_024), ""),
    mandatory: YesOrNo("Whether a message that no queue gets is a failure; false: the broker drops it", true),
    persistent: YesOrNo("Whether durable queues keep the message over a restart of the broker", true),
    ...serverConnection,
    ...pacing,
    ...concurrency
  },
  check: ({ exchange, routing_key }) =>
    exchange === "" && routing_key === ""
      ? [{ path: "config.routing_key", message: "is required without an exchange: the name of a queue" }]
      : [],
  auths: ["DATABASE_PASSWORD"],
  leadsTo: leadsToServer,
  credentials: "mask",
  perStep: { ...payloadPerStep("The body of the message"), address: serverPlace },
  example: {
    name: "orders-exchange",
    type: "RABBITMQ",
    config: {
      host: "rabbit.example.com",
      vhost: "shop",
      exchange: "orders",
      routing_key: "order.{{payload.type}}",
      auth_type: "DATABASE_PASSWORD",
      auth: { username: "tidegate", password: "a-password" }
    }
  },
  open: (config, { settings }) => {
    const key = template(config.routing_key)
    return {
      kind: "session",
      method: "PUBLISH",
      shownUrl: `${config.tls_mode === "disable" ? "amqp" : "amqps"}://${inUrl(config)}/${encodeURIComponent(config.vhost)}/${encodeURIComponent(config.exchange)}`,
      atOnce: messagesAtOnce(config.max_concurrency),
      connect: publishing({
        protocol: "amqp",
        place: { ...serverSignIn(config, settings), vhost: config.vhost, exchange: config.exchange },
        messageOf: (message, facts) => messageOf(message, facts, key, config),
        meanings,
        answer: () => ({ confirmed: true })
      })
    }
  }
})
