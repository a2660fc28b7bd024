import { Schema } from "effect"
import { Timestamp } from "./Timestamp.ts"

/** The types of sources whose requests are messages of a broker. */
export const brokerTypes = ["RABBITMQ", "NATS_JETSTREAM", "AWS_SQS", "REDIS_STREAM", "KAFKA", "GCP_PUBSUB"] as const
export type BrokerType = (typeof brokerTypes)[number]

/** How the gateway signs in at a broker, beside BASIC_AUTH: these are types of `auth` of destinations, too. */
export const brokerAuthTypes = ["NATS_TOKEN", "NATS_NKEY", "AWS_ACCESS_KEY", "SERVICE_ACCOUNT"] as const
export type BrokerAuthType = "BASIC_AUTH" | (typeof brokerAuthTypes)[number]

/** The headers of a request that was a message: what its broker says of it. */
export const messageIdHeader = "x-gateway-message-id"
export const exchangeHeader = "x-gateway-exchange"
export const routingKeyHeader = "x-gateway-routing-key"
export const subjectHeader = "x-gateway-subject"
export const streamHeader = "x-gateway-stream"
export const topicHeader = "x-gateway-topic"
export const partitionHeader = "x-gateway-partition"
export const offsetHeader = "x-gateway-offset"
export const keyHeader = "x-gateway-key"
export const messageGroupHeader = "x-gateway-message-group-id"
export const orderingKeyHeader = "x-gateway-ordering-key"

/** The largest message of a broker, in bytes, that becomes a request. */
export const maxMessageBody = 1_048_576

/** Whether the gateway is subscribed, as a source of a broker shows it. */
export const SubscriptionStatus = Schema.Literals(["connecting", "connected", "failing", "disabled"])
export type SubscriptionStatus = typeof SubscriptionStatus.Type

/** How the subscription of a source is doing, and what became of its messages. */
export const SubscriptionState = Schema.Struct({
  status: SubscriptionStatus.annotate({
    description: "failing: the last connection could not be made, or has ended; the gateway tries again by itself"
  }),
  connected_at: Schema.NullOr(Timestamp).annotate({ description: "Since when it is connected; null: it is not" }),
  last_error: Schema.NullOr(Schema.String).annotate({
    description: "Why the last connection could not be made or has ended; it stays until the next change of the source"
  }),
  last_error_at: Schema.NullOr(Timestamp),
  last_message_at: Schema.NullOr(Timestamp).annotate({ description: "When a message was last dealt with" }),
  stored_count: Schema.Int.annotate({ description: "Messages that have become requests" }),
  duplicate_count: Schema.Int.annotate({
    description: "Messages that came again after their request had been stored: they made no second one"
  }),
  rejected_count: Schema.Int.annotate({
    description: "Messages that could not become requests: the broker was told to give them to nobody any more"
  }),
  last_rejection: Schema.NullOr(Schema.String).annotate({ description: "Why the last of these could not" })
}).annotate({ identifier: "SubscriptionState" })
export interface SubscriptionState extends Schema.Schema.Type<typeof SubscriptionState> {}
