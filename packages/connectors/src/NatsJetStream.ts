import { Schema } from "effect"
import { loopHeader } from "@tidegate/model/HeaderRules"
import type { Message } from "@tidegate/model/Message"
import type { NatsMessage, NatsServer } from "./Brokers.ts"
import { eventFields, lasting, type Meaning, messagesAtOnce, passing, publishing } from "./BrokerSession.ts"
import { type AttemptFacts, connector, payloadPerStep } from "./Connector.ts"
import { filled, filling, template, TemplateText, Unrenderable } from "./Rendering.ts"
import { inUrl, leadsToServer, serverAddress, serverConnection, serverPlace, serverSignIn, textOf } from "./Server.ts"
import { concurrency, type FieldErrors, needed, pacing, setting, text } from "./Settings.ts"

const longestSubject = 255

/** How one connects to a NATS server. */
export const natsConnection = {
  ...serverConnection,
  tls_first: setting(
    Schema.Boolean.annotate({ description: "Whether TLS begins before the server's greeting (handshake_first)" }),
    false,
    "must be true or false"
  )
}

interface Connection {
  readonly tls_mode: string
  readonly tls_first: boolean
}

export const faultsOfTls = ({ tls_first, tls_mode }: Connection): FieldErrors =>
  tls_first && tls_mode === "disable" ? [{ path: "config.tls_first", message: "must be false without TLS" }] : []

export const natsPlace = (
  config: Parameters<typeof serverSignIn>[0] & Connection,
  auth: { readonly [setting: string]: unknown }
): NatsServer => ({
  ...serverSignIn(config, auth),
  tlsFirst: config.tls_first,
  token: textOf(auth["token"]),
  seed: textOf(auth["seed"]),
  jwt: textOf(auth["jwt"])
})

const notStream = "must be the name of a stream: at most 255 characters without spaces, . * > / and \\"
const StreamName = text
  .annotate({ description: "The stream that must take the message; empty: any" })
  .check(Schema.isPattern(/^[^\s\p{Cc}.*>/\\]{0,255}$/u, { message: notStream }))

/** Words between dots. */
const subjectForm = /^[^\s\p{Cc}.*>]+(?:\.[^\s\p{Cc}.*>]+)*$/u

/**
 * The result of a template may contain values from senders. Messages to the server's own subjects would be commands, for example to delete a stream.
 */
const isReserved = (subject: string): boolean => subject.startsWith("$") || subject.startsWith("_")

const subjectOf = (subject: string): string => {
  const fault = !subjectForm.test(subject)
    ? "no subject of this event: spaces, * and >, and a dot without a word on each side, are not allowed"
    : isReserved(subject)
      ? "a subject of the server itself of this event: it begins with $ or _"
      : Buffer.byteLength(subject) > longestSubject
        ? `more than ${longestSubject} bytes of this event`
        : null
  if (fault !== null) throw new Unrenderable(`config.subject makes ${fault}`)
  return subject
}

const headersOf = (message: Message, facts: AttemptFacts, stream: string): NatsMessage["headers"] => {
  const contentType = message.headers["content-type"]
  return {
    // The stream keeps one message with this id within its window for duplicates.
    "Nats-Msg-Id": facts.webhookId,
    ...(stream === "" ? {} : { "Nats-Expected-Stream": stream }),
    ...(typeof contentType === "string" && /^[\x20-\x7e]{1,255}$/.test(contentType)
      ? { content_type: contentType }
      : {}),
    ...eventFields(facts),
    ...(facts.loop === undefined ? {} : { [loopHeader]: facts.loop })
  }
}

/** By the error code of JetStream, or by one of the names that the publisher gives to the server's errors. */
const meanings: Readonly<Record<string, Meaning>> = {
  AUTHORIZATION: passing("the server does not let the destination in", "AUTH_REJECTED"),
  PERMISSIONS: passing("the user may not publish to this subject, or not get the confirmation", "AUTH_REJECTED"),
  PAYLOAD: lasting("the message is larger than the server takes"),
  NO_RESPONDERS: passing("no stream takes this subject"),
  NO_STREAM: passing("what answers this subject is no stream"),
  "10023": passing("the server has no room for the message"),
  "10039": passing("JetStream is off for this account"),
  "10047": passing("the server has no room for the message"),
  "10054": lasting("the message is larger than the stream takes"),
  "10060": passing("another stream than config.stream takes this subject"),
  "10076": passing("JetStream is off at this server"),
  "10077": passing("the stream could not keep the message, for example because it is full")
}

/** Publishes messages to streams of NATS. */
export const natsJetStream = connector({
  type: "NATS_JETSTREAM",
  name: "NATS JetStream",
  description: "Publishes a message to a stream of NATS JetStream.",
  settings: {
    ...serverAddress(4_222, "nats.example.com"),
    subject: needed(TemplateText(1_024), "the subject of the message"),
    stream: setting(StreamName, ""),
    ...natsConnection,
    ...pacing,
    ...concurrency
  },
  check: faultsOfTls,
  auths: ["DATABASE_PASSWORD", "NATS_TOKEN", "NATS_NKEY", "NO_AUTH"],
  leadsTo: leadsToServer,
  credentials: "mask",
  perStep: { ...payloadPerStep("The body of the message"), address: serverPlace },
  example: {
    name: "orders-stream",
    type: "NATS_JETSTREAM",
    config: {
      host: "nats.example.com",
      subject: "orders.{{payload.type}}",
      stream: "ORDERS",
      auth_type: "DATABASE_PASSWORD",
      auth: { username: "tidegate", password: "a-password" }
    }
  },
  open: (config, { settings }) => {
    const subject = template(config.subject)
    const place = natsPlace(config, settings)
    return {
      kind: "session",
      method: "PUBLISH",
      shownUrl: `${config.tls_mode === "disable" ? "nats" : "tls"}://${inUrl(config)}/${encodeURIComponent(config.stream)}`,
      atOnce: messagesAtOnce(config.max_concurrency),
      connect: publishing({
        protocol: "nats",
        place,
        secrets: [place.password, place.token, place.seed, place.jwt],
        messageOf: (message, facts) => ({
          subject: subjectOf(filled(filling(message, facts), subject, "subject")),
          headers: headersOf(message, facts, config.stream),
          body: message.body
        }),
        meanings,
        // `{stream} {number}`, and whether the stream had the message already.
        answer: (said) => {
          const [stream = "", sequence = "", duplicate] = said.split(" ")
          return { stream, sequence: Number(sequence), duplicate: duplicate !== undefined }
        }
      })
    }
  }
})
