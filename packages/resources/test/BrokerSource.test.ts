import { describe, expect, it } from "@effect/vitest"
import { generateKeyPairSync } from "node:crypto"
import { Result, type Schema } from "effect"
import { brokerSources } from "@tidegate/connectors/BrokerSources"
import { brokerTypes } from "@tidegate/model/BrokerSource"
import { maskSecret } from "@tidegate/redaction/Masking"
import { source, type SourceFields } from "../src/Source.ts"
import * as Written from "./written.ts"

const id = "src_01kaxg3j7qzfn8m4s2v6w9t5bc"
const created = (input: Schema.Json) => Result.getOrThrow(Written.created(source, input))
const changed = (stored: SourceFields, input: Schema.Json) => Written.changed(source, stored, input, { id })
const updated = (stored: SourceFields, input: Schema.Json) => Result.getOrThrow(changed(stored, input))
const refused = (input: Schema.Json) => Written.faults(Written.created(source, input))
const refusedChange = (stored: SourceFields, input: Schema.Json) => Written.faults(changed(stored, input))

const auth = { username: "tidegate", password: "a-long-password" }
const of = (subscription: Schema.Json, config: Schema.JsonObject = { auth }) => ({
  name: "orders",
  type: "RABBITMQ",
  config: Object.assign({ subscription }, config)
})
const place = { host: "rabbit.example.com", queue: "orders" }
const orders = created(of(place))

const complete = {
  ...place,
  port: 5_671,
  vhost: "/",
  prefetch: 50,
  tls_mode: "verify-full",
  connect_timeout: 10
}

