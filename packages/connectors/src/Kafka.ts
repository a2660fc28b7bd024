import { Schema } from "effect"
import { OneOf } from "@tidegate/model/AuthSettings"
import { loopHeader } from "@tidegate/model/HeaderRules"
import type { Message } from "@tidegate/model/Message"
import type { KafkaPlace, KafkaRecord } from "./Brokers.ts"
import { batching, batchLimits, type BatchMost, faultsOfBatches } from "./Batches.ts"
import { eventFields, lasting, maxAtOnce, type Meaning, messagesAtOnce, passing, publishing } from "./BrokerSession.ts"
import { type AttemptFacts, connector, payloadPerStep } from "./Connector.ts"
import { kafkaErrors } from "./KafkaErrors.ts"
import { type DeliveryTemplate, filled, filling, template, TemplateText, Unrenderable } from "./Rendering.ts"
import { inUrl, isAddress, serverConnection, textOf } from "./Server.ts"
import { concurrency, needed, pacing, setting, type SettingsOf, text } from "./Settings.ts"

const longestKey = 1_024
/** The limits of one request: as many records as may be under way, and the bytes that a topic accepts by default. */
const maxOfBatch: BatchMost = { maxCount: maxAtOnce, maxBytes: 1_000_000 }
const maxServers = 10
const longestServers = 2_048

/** The servers in `host:port,host:port`. Null: one of them is not a server. An IPv6 address has brackets. */
const serversIn = (written: string): ReadonlyArray<{ readonly host: string; readonly port: number }> | null => {
  const servers = written.split(",").map((one) => {
    const [, v6, name, port] = /^(?:\[([^\]]*)\]|([^:[\]]*)):(\d{1,5})$/.exec(one.trim()) ?? []
    return { host: v6 ?? name ?? "", port: Number(port) }
  })
  const areServers = servers.every(({ host, port }) => isAddress(host) && port >= 1 && port <= 65_535)
  return areServers && servers.length <= maxServers ? servers : null
}

const Servers = text
  .annotate({
    description: "Servers of the cluster, as host:port, with commas between them. They name the other brokers",
    examples: ["kafka-1.example.com:9093,kafka-2.example.com:9093"]
  })
  .check(
    Schema.makeFilter(
      (written: string) =>
        (written.length <= longestServers && serversIn(written) !== null) ||
        `must be 1 to ${maxServers} times host:port, with commas between them`,
      {
        toJsonSchema: () => ({
          maxLength: longestServers,
          pattern: String.raw`^\s*\S+:\d{1,5}\s*(?:,\s*\S+:\d{1,5}\s*)*$`
        })
      }
    )
  )

const notTopic = "must be the name of a topic: at most 249 letters, digits, dots, dashes and underscores"
const Topic = text
  .annotate({ description: "The topic, which the gateway does not make", examples: ["orders"] })
  .check(Schema.isPattern(/^(?!\.{1,2}$)[\w.-]{1,249}$/, { message: notTopic }))

const headersOf = (message: Message, facts: AttemptFacts): KafkaRecord["headers"] => {
  const given = (name: string): Readonly<Record<string, string>> => {
    const value = message.headers[name]
    return typeof value === "string" ? { [name.replace("-", "_")]: value } : {}
  }
  return {
    message_id: facts.webhookId,
    ...eventFields(facts),
    ...given("content-type"),
    ...given("content-encoding"),
    ...(facts.loop === undefined ? {} : { [loopHeader]: facts.loop })
  }
}

const keyOf = (message: Message, facts: AttemptFacts, key: DeliveryTemplate | null): string | null => {
  if (key === null) return facts.orderingKey
  const made = filled(filling(message, facts), key, "key")
  if (Buffer.byteLength(made) > longestKey) {
    throw new Unrenderable(`config.key makes more than ${longestKey} bytes of this event`)
  }
  return made
}

const notIn = (what: string): Meaning => passing(what, "AUTH_REJECTED")

/**
 * Errors with a meaning beyond "the broker has refused the record". Missing rights are not final, although Kafka's own clients give up after them:
 * somebody may grant the rights while retries last. An error that the broker itself cannot explain is not final either.
 */
