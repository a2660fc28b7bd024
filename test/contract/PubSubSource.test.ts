import { describe, expect } from "vitest"
import { FakePubSub } from "../../packages/foreign-databases/test/FakePubSub.ts"
import type { Gateway } from "../support/Gateway.ts"
import { ownIt } from "../support/it.ts"

/** Sources of type GCP_PUBSUB in a running gateway: their tokens, their errors, and loops. */

const it = ownIt.extend("service", async ({}, { onCleanup }) => {
  const service = await FakePubSub.start()
  onCleanup(() => service.close())
  return service
})

const subscribe = (gateway: Gateway, service: FakePubSub) =>
  gateway.api("POST", "/sources", {
    name: gateway.name("orders"),
    type: "GCP_PUBSUB",
    config: {
      subscription: { project_id: "my-shop", subscription_id: "orders", endpoint: service.origin },
      auth_type: "SERVICE_ACCOUNT",
      auth: { service_account_key: JSON.stringify({ type: "service_account", ...service.auth() }) }
    }
  } as never)

const state = (gateway: Gateway, id: string, good: (state: Readonly<Record<string, unknown>>) => boolean) =>
  gateway.eventually("the subscription is so", async () => {
    const { subscription_state } = await gateway.api("GET", `/sources/${id}`)
    return good({ ...subscription_state! }) ? subscription_state! : null
  })

describe("Source of type GCP_PUBSUB", () => {
  it("A token that is refused is replaced inside the subscription, and no secret of it is shown or logged", async ({
    gateway,
    service
  }) => {
    const source = await subscribe(gateway, service)
    service.publish("orders", { id: "m1", body: '{"n":1}' })
    const { connected_at } = await state(gateway, source.id, ({ stored_count }) => stored_count === 1)
    await gateway.eventually("the next call waits", async () => service.queue("orders").consumers.size === 1 || null)
    service.revoked.add(service.tokens[0]!)
    service.publish("orders", { id: "m2", body: '{"n":2}' }, { id: "m3", body: '{"n":3}' })
    const shown = await state(gateway, source.id, ({ stored_count }) => stored_count === 3)
    expect([shown.connected_at, shown.last_error, service.tokens.length]).toEqual([connected_at, null, 2])
    const rows = await gateway.sql("select row_to_json(s)::text as row from sources s where id = $1", [source.id])
    const all = JSON.stringify([await gateway.call("GET", `/sources/${source.id}`), rows]) + (await gateway.logged())
    for (const secret of [...service.tokens, "PRIVATE KEY", service.auth()["private_key"]!.slice(100, 140)]) {
      expect(all).not.toContain(secret)
    }
  })

  const errors = [
    [
      403,
      "PERMISSION_DENIED",
      "the service account may not consume messages of this subscription (PERMISSION_DENIED): no"
    ],
    [404, "NOT_FOUND", "there is no such subscription (NOT_FOUND): no"],
    [429, "RESOURCE_EXHAUSTED", "the service takes no more calls now (RESOURCE_EXHAUSTED): no"],
    [503, "UNAVAILABLE", "the service cannot answer now (UNAVAILABLE): no"]
  ] as const

  it("What the service answers is said in words, and the source connects again when that is over", async ({
    gateway,
    service
  }) => {
    const source = await subscribe(gateway, service)
    await state(gateway, source.id, ({ status }) => status === "connected")
    let prefetch = 10
    // A change connects at once, whatever has failed before.
    const again = () =>
      gateway.api("PATCH", `/sources/${source.id}`, { config: { subscription: { prefetch: prefetch++ } } })
    for (const [code, status, said] of errors) {
      service.instead = { status: code, body: JSON.stringify({ error: { code, status, message: "no" } }) }
      await again()
      await state(gateway, source.id, ({ last_error, status }) => status === "failing" && last_error === said)
    }
    service.instead = { status: 502, body: "<html><title>502</title></html>" }
    await again()
    await state(gateway, source.id, ({ last_error }) => last_error === "the service cannot answer now (HTTP 502)")
    service.instead = null
    service.publish("orders", { id: "m1", body: "{}" })
    await state(gateway, source.id, ({ status, stored_count }) => status === "connected" && stored_count === 1)
  })

  it("Messages that lead back to their own subscription end, and are acknowledged", async ({ gateway, service }) => {
    const source = await subscribe(gateway, service)
    const config = { project_id: "my-shop", topic: "orders", endpoint: service.origin }
    const destination = await gateway.destination(
      { ...config, auth_type: "SERVICE_ACCOUNT", auth: service.auth() },
      "GCP_PUBSUB"
    )
    await gateway.connection(source, destination)
    service.publish("orders", { id: "m1", body: "{}" })
    const shown = await state(gateway, source.id, ({ rejected_count }) => rejected_count !== 0)
    expect(shown).toMatchObject({ stored_count: 11, last_rejection: "a message has led back to the gateway too often" })
    await gateway.eventually("all are acknowledged", async () => service.queue("orders").settled.length === 12 || null)
  })
})