describe("Source of a broker", () => {
  it("Every type of source of a broker has one row with an example that can be written", () => {
    expect(brokerSources.map(({ type }) => type)).toEqual([...brokerTypes])
    for (const { example, type } of brokerSources) {
      expect(created({ name: "x", type, config: example }).config.subscription).toMatchObject(example.subscription)
    }
  })

  it("A source of a broker is stored with the defaults of what is omitted, and signs in with its auth", () => {
    expect(orders).toMatchObject({
      type: "RABBITMQ",
      config: { auth_type: "BASIC_AUTH", subscription: complete, mode: "webhook" },
      auth
    })
  })

  it("All invalid settings of a subscription are reported at once", () => {
    const subscription = { host: "a b", prefetch: 1_000, tls_mode: "maybe" }
    expect(refused(of(subscription, { auth, rate_limit: 5 })).toSorted()).toEqual([
      "config.rate_limit: has no effect on a source of type RABBITMQ: nobody can send to it",
      "config.subscription.host: must be a host name or an IP address, without a port",
      "config.subscription.prefetch: must be a whole number from 1 to 200",
      "config.subscription.queue: is required: the name of a queue",
      "config.subscription.tls_mode: must be one of verify-full, disable"
    ])
    expect(refused({ name: "x", type: "RABBITMQ", config: { auth } })).toEqual([
      "config.subscription: is required: the source is of type RABBITMQ"
    ])
  })

  it("A source of a broker needs credentials of its kind", () => {
    expect(refused(of(place, {}))).toEqual(["config.auth: is required: how the gateway signs in at the broker"])
    expect(refused(of(place, { auth: { username: "a" } }))).toEqual(["config.auth.password: is required"])
    expect(refused(of(place, { auth_type: "API_KEY", auth: { api_key: "k" } }))).toEqual([
      "config.auth_type: must be BASIC_AUTH"
    ])
    expect(refusedChange(orders, { config: { auth_type: null } })).toHaveLength(1)
  })

  it("A broker that knows several kinds of credentials wants their kind named, takes none too, and keeps them with their address", () => {
    const stream = { host: "nats.example.com", stream: "ORDERS", consumer: "tidegate" }
    const nats = (config: Schema.JsonObject) => ({
      name: "x",
      type: "NATS_JETSTREAM",
      config: Object.assign({ subscription: stream }, config)
    })
    const token = { auth_type: "NATS_TOKEN", auth: { token: "a-long-token" } }
    const open = created(nats({}))
    const signed = created(nats(token))
    expect([open.config.auth_type, open.auth]).toEqual([null, {}])
    expect([signed.config.auth_type, signed.auth]).toEqual([token.auth_type, token.auth])
    const named = "config.auth_type: is required when config.auth is given: one of BASIC_AUTH, NATS_TOKEN, NATS_NKEY"
    expect(refused(nats({ auth: token.auth }))).toEqual([named])
    expect(refused(nats({ ...token, auth_type: "AWS_ACCESS_KEY" }))).toEqual([
      "config.auth_type: must be one of BASIC_AUTH, NATS_TOKEN, NATS_NKEY, null"
    ])
    expect(refused(nats({ ...token, auth: { token: "a", disabled: true } }))).toEqual([
      "config.auth.disabled: is for destinations only"
    ])
    const elsewhere = { subscription: { host: "evil.example.com" } }
    const moved = "config.auth: must be sent again, as a whole: what is stored belongs to another address"
    const masked = { auth_type: "NATS_TOKEN", auth: { token: "****oken" } }
    expect(refusedChange(signed, { config: elsewhere })).toEqual([moved])
    expect(refusedChange(signed, { config: { ...elsewhere, ...masked } })).toEqual([moved])
    expect(updated(open, { config: elsewhere }).config.subscription).toMatchObject(elsewhere.subscription)
    expect(updated(signed, { config: masked }).auth).toEqual(token.auth)
    expect(updated(signed, { config: { auth_type: null } })).toMatchObject({ config: { auth_type: null }, auth: {} })
    expect(updated(signed, { config: { subscription: { prefetch: 5 } } }).auth).toBe("unchanged")
  })

  it("A queue of SQS needs a region that its URL does not name, and an access key", () => {
    const sqs = (
      subscription: Schema.JsonObject,
      auth: Schema.JsonObject = { access_key_id: "AKIA", secret_access_key: "s" }
    ) => ({
      name: "x",
      type: "AWS_SQS",
      config: { subscription, auth }
    })
    const queue_url = "https://sqs.eu-central-1.amazonaws.com/123456789012/orders"
    const { auth, config } = created(sqs({ queue_url }))
    expect([config.auth_type, auth]).toEqual(["AWS_ACCESS_KEY", { access_key_id: "AKIA", secret_access_key: "s" }])
    expect(config.subscription).toEqual({ queue_url, region: null, visibility_timeout: 60 })
    expect(refused(sqs({ queue_url: "https://queues.example.com/1/orders" }))).toEqual([
      "config.subscription.region: is required: config.subscription.queue_url does not name the region"
    ])
    expect(refused(sqs({ queue_url, visibility_timeout: 1 }))).toEqual([
      "config.subscription.visibility_timeout: must be a whole number from 10 to 43200"
    ])
    expect(refused(sqs({ queue_url }, { access_key_id: "AKIA" }))).toEqual([
      "config.auth.secret_access_key: is required"
    ])
  })

  it("A stream of Redis has a group and a consumer, and makes no group unless it is asked to", () => {
    const redis = (subscription: Schema.JsonObject) => ({ name: "x", type: "REDIS_STREAM", config: { subscription } })
    const server = { host: "redis.example.com", stream: "orders" }
    const { auth, config } = created(redis(server))
    expect([config.auth_type, auth]).toEqual([null, {}])
    expect(config.subscription).toEqual({
      ...server,
      port: 6_379,
      database: 0,
      group: "tidegate",
      consumer: "tidegate",
      create_group: "never",
      body_field: "body",
      claim_after: 60,
      prefetch: 50,
      tls_mode: "verify-full",
      connect_timeout: 10
    })
    expect(refused(redis({ ...server, create_group: "always", claim_after: 1, group: "a\r\nb" })).toSorted()).toEqual([
      "config.subscription.claim_after: must be a whole number from 10 to 86400",
      "config.subscription.create_group: must be one of never, oldest, newest",
      "config.subscription.group: must be 1 to 255 bytes without control characters"
    ])
  })

  it("A topic of Kafka has a group, and is read from its end unless another place is chosen", () => {
    const kafka = (subscription: Schema.JsonObject) => ({ name: "x", type: "KAFKA", config: { subscription } })
    const topic = { bootstrap_servers: "kafka-1.example.com:9093", topic: "orders" }
    const { auth, config } = created(kafka(topic))
    expect([config.auth_type, auth]).toEqual([null, {}])
    expect(config.subscription).toEqual({
      ...topic,
      sasl_mechanism: "SCRAM-SHA-512",
      group: "tidegate",
      auto_offset_reset: "latest",
      prefetch: 50,
      tls_mode: "verify-full",
      connect_timeout: 10
    })
    expect(
      refused(
        kafka({ bootstrap_servers: "kafka", topic: "a b", auto_offset_reset: "none", group: "a\r\nb" })
      ).toSorted()
    ).toEqual([
      "config.subscription.auto_offset_reset: must be one of earliest, latest",
      "config.subscription.bootstrap_servers: must be 1 to 10 times host:port, with commas between them",
      "config.subscription.group: must be 1 to 255 bytes without control characters",
      "config.subscription.topic: must be the name of a topic: at most 249 letters, digits, dots, dashes and underscores"
    ])
  })

  it("A subscription of Pub/Sub takes the key file of a service account, which stays with the place that gives tokens", () => {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 })
    const key = privateKey.export({ type: "pkcs8", format: "pem" })
    const file = { type: "service_account", client_email: "a@my-shop.example", private_key: key }
    const subscription = { project_id: "my-shop", subscription_id: "orders" }
    const pubSub = (subscription: Schema.JsonObject, auth: Schema.JsonObject = {}) => ({
      name: "x",
      type: "GCP_PUBSUB",
      config: { subscription, auth_type: "SERVICE_ACCOUNT", auth }
    })
    const stored = created(pubSub(subscription, { service_account_key: JSON.stringify(file) }))
    expect(stored).toMatchObject({
      config: { auth_type: "SERVICE_ACCOUNT", subscription: { ...subscription, endpoint: null, prefetch: 50 } },
      auth: { client_email: file.client_email, private_key: key }
    })
    const masked = { client_email: file.client_email, private_key: maskSecret(key) }
    expect(updated(stored, { config: { auth: masked } }).auth).toMatchObject({ private_key: key })
    const moved = "config.auth: must be sent again, as a whole: what is stored belongs to another address"
    expect(
      refusedChange(stored, { config: { auth: { ...masked, token_uri: "https://tokens.example.com/" } } })
    ).toEqual([moved])
    expect(refusedChange(stored, { config: { subscription: { endpoint: "https://pubsub.example.com" } } })).toEqual([
      moved
    ])
    expect(
      refused(pubSub({ project_id: "my-shop", subscription_id: "goog" }, { service_account_key: JSON.stringify(file) }))
    ).toEqual([
      "config.subscription.subscription_id: must be the name of a subscription, without projects/…/subscriptions/: 3 to 255 letters, digits and - _ . ~ + %, which begin with a letter and not with goog"
    ])
  })

  it("A change merges the subscription by member, and keeps the credentials with their address", () => {
    const { auth: kept, config } = updated(orders, { config: { subscription: { prefetch: 5 } } })
    expect(config.subscription).toEqual({ ...complete, prefetch: 5 })
    expect(config.auth_type).toBe("BASIC_AUTH")
    expect(kept).toEqual("unchanged")
    const elsewhere = { subscription: { host: "evil.example.com" } }
    const moved = "config.auth: must be sent again, as a whole: what is stored belongs to another address"
    expect(refusedChange(orders, { config: elsewhere })).toEqual([moved])
    expect(refusedChange(orders, { config: { subscription: { tls_mode: "disable" } } })).toEqual([moved])
    const { auth: next } = updated(orders, { config: { ...elsewhere, auth } })
    expect(next).toEqual(auth)
  })

  it("The type of a broker is chosen once, and only its sources have a subscription", () => {
    expect(refusedChange(orders, { type: "WEBHOOK" })).toEqual([
      "type: cannot change to or from RABBITMQ: create another source"
    ])
    expect(refused({ name: "x", config: { subscription: place } })).toEqual([
      `config.subscription: is for sources of type ${brokerTypes.join(", ")} only`
    ])
  })
})
