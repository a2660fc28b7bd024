import { describe, expect } from "vitest"
import { FakeJetStream } from "../../packages/foreign-databases/test/FakeJetStream.ts"
import { FakeKafkaTopics } from "../../packages/foreign-databases/test/FakeKafkaTopics.ts"
import { FakePubSub } from "../../packages/foreign-databases/test/FakePubSub.ts"
import { type FakeMessage, FakeRabbit, type Queue } from "../../packages/foreign-databases/test/FakeRabbit.ts"
import { FakeRedis } from "../../packages/foreign-databases/test/FakeRedis.ts"
import { FakeSqs } from "../../packages/foreign-databases/test/FakeSqs.ts"
import type { Gateway } from "../support/Gateway.ts"
import { request } from "../support/RawHttp.ts"
import { ownIt } from "../support/it.ts"
import { eventually } from "../support/Waiting.ts"

/** Sources whose requests are messages of a broker, in a running gateway: from the queue to the target. */

interface FakeBroker {
  readonly queue: (name: string) => Queue
  readonly publish: (queue: string, ...messages: ReadonlyArray<FakeMessage>) => void
  /** Cuts all connections. */
  readonly cut: () => void
  readonly close: () => Promise<void>
}

/** A broker, and a source in one of its queues. */
interface Kind<B extends FakeBroker = FakeBroker> {
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

const kinds: ReadonlyArray<Kind> = [
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

const messages = (count: number, from = 0): ReadonlyArray<FakeMessage> =>
  Array.from({ length: count }, (_, n) => ({ id: `m${from + n}`, body: JSON.stringify({ n: from + n }) }))

/** How the subscription of the source is doing, once it is so. */
const state = (gateway: Gateway, id: string, good: object) =>
  eventually(
    `the subscription is ${JSON.stringify(good)}`,
    async () => (await gateway.api("GET", `/sources/${id}`)).subscription_state,
    (state) => Object.entries(good).every(([name, value]) => state[name as keyof typeof state] === value)
  )

const numbersOf = async (gateway: Gateway, id: string) => {
  const rows = await gateway.sql(
    "select convert_from(body, 'utf8')::json ->> 'n' as n from requests where source_id = $1",
    [id]
  )
  return rows.map(({ n }) => Number(n)).toSorted((a, b) => a - b)
}

describe.each(kinds)("Source of type $type", (kind) => {
  const it = ownIt.extend("broker", async ({}, { onCleanup }) => {
    const broker = await kind.start()
    onCleanup(() => broker.close())
    return broker
  })

  const subscribe = (gateway: Gateway, broker: FakeBroker) =>
    gateway.api("POST", "/sources", {
      name: gateway.name("orders"),
      type: kind.type,
      config: {
        subscription: { ...kind.settings(broker), ...kind.queue(broker, "orders") },
        auth_type: kind.authType,
        auth: kind.auth(broker)
      }
    } as never)

  it("A message is delivered to the target of its connection, with what the broker says of it", async ({
    broker,
    gateway,
    target
  }) => {
    const source = await subscribe(gateway, broker)
    expect(JSON.stringify(source)).not.toContain(Object.values(kind.auth(broker)).at(-1))
    expect(JSON.stringify(source)).toContain("****")
    await gateway.connection(source, await gateway.destination({ url: target.origin }))
    const headers = {
      "X-Kind": "paid",
      authorization: "Bearer secret",
      "x-gateway-message-id": "forged",
      host: "other"
    }
    broker.publish("orders", { id: "m1", body: '{"paid":true}', headers, routingKey: "order.paid" })
    const [delivered] = await target.next(1, 60_000)
    expect(delivered!.body.toString()).toBe('{"paid":true}')
    expect(delivered!.headers).toMatchObject({ "x-kind": "paid", "content-type": "application/json" })
    expect(delivered!.headers["authorization"]).toBe(undefined)
    const [stored] = await gateway.requests(source.id)
    expect(stored).toMatchObject({ status: "accepted", verified: true })
    expect((await gateway.api("GET", `/requests/${stored!.id}`)).data?.headers).toEqual({
      "content-type": "application/json",
      "x-kind": "paid",
      ...kind.facts
    })
    await eventually("the message is settled", () => broker.queue("orders").settled.length === 1 || null)
  })

  it("Messages of a queue become requests, each once, also when the broker and the gateway are cut off", async ({
    broker,
    gateway
  }) => {
    const queue = broker.queue("orders")
    const source = await subscribe(gateway, broker)
    const count = 600
    broker.publish("orders", ...messages(200))
    await eventually("some are settled", () => queue.settled.length > 20 || null)
    broker.cut()
    broker.publish("orders", ...messages(200, 200))
    await eventually("more are settled", () => queue.settled.length > 220 || null)
    await gateway.restart("SIGKILL")
    broker.publish("orders", ...messages(200, 400))
    await eventually("all are settled", () => new Set(queue.settled).size === count || null)
    expect(await numbersOf(gateway, source.id)).toEqual(Array.from({ length: count }, (_, n) => n))
    expect(queue.mostUnsettled).toBeLessThanOrEqual(kind.most ?? 20)
    expect(queue.dead).toEqual([])
    const shown = await state(gateway, source.id, { status: "connected" })
    expect(shown.stored_count).toBe(count)
  })

  it("A message that can never be stored is rejected at its broker, counted and named", async ({ broker, gateway }) => {
    const source = await subscribe(gateway, broker)
    broker.publish("orders", { id: "large", body: Buffer.alloc(1_048_577, "x") }, ...messages(1))
    const shown = await state(gateway, source.id, { stored_count: 1, rejected_count: 1 })
    expect(shown.last_rejection).toBe("a message of 1048577 bytes is too large: at most 1048576 become a request")
    const settled = kind.rejects === undefined ? 1 : 2
    await eventually("both are settled", () => broker.queue("orders").settled.length === settled || null)
    expect(broker.queue("orders").dead).toEqual(kind.rejects === undefined ? ["large"] : [])
  })

  it("A source fetches nothing while it is disabled, changed settings hold at once, and a deleted one lets go", async ({
    broker,
    gateway
  }) => {
    const source = await subscribe(gateway, broker)
    await state(gateway, source.id, { status: "connected" })
    await gateway.api("PUT", `/sources/${source.id}/disable`)
    await eventually("nobody consumes", () => broker.queue("orders").consumers.size === 0 || null)
    broker.publish("orders", ...messages(3))
    expect((await gateway.api("GET", `/sources/${source.id}`)).subscription_state).toMatchObject({ status: "disabled" })
    await gateway.api("PUT", `/sources/${source.id}/enable`)
    await state(gateway, source.id, { status: "connected", stored_count: 3 })
    await gateway.api("PATCH", `/sources/${source.id}`, {
      config: { subscription: kind.queue(broker, "others") }
    })
    broker.publish("others", ...messages(1, 10))
    await state(gateway, source.id, { status: "connected", stored_count: 4 })
    await eventually("nobody consumes", () => broker.queue("orders").consumers.size === 0 || null)
    const { config, description, name, status, type } = await gateway.api("GET", `/sources/${source.id}`)
    const { body: written } = await gateway.call("PUT", "/sources", { config, description, name, status, type })
    expect(written).toMatchObject({ id: source.id, config })
    await gateway.api("DELETE", `/sources/${source.id}`)
    await eventually("nobody consumes", () => broker.queue("others").consumers.size === 0 || null)
  })

  it("A source says why it is not connected, and connects once its settings are right", async ({ broker, gateway }) => {
    const source = await subscribe(gateway, broker)
    await state(gateway, source.id, { status: "connected" })
    await gateway.api("PATCH", `/sources/${source.id}`, { config: { auth: kind.wrongAuth(broker) } })
    const failing = await state(gateway, source.id, { status: "failing" })
    expect(failing).toMatchObject({
      connected_at: null,
      last_error: expect.stringMatching(/^the (?:broker|server|service) does not let/)
    })
    await gateway.api("PATCH", `/sources/${source.id}`, { config: { auth: kind.auth(broker) } })
    expect(await state(gateway, source.id, { status: "connected" })).toMatchObject({ last_error: null })
  })

  it("Nobody can post to such a source, and what it does not know is refused", async ({ broker, gateway }) => {
    const source = await subscribe(gateway, broker)
    expect((await request(gateway.port, { path: `/e/${source.id}`, body: "{}" })).status).toBe(404)
    const refused = await gateway.call("PATCH", `/sources/${source.id}`, { config: { subscription: { qeue: "x" } } })
    expect(refused).toMatchObject({ status: 400, body: { data: { fields: [{ path: "config.subscription.qeue" }] } } })
    const elsewhere = await gateway.call("PATCH", `/sources/${source.id}`, {
      config: { subscription: kind.elsewhere }
    })
    expect(elsewhere).toMatchObject({ status: 400, body: { data: { fields: [{ path: "config.auth" }] } } })
  })
})
