import { Context, type Effect, type Scope } from "effect"
import type { SigningKey } from "@tidegate/outbound-auth/AwsSignature"
import type { BrokerRefusal, KafkaPlace, NatsServer, RedisDatabase } from "./Brokers.ts"
import type { SessionFailure } from "./Failure.ts"
import type { ServerSignIn } from "./Server.ts"

/** A message of a broker that is not settled yet. */
export interface Received {
  /** The number of this delivery of the message in its subscription. */
  readonly receipt: number
  /** The same each time that the broker delivers the message; null: the message has none. */
  readonly id: string | null
  readonly contentType: string | null
  readonly contentEncoding: string | null
  /** What the broker reports about the message, as headers of the gateway. */
  readonly facts: Readonly<Record<string, string>>
  /** The message's own headers, as their sender has written them. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>
  /** Null: it is too large, and its bytes were dropped as they arrived. */
  readonly body: Uint8Array | null
  readonly size: number
}

/** What the broker is told of messages. */
export interface Settled {
  /** Acknowledges messages that are stored, so the broker forgets them. */
  readonly stored: ReadonlyArray<number>
  /**
   * Rejects messages that can never be stored. The broker does not deliver them again, and moves them to a dead-letter queue if the queue has one.
   */
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
  /** How many messages the broker delivers before the first of them is settled. */
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
  /** After how many seconds a message that was not deleted is delivered again. */
  readonly visibilityTimeout: number
  readonly connectTimeout: number
}

/**
 * Returns the token for the next call of a subscription, which may last longer than any token. `refused`: the token that the service has refused;
 * then the result is another token. Null: there is none, or it is too early to ask for a new one. Never rejects.
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
  /** Where a missing group begins when it is created. Null: a missing group is not created. */
  readonly createAt: "oldest" | "newest" | null
  /** The field that becomes the body. An entry without it becomes a JSON object with all of its fields. */
  readonly bodyField: string
  /** After how many seconds an entry is taken over that another consumer of the group received and did not acknowledge. */
  readonly claimAfter: number
  /** How many entries are read before the first of them is settled. */
  readonly prefetch: number
}

/** A member of a consumer group that reads a topic of Kafka. */
export interface KafkaMember extends KafkaPlace {
  readonly group: string
  /** Where reading starts in a partition if the group has no offset for it, or an offset that the topic no longer has. */
  readonly offsetReset: "earliest" | "latest"
  /** How many records are read before the first of them is settled. */
  readonly prefetch: number
}

/** The protocols, each with the settings of its subscription. A new protocol is one line here. */
export interface SubscriptionPlaces {
  readonly amqp: AmqpQueue
  readonly nats: NatsStreamConsumer
  readonly sqs: SqsQueue
  readonly redis: RedisStreamConsumer
  readonly kafka: KafkaMember
  readonly pubsub: PubSubSubscription
}

export type SubscriptionProtocol = keyof SubscriptionPlaces

/** Subscribes to external message brokers. */
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
