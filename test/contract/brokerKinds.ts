import { FakeJetStream } from "../../packages/foreign-databases/test/FakeJetStream.ts"
import { FakeKafkaTopics } from "../../packages/foreign-databases/test/FakeKafkaTopics.ts"
import { FakePubSub } from "../../packages/foreign-databases/test/FakePubSub.ts"
import { type FakeMessage, FakeRabbit, type Queue } from "../../packages/foreign-databases/test/FakeRabbit.ts"
import { FakeRedis } from "../../packages/foreign-databases/test/FakeRedis.ts"
import { FakeSqs } from "../../packages/foreign-databases/test/FakeSqs.ts"

export interface FakeBroker {
  readonly queue: (name: string) => Queue
  readonly publish: (queue: string, ...messages: ReadonlyArray<FakeMessage>) => void
  /** Cuts all connections. */
  readonly cut: () => void
  readonly close: () => Promise<void>
}

/** A broker, and a source in one of its queues. */
export interface Kind<B extends FakeBroker = FakeBroker> {
  readonly type: string
  readonly start: () => Promise<B>
  /** How the broker learns of a message that is of no use; absent: it is rejected. */
  readonly rejects?: "deletes" | "acknowledges"
  /** Messages that are under way at once, those of a dead process included. */
  readonly most?: number
  /** The settings that name a queue. */
  readonly queue: (broker: B, name: string) => Record<string, string>
  /** Other settings of a subscription. */
  readonly settings: (broker: B) => object
  readonly authType: string
  readonly auth: (broker: B) => Record<string, string>
  readonly wrongAuth: (broker: B) => Record<string, string>
  /** A change that leads to another address. */
  readonly elsewhere: Record<string, string>
  /** What the request of a message has as headers, beside those of the message. */
  readonly facts: object
}

const kind = <B extends FakeBroker>(row: Kind<B>): Kind => row as unknown as Kind

const wrong = () => ({ username: "tidegate", password: "wrong-password" })
const server = ({ port }: { readonly port: number }) => ({ host: "127.0.0.1", port, tls_mode: "disable", prefetch: 20 })
const signIn = ({ password }: { readonly password: string }) => ({ username: "tidegate", password })

/** A row for each type of source that reads a broker. */
export const kinds: ReadonlyArray<Kind> = [
  kind({
    type: "RABBITMQ",
    start: () => FakeRabbit.start(),
    queue: (_, queue) => ({ queue }),
    settings: server,
    authType: "BASIC_AUTH",
    auth: signIn,
    wrongAuth: wrong,
    elsewhere: { host: "127.0.0.2" },
    facts: {
      "x-gateway-message-id": "m1",
      "x-gateway-exchange": "orders",
      "x-gateway-routing-key": "order.paid"
    }
  }),
  kind({
    type: "NATS_JETSTREAM",
    start: () => FakeJetStream.start(),
    queue: (_, stream) => ({ stream, consumer: "tidegate" }),
    settings: server,
    authType: "BASIC_AUTH",
    auth: signIn,
    wrongAuth: wrong,
    elsewhere: { host: "127.0.0.2" },
    facts: { "x-gateway-message-id": "orders.1.1700000000000000000", "x-gateway-subject": "order.paid" }
  }),
  kind({
    type: "AWS_SQS",
    start: () => FakeSqs.start(),
    rejects: "deletes",
    // What a dead process has received stays under way until its time is over.
    most: 40,
    queue: (service, name) => ({ queue_url: service.url(name) }),
    settings: () => ({ region: "eu-central-1", visibility_timeout: 10 }),
    authType: "AWS_ACCESS_KEY",
    auth: ({ keyId }) => ({ access_key_id: keyId, secret_access_key: "a-secret-of-a-key" }),
    wrongAuth: () => ({ access_key_id: "AKIA9999999999999999", secret_access_key: "a-secret-of-a-key" }),
    elsewhere: { queue_url: "http://127.0.0.2:1/123456789012/orders" },
    facts: { "x-gateway-message-id": "m1", "x-gateway-message-group-id": "order.paid" }
  }),
  kind({
    type: "REDIS_STREAM",
    start: () => FakeRedis.start(),
    rejects: "acknowledges",
    queue: (_, stream) => ({ stream }),
    settings: server,
    authType: "BASIC_AUTH",
    auth: signIn,
    wrongAuth: wrong,
    elsewhere: { host: "127.0.0.2" },
    facts: { "x-gateway-message-id": "orders:1-0", "x-gateway-stream": "orders" }
  }),
  kind({
    type: "KAFKA",
    start: () => FakeKafkaTopics.start(),
    rejects: "acknowledges",
    queue: (_, topic) => ({ topic }),
    settings: ({ port }) => ({
      bootstrap_servers: `127.0.0.1:${port}`,
      tls_mode: "disable",
      prefetch: 20,
      sasl_mechanism: "PLAIN",
      auto_offset_reset: "earliest"
    }),
    authType: "BASIC_AUTH",
    auth: signIn,
    wrongAuth: wrong,
    elsewhere: { bootstrap_servers: "127.0.0.2:9092" },
    facts: {
      "x-gateway-message-id": "cluster:orders:0:0:1700000000000",
      "x-gateway-topic": "orders",
      "x-gateway-partition": "0",
      "x-gateway-offset": "0",
      "x-gateway-key": "order.paid"
    }
  }),
  kind({
    type: "GCP_PUBSUB",
    start: () => FakePubSub.start(),
    rejects: "acknowledges",
    // What a dead process has pulled stays under way until its deadline.
    most: 40,
    queue: (_, name) => ({ subscription_id: name }),
    settings: ({ origin }) => ({ project_id: "my-shop", endpoint: origin, prefetch: 20 }),
    authType: "SERVICE_ACCOUNT",
    auth: (service) => service.auth(),
    wrongAuth: (service) => service.auth("stranger@project.example"),
    elsewhere: { endpoint: "http://127.0.0.2:1" },
    facts: { "x-gateway-message-id": "orders/m1", "x-gateway-ordering-key": "order.paid" }
  })
]
