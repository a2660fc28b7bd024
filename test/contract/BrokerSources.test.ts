import { expect } from "vitest"
import { type FakeMessage, FakeRabbit } from "../../packages/foreign-databases/test/FakeRabbit.ts"
import type { Gateway } from "../support/Gateway.ts"
import { request } from "../support/RawHttp.ts"
import { ownIt } from "../support/it.ts"
import { eventually } from "../support/Waiting.ts"

/** Sources whose requests are messages of a broker, in a running gateway: from the queue to the target. */

const it = ownIt.extend("broker", async ({}, { onCleanup }) => {
  const broker = await FakeRabbit.start()
  onCleanup(() => broker.close())
  return broker
})

const subscriptionAt = ({ port }: FakeRabbit, change: object = {}) => ({
  host: "127.0.0.1",
  port,
  queue: "orders",
  tls_mode: "disable",
  ...change
})

const subscribe = (gateway: Gateway, broker: FakeRabbit, change: object = {}) =>
  gateway.api("POST", "/sources", {
    name: gateway.name("orders"),
    type: "RABBITMQ",
    config: {
      subscription: subscriptionAt(broker, change),
      auth: { username: "tidegate", password: broker.password }
    }
  })

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

it("A message is delivered to the target of its connection, with what the broker says of it", async ({
  broker,
  gateway,
  target
}) => {
  const source = await subscribe(gateway, broker)
  expect(source).toMatchObject({
    config: { auth: { username: "tidegate", password: expect.stringContaining("****") } }
  })
  await gateway.connection(source, await gateway.destination({ url: target.origin }))
  const headers = { "X-Kind": "paid", authorization: "Bearer secret", "x-gateway-message-id": "forged", host: "other" }
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
    "x-gateway-message-id": "m1",
    "x-gateway-exchange": "orders",
    "x-gateway-routing-key": "order.paid"
  })
  await eventually("the message is settled", () => broker.queue("orders").settled.length === 1 || null)
})

it("Messages of a queue become requests, each once, also when the broker and the gateway are cut off", async ({
  broker,
  gateway
}) => {
  const queue = broker.queue("orders")
  const source = await subscribe(gateway, broker, { prefetch: 20 })
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
  expect(queue.mostUnsettled).toBeLessThanOrEqual(20)
  expect(queue.dead).toEqual([])
  const shown = await state(gateway, source.id, { status: "connected" })
  expect(shown.stored_count).toBe(count)
})

it("A message that can never be stored is rejected at its broker, counted and named", async ({ broker, gateway }) => {
  const source = await subscribe(gateway, broker)
  broker.publish("orders", { id: "large", body: Buffer.alloc(1_048_577) }, ...messages(1))
  const shown = await state(gateway, source.id, { stored_count: 1, rejected_count: 1 })
  expect(shown.last_rejection).toBe("a message of 1048577 bytes is too large: at most 1048576 become a request")
  await eventually("both are settled", () => broker.queue("orders").settled.length === 1 || null)
  expect(broker.queue("orders").dead).toEqual(["large"])
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
  await gateway.api("PATCH", `/sources/${source.id}`, { config: { subscription: { queue: "others" } } })
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
  const wrong = { username: "tidegate", password: "wrong-password" }
  await gateway.api("PATCH", `/sources/${source.id}`, { config: { auth: wrong } })
  const failing = await state(gateway, source.id, { status: "failing" })
  expect(failing).toMatchObject({ connected_at: null, last_error: expect.stringMatching(/^the broker does not let/) })
  const right = { ...wrong, password: broker.password }
  await gateway.api("PATCH", `/sources/${source.id}`, { config: { auth: right } })
  expect(await state(gateway, source.id, { status: "connected" })).toMatchObject({ last_error: null })
})

it("Nobody can post to such a source, and what it does not know is refused", async ({ broker, gateway }) => {
  const source = await subscribe(gateway, broker)
  expect((await request(gateway.port, { path: `/e/${source.id}`, body: "{}" })).status).toBe(404)
  const refused = await gateway.call("PATCH", `/sources/${source.id}`, { config: { subscription: { qeue: "x" } } })
  expect(refused).toMatchObject({ status: 400, body: { data: { fields: [{ path: "config.subscription.qeue" }] } } })
  const elsewhere = await gateway.call("PATCH", `/sources/${source.id}`, {
    config: { subscription: { host: "127.0.0.2" } }
  })
  expect(elsewhere).toMatchObject({ status: 400, body: { data: { fields: [{ path: "config.auth" }] } } })
})