const particular: Readonly<Record<string, Meaning>> = {
  SASL_AUTHENTICATION_FAILED: notIn("the cluster does not know the user or the password"),
  UNSUPPORTED_SASL_MECHANISM: notIn("the broker does not offer config.sasl_mechanism"),
  ILLEGAL_SASL_STATE: notIn("the broker wants no sign-in, or another one"),
  TOPIC_AUTHORIZATION_FAILED: notIn("the user may not write to the topic"),
  CLUSTER_AUTHORIZATION_FAILED: notIn("the user may not write as an idempotent producer"),
  UNKNOWN_SERVER_ERROR: passing("the broker has failed, and does not say why"),
  UNSUPPORTED_VERSION: passing("the broker does not speak this version of the protocol"),
  UNKNOWN_TOPIC_OR_PARTITION: passing("there is no such topic, or the user may not see it"),
  LEADER_NOT_AVAILABLE: passing("the partition has no leader now"),
  NOT_ENOUGH_REPLICAS: passing("fewer replicas than needed are in sync"),
  NOT_ENOUGH_REPLICAS_AFTER_APPEND: passing("fewer replicas than needed are in sync"),
  REQUEST_TIMED_OUT: passing("the replicas had not all kept the record in time"),
  OUT_OF_ORDER_SEQUENCE_NUMBER: passing("the cluster does not know the records before this one"),
  INVALID_PRODUCER_EPOCH: passing("the cluster does not know the gateway as a producer any more"),
  INVALID_PRODUCER_ID_MAPPING: passing("the cluster does not know the gateway as a producer any more"),
  UNKNOWN_PRODUCER_ID: passing("the cluster does not know the gateway as a producer any more"),
  MESSAGE_TOO_LARGE: lasting("the record is larger than the topic takes"),
  RECORD_LIST_TOO_LARGE: lasting("the record is larger than the broker takes"),
  INVALID_RECORD: lasting("the topic does not take such a record, for example one without a key")
}

const meanings: Readonly<Record<string, Meaning>> = {
  ...Object.fromEntries(
    kafkaErrors.map(({ isRetriable, name }) => [
      name,
      isRetriable ? passing("the cluster cannot take the record now") : lasting("the broker has refused the record")
    ])
  ),
  ...particular
}

/** The settings that name a topic, and how the gateway signs in at its cluster. */
export const kafkaTopic = {
  bootstrap_servers: needed(Servers, "servers of the cluster, as host:port"),
  topic: needed(Topic, "the name of the topic"),
  sasl_mechanism: setting(
    OneOf(["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"]).annotate({
      description: "How the user signs in. With SCRAM the brokers do not get the password"
    }),
    "SCRAM-SHA-512"
  )
}

type TopicSettings = SettingsOf<typeof kafkaTopic & typeof serverConnection>

/** Where the settings send the credentials. */
export const leadsToCluster = ({ bootstrap_servers, sasl_mechanism, tls_mode }: TopicSettings): string =>
  `${bootstrap_servers}${sasl_mechanism === "PLAIN" ? " by PLAIN" : ""}${tls_mode === "disable" ? " in the clear" : ""}`

export const kafkaPlace = (
  { bootstrap_servers, connect_timeout, sasl_mechanism, tls_mode, topic }: TopicSettings,
  { password, username }: { readonly [setting: string]: unknown }
): KafkaPlace => ({
  servers: serversIn(bootstrap_servers)!,
  topic,
  mechanism: sasl_mechanism,
  username: textOf(username),
  password: textOf(password),
  tls: tls_mode === "verify-full",
  connectTimeout: connect_timeout
})

/** Publishes records to a topic of Kafka. */
export const kafka = connector({
  type: "KAFKA",
  name: "Apache Kafka",
  description: "Publishes a record to a topic of Kafka.",
  settings: {
    bootstrap_servers: kafkaTopic.bootstrap_servers,
    topic: kafkaTopic.topic,
    key: setting(
      TemplateText(1_024).annotate({
        description:
          "Records with the same key are in one partition, in their order. Null: the ordering key of the connection, or none"
      }),
      null
    ),
    sasl_mechanism: kafkaTopic.sasl_mechanism,
    ...batching,
    ...serverConnection,
    ...pacing,
    ...concurrency
  },
  check: (settings) => faultsOfBatches(settings, maxOfBatch),
  auths: ["DATABASE_PASSWORD", "NO_AUTH"],
  leadsTo: leadsToCluster,
  credentials: "mask",
  perStep: {
    ...payloadPerStep("The value of the record"),
    address: ["bootstrap_servers", "tls_mode", "sasl_mechanism"]
  },
  example: {
    name: "orders-topic",
    type: "KAFKA",
    config: {
      bootstrap_servers: "kafka-1.example.com:9093,kafka-2.example.com:9093",
      topic: "orders",
      key: "{{payload.customer_id}}",
      auth_type: "DATABASE_PASSWORD",
      auth: { username: "tidegate", password: "a-password" }
    }
  },
  open: (config, { settings }) => {
    const key = config.key === null ? null : template(config.key)
    const batch = batchLimits(config, maxOfBatch)
    const place = { ...kafkaPlace(config, settings), batch }
    return {
      kind: "session",
      method: "PRODUCE",
      shownUrl: `kafka://${inUrl(place.servers[0]!)}/${config.topic}`,
      // The partitions of a topic fill their batches at the same time.
      atOnce: messagesAtOnce(config.max_concurrency ?? (batch === null ? null : maxAtOnce)),
      connect: publishing({
        protocol: "kafka",
        place,
        messageOf: (message, facts) => ({
          key: keyOf(message, facts, key),
          headers: headersOf(message, facts),
          value: message.body
        }),
        meanings,
        // `{partition} {offset}`. If the broker already had the record, it may no longer know the offset.
        answer: (said) => {
          const [partition, offset] = said.split(" ")
          return {
            topic: config.topic,
            partition: Number(partition),
            offset: offset === undefined ? null : Number(offset)
          }
        }
      })
    }
  }
})
