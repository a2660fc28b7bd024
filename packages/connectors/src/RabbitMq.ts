import { Effect, Schema } from "effect"
import type { AttemptErrorCode } from "@tidegate/model/AttemptErrorCode"
import type { Message } from "@tidegate/model/Message"
import { type AmqpMessage, type BrokerRefusal, Brokers } from "./Brokers.ts"
import { type Answer, type AttemptFacts, connector, payloadPerStep, type Session } from "./Connector.ts"
import { SessionFailure } from "./Failure.ts"
import { type DeliveryTemplate, filling, template, TemplateText, Unrenderable } from "./Rendering.ts"
import { inUrl, leadsToServer, serverAddress, serverConnection, serverPlace, serverSignIn } from "./Server.ts"
import { refusalText } from "./ServerWords.ts"
import { concurrency, pacing, setting, text } from "./Settings.ts"

/** Messages under way of a destination: the default and the maximum. */
const usualAtOnce = 50
const maxAtOnce = 200

/** The protocol writes the length of a short text in one byte. */
const longestShort = 255

const isShort = (written: string): boolean => Buffer.byteLength(written) <= longestShort

const notName = "must be a name of at most 255 bytes without control characters"
const Name = (description: string) =>
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
  settings: { readonly persistent: boolean; readonly mandatory: boolean }
): AmqpMessage | SessionFailure => {
  const unrenderable = (why: string) =>
    new SessionFailure({ code: "TEMPLATE_ERROR", message: why, final: true, broken: false })
  let routingKey: string
  try {
    routingKey = filling(message, facts)(key).toWellFormed()
  } catch (fault) {
    if (fault instanceof Unrenderable) return unrenderable(fault.message)
    throw fault
  }
  if (!isShort(routingKey)) return unrenderable("config.routing_key makes more than 255 bytes of this event")
  return {
    ...settings,
    id: facts.webhookId,
    routingKey,
    contentType: property(message.headers["content-type"]),
    contentEncoding: property(message.headers["content-encoding"]),
    headers: {
      event_id: facts.eventId,
      request_id: facts.requestId,
      source_id: facts.sourceId,
      connection_id: facts.connectionId,
      destination_id: facts.destinationId,
      attempt_number: String(facts.attemptNumber),
      created_at: new Date(facts.createdAt).toISOString()
    },
    body: message.body
  }
}

interface Meaning {
  readonly code: AttemptErrorCode
  readonly final: boolean
  readonly what: string
}

/** Not final, because the credentials, the exchange or the queue may be repaired while retries last. */
const passing = (what: string, code: AttemptErrorCode = "BAD_RESPONSE"): Meaning => ({ code, final: false, what })

/** By the reply code of AMQP. `NACK` and `BLOCKED` are the broker's other ways to refuse. */
const meanings: Readonly<Record<string, Meaning>> = {
  "311": { code: "BAD_RESPONSE", final: true, what: "the message is too large for the broker" },
  "312": passing("no queue gets a message with this routing key"),
  "313": passing("no consumer gets a message with this routing key"),
  "320": passing("the broker has closed the connection", "SOCKET_CLOSED"),
  "402": passing("there is no such virtual host"),
  "403": passing("the broker does not let the destination in", "AUTH_REJECTED"),
  "404": passing("there is no such exchange"),
  "406": { code: "BAD_RESPONSE", final: true, what: "the broker does not take such a message" },
  "530": passing("the virtual host is not there, or the user may not use it", "AUTH_REJECTED"),
  NACK: passing("the broker could not keep the message, for example because a queue is full"),
  BLOCKED: passing("the broker takes no messages now, because its memory or its disk is full")
}

const unknown = passing("the broker has refused the message")

const failureOf = ({ code, said, shared }: BrokerRefusal, secret: string): SessionFailure => {
  const meaning = meanings[code] ?? unknown
  return new SessionFailure({
    code: meaning.code,
    message: refusalText(meaning.what, code, said, secret),
    // The broker closes the channel without naming the message: others under way were not refused.
    final: meaning.final && !shared,
    broken: false
  })
}

const confirmed: Answer = {
  status: 200,
  headers: { "content-type": "application/json" },
  body: Buffer.from('{"confirmed":true}'),
  bodyTruncated: false
}

/** Publishes messages to an exchange of RabbitMQ, by AMQP 0-9-1. */
export const rabbitMq = connector({
  type: "RABBITMQ",
  description: "Publishes a message to an exchange of RabbitMQ.",
  settings: {
    ...serverAddress(5_671, "rabbit.example.com"),
    vhost: setting(Name("The virtual host"), "/"),
    exchange: setting(
      Name("The exchange. Empty: the default exchange, whose routing keys are the names of queues"),
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
    const signIn = serverSignIn(config, settings)
    const key = template(config.routing_key)
    return {
      kind: "session",
      method: "PUBLISH",
      shownUrl: `${config.tls_mode === "disable" ? "amqp" : "amqps"}://${inUrl(config)}/${encodeURIComponent(config.vhost)}/${encodeURIComponent(config.exchange)}`,
      atOnce: Math.min(config.max_concurrency ?? usualAtOnce, maxAtOnce),
      connect: Effect.gen(function* () {
        const brokers = yield* Brokers
        const publish = yield* brokers.open("amqp", {
          ...signIn,
          vhost: config.vhost,
          exchange: config.exchange
        })
        const send: Session["send"] = (message, facts, mayStart) => {
          const made = messageOf(message, facts, key, config)
          if (made instanceof SessionFailure) return Effect.fail(made)
          return publish(made, mayStart).pipe(
            Effect.as(confirmed),
            Effect.mapError((failure) =>
              failure._tag === "BrokerRefusal" ? failureOf(failure, signIn.password) : failure
            )
          )
        }
        return { send }
      })
    }
  }
})
