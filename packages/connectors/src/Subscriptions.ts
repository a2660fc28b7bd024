import { Context, type Effect, type Scope } from "effect"
import type { SigningKey } from "@tidegate/outbound-auth/AwsSignature"
import type { BrokerRefusal, KafkaPlace, NatsServer, RedisDatabase } from "./Brokers.ts"
import type { SessionFailure } from "./Failure.ts"
import type { ServerSignIn } from "./Server.ts"

/** A message of a broker that nobody has settled yet. */
export interface Received {
  /** The number of this delivery of the message in its subscription. */
  readonly receipt: number
  /** The same each time that the broker delivers the message; null: the message has none. */
  readonly id: string | null
  readonly contentType: string | null
  readonly contentEncoding: string | null
  /** What the broker says of the message, by headers of the gateway. */
  readonly facts: Readonly<Record<string, string>>
  /** The message's own headers, as their sender has written them. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>
  /** Null: it is too large, and its bytes were dropped as they arrived. */
  readonly body: Uint8Array | null
  readonly size: number
}

/** What the broker is told of messages. */
export interface Settled {
  /** They are stored: the broker forgets them. */
  readonly stored: ReadonlyArray<number>
  /** They can never be stored: the broker gives them to nobody any more, and dead-letters them where the queue says so. */
  readonly rejected: ReadonlyArray<number>
}

/** A subscription that is connected. A message that is not settled when it ends is delivered again by the broker. */
export interface Subscription {
  /** Waits for messages: at least one, and no more than fit into the memory of a subscription. Fails when the connection has ended. */
  readonly take: Effect.Effect<ReadonlyArray<Received>, BrokerRefusal | SessionFailure>
  readonly settle: (settled: Settled) => Effect.Effect<void, BrokerRefusal | SessionFailure>
}

/** A queue of a broker that speaks AMQP 0-9-1. */
export interface AmqpQueue extends ServerSignIn {
  readonly vhost: string
  readonly queue: string
  /** Messages that the broker delivers before the first of them is settled. */
  readonly prefetch: number
}

/** A consumer of a stream of NATS JetStream from which messages are pulled. */
export interface NatsStreamConsumer extends NatsServer {
  readonly stream: string
  readonly consumer: string
  /** Messages that are pulled before the first of them is settled. */
  readonly prefetch: number
}

/** A queue of Amazon SQS. */
export interface SqsQueue {
  readonly queueUrl: string
  readonly region: string
  readonly key: SigningKey
  /** Seconds, after which a message is delivered again that was not deleted. */
  readonly visibilityTimeout: number
  readonly connectTimeout: number
}

/**
 * Gives the token for the next call of a subscription, which may last longer than any token. `refused`: the one that the service does not take;
 * then another one, or null: there is none, or it is too soon to ask for it. Does not reject.
 */
export type Bearer = (refused: string | null) => Promise<string | SessionFailure | null>

/** A subscription of Google Cloud Pub/Sub. */
export interface PubSubSubscription {
  readonly origin: string
  readonly projectId: string
  readonly subscriptionId: string
  /** Null: the service asks for no token. */
  readonly bearer: Bearer | null
  /** Messages that are pulled before the first of them is settled. */
  readonly prefetch: number
  readonly connectTimeout: number
}

/** A consumer of a group that reads a stream of Redis. */
export interface RedisStreamConsumer extends RedisDatabase {
  readonly stream: string
  readonly group: string
  readonly consumer: string
  /** Where a group begins that is made because it is not there; null: none is made. */
  readonly createAt: "oldest" | "newest" | null
  /** The field that becomes the body. An entry without it becomes a JSON object with all of its fields. */
  readonly bodyField: string
  /** Seconds, after which an entry is taken over that another consumer of the group was given and has not acknowledged. */
  readonly claimAfter: number
  /** Entries that are read before the first of them is settled. */
  readonly prefetch: number
}

/** A member of a consumer group that reads a topic of Kafka. */
export interface KafkaMember extends KafkaPlace {
  readonly group: string
  /** Where a partition begins of which the group has no offset, or one that the topic does not have any more. */
  readonly offsetReset: "earliest" | "latest"
  /** Records that are read before the first of them is settled. */
  readonly prefetch: number
}

/** The protocols, and to what one subscribes by them. A new protocol is a line here. */
export interface SubscriptionPlaces {
  readonly amqp: AmqpQueue
  readonly nats: NatsStreamConsumer
  readonly sqs: SqsQueue
  readonly redis: RedisStreamConsumer
  readonly kafka: KafkaMember
  readonly pubsub: PubSubSubscription
}

export type SubscriptionProtocol = keyof SubscriptionPlaces

/** Subscribes to the message brokers of others. */
export class Subscriptions extends Context.Service<
  Subscriptions,
  {
    /** Connects, signs in and subscribes. The connection ends with the scope. */
    readonly open: <P extends SubscriptionProtocol>(
      protocol: P,
      place: SubscriptionPlaces[P]
    ) => Effect.Effect<Subscription, BrokerRefusal | SessionFailure, Scope.Scope>
  }
>()("@tidegate/connectors/Subscriptions") {}
