import { describe, expect } from "vitest"
import type { FakeMessage } from "../../packages/foreign-databases/test/FakeRabbit.ts"
import type { Gateway } from "../support/Gateway.ts"
import { request } from "../support/RawHttp.ts"
import { it as gatewayIt } from "../support/it.ts"
import { eventually } from "../support/Waiting.ts"
import { type FakeBroker, type Kind, kinds } from "./brokerKinds.ts"

/** Sources whose requests are messages of a broker, in a running gateway: from the queue to the target. */

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

/** Makes a source that reads the queue "orders". */
const sourceIn = (gateway: Gateway, kind: Kind, broker: FakeBroker) =>
  gateway.api("POST", "/sources", {
    name: gateway.name("orders"),
    type: kind.type,
    config: {
      subscription: { ...kind.settings(broker), ...kind.queue(broker, "orders") },
      auth_type: kind.authType,
      auth: kind.auth(broker)
    }
  } as never)

const sum = 600

/** A queue whose broker is cut off, and what is to happen before and after the gateway is killed. */
const disturbing = async (gateway: Gateway, kind: Kind, broker: FakeBroker) => {
  const queue = broker.queue("orders")
  const source = await sourceIn(gateway, kind, broker)
  return {
    source,
    queue,
    before: async () => {
      broker.publish("orders", ...messages(200))
      await eventually("some are settled", () => queue.settled.length > 20 || null)
      broker.cut()
      broker.publish("orders", ...messages(200, 200))
      await eventually("more are settled", () => queue.settled.length > 220 || null)
    },
    after: async () => {
      broker.publish("orders", ...messages(200, 400))
      await eventually("all are settled", () => new Set(queue.settled).size === sum || null)
    }
  }
}

/** One definition for all types: each would have a gateway of its own. */
const it = gatewayIt
  .extend("kind", (): Kind => kinds[0]!)
  .extend("broker", async ({ kind }, { onCleanup }) => {
    const broker = await kind.start()
    onCleanup(() => broker.close())
    return broker
  })
  /** Makes the test's source. It is deleted before its broker ends: it would look for the broker while others are tried. */
  .extend("subscribe", ({ broker, gateway, kind }, { onCleanup }) => {
    const made: Array<string> = []
    onCleanup(async () => {
      for (const id of made) await gateway.call("DELETE", `/sources/${id}`)
    })
    return async () => {
      const source = await sourceIn(gateway, kind, broker)
      made.push(source.id)
      return source
    }
  })
  /** The queue of each type, when all are settled. The gateway is killed once for all types. */
  .extend("disturbed", { scope: "file" }, async ({ gateway }, { onCleanup }) => {
    const brokers = await Promise.all(kinds.map((kind) => kind.start()))
    const all = await Promise.all(kinds.map((kind, n) => disturbing(gateway, kind, brokers[n]!)))
    onCleanup(async () => {
      for (const { source } of all) await gateway.call("DELETE", `/sources/${source.id}`)
      await Promise.all(brokers.map((broker) => broker.close()))
    })
    const before = all.map((one) => one.before())
    await Promise.allSettled(before)
    await gateway.restart("SIGKILL")
    const settled = all.map(async ({ after, queue, source }, n) => {
      await before[n]
      await after()
      return { queue, source }
    })
    // A failure is that of the type's test.
    await Promise.allSettled(settled)
    return new Map(kinds.map(({ type }, n) => [type, settled[n]!]))
  })

describe.concurrent.each(kinds)("Source of type $type", (kind) => {
  it.override({ kind })

  it("A message is delivered to the target of its connection, with what the broker says of it", async ({
    broker,
    gateway,
    subscribe,
    target
  }) => {
    const source = await subscribe()
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
    const [delivered] = await target.next()
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

  it("A message that can never be stored is rejected at its broker, counted and named", async ({
    broker,
    gateway,
    subscribe
  }) => {
    const source = await subscribe()
    broker.publish("orders", { id: "large", body: Buffer.alloc(1_048_577, "x") }, ...messages(1))
    const shown = await state(gateway, source.id, { stored_count: 1, rejected_count: 1 })
    expect(shown.last_rejection).toBe("a message of 1048577 bytes is too large: at most 1048576 become a request")
    const settled = kind.rejects === undefined ? 1 : 2
    await eventually("both are settled", () => broker.queue("orders").settled.length === settled || null)
    expect(broker.queue("orders").dead).toEqual(kind.rejects === undefined ? ["large"] : [])
  })

  it("A source fetches nothing while it is disabled, changed settings hold at once, and a deleted one lets go", async ({
    broker,
    gateway,
    subscribe
  }) => {
    const source = await subscribe()
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

  it("A source says why it is not connected, and connects once its settings are right", async ({
    broker,
    gateway,
    subscribe
  }) => {
    const source = await subscribe()
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

  it("Nobody can post to such a source, and what it does not know is refused", async ({ gateway, subscribe }) => {
    const source = await subscribe()
    expect((await request(gateway.port, { path: `/e/${source.id}`, body: "{}" })).status).toBe(404)
    const refused = await gateway.call("PATCH", `/sources/${source.id}`, { config: { subscription: { qeue: "x" } } })
    expect(refused).toMatchObject({ status: 400, body: { data: { fields: [{ path: "config.subscription.qeue" }] } } })
    const elsewhere = await gateway.call("PATCH", `/sources/${source.id}`, {
      config: { subscription: kind.elsewhere }
    })
    expect(elsewhere).toMatchObject({ status: 400, body: { data: { fields: [{ path: "config.auth" }] } } })
  })
})

describe.each(kinds)("Source of type $type", ({ most = 20, type }) => {
  it("Messages of a queue become requests, each once, also when the broker and the gateway are cut off", async ({
    disturbed,
    gateway
  }) => {
    const { queue, source } = await disturbed.get(type)!
    expect(await numbersOf(gateway, source.id)).toEqual(Array.from({ length: sum }, (_, n) => n))
    expect(queue.mostUnsettled).toBeLessThanOrEqual(most)
    expect(queue.dead).toEqual([])
    const shown = await state(gateway, source.id, { status: "connected" })
    expect(shown.stored_count).toBe(sum)
  })
})
