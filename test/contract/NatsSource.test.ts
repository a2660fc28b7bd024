import { Effect, Exit, Scope } from "effect"
import { describe, expect } from "vitest"
import { operated, ownNats, program, userKey } from "../../packages/foreign-databases/test/OwnNats.ts"
import type { Gateway } from "../support/Gateway.ts"
import { it as gatewayIt } from "../support/it.ts"

/** Sources of type NATS_JETSTREAM against a real NATS server, where one is installed (`apt-get install nats-server`). */

const password = "re4der-p4ssword"
/** The reader may do what docs/broker-sources.md says that it needs, and no more. */
const config = `max_payload: 4MB
authorization { users = [
  { user: owner, password: owner }
  { user: reader, password: "${password}", permissions: {
    publish: ["$JS.API.CONSUMER.INFO.*.tidegate", "$JS.API.CONSUMER.MSG.NEXT.*.tidegate", "$JS.ACK.*.tidegate.>"]
    subscribe: "_INBOX.>"
  } }
  { user: barred, password: "${password}", permissions: { publish: "orders.>", subscribe: "_INBOX.>" } }
  { nkey: ${userKey.name} }
] }`

const it = gatewayIt.extend("nats", { scope: "file" }, async ({}, { onCleanup }) => {
  const scope = Scope.makeUnsafe()
  onCleanup(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return Effect.runPromise(ownNats(config, { username: "owner", password: "owner" }).pipe(Scope.provide(scope)))
})

const reader = { auth_type: "BASIC_AUTH" as const, auth: { username: "reader", password } }

const subscribe = (gateway: Gateway, port: number, stream: string, signIn: object = reader) =>
  gateway.api("POST", "/sources", {
    name: gateway.name("orders"),
    type: "NATS_JETSTREAM",
    config: {
      subscription: { host: "127.0.0.1", port, stream, consumer: "tidegate", tls_mode: "disable" },
      ...reader,
      ...signIn
    }
  })

const state = (gateway: Gateway, id: string, good: (state: object & { readonly [name: string]: unknown }) => boolean) =>
  gateway.eventually("the subscription is so", async () => {
    const { subscription_state } = await gateway.api("GET", `/sources/${id}`)
    return good({ ...subscription_state! }) ? subscription_state! : null
  })

const bodies = (from: number, count: number) => Array.from({ length: count }, (_, n) => `{"n":${from + n}}`)

describe.skipIf(program === undefined)("Source in NATS JetStream (skipped if it is not installed)", () => {
  it("Each message of the stream is one request, after kill -9 of the gateway and of the server", async ({
    gateway,
    nats
  }) => {
    await nats.stream("ORDERS", { subjects: ["orders.*"], storage: "file" })
    await nats.consumer("ORDERS", "tidegate", { ack_wait: 2_000_000_000 })
    const source = await subscribe(gateway, nats.port, "ORDERS")
    const stored = async () =>
      Number((await gateway.sql("select count(*) as n from requests where source_id = $1", [source.id]))[0]!["n"])
    const more = (than: number) =>
      gateway.eventually(`more than ${than} are stored`, async () => ((await stored()) > than ? true : null))
    await nats.published("orders.paid", bodies(0, 400))
    await more(50)
    await gateway.restart("SIGKILL")
    await more(300)
    await nats.published("orders.paid", bodies(400, 400))
    await Effect.runPromise(Effect.andThen(nats.kill, nats.start))
    await nats.published("orders.paid", bodies(800, 200))
    await more(999)
    await gateway.eventually("all is settled", async () => {
      const [waiting, unsettled] = await nats.left("ORDERS", "tidegate")
      return waiting + unsettled === 0 ? true : null
    })
    const numbers = await gateway.sql(
      "select count(*) as n, count(distinct convert_from(body, 'utf8')) as kinds from requests where source_id = $1",
      [source.id]
    )
    expect(numbers.map(({ kinds, n }) => [Number(n), Number(kinds)])).toEqual([[1_000, 1_000]])
    await gateway.api("DELETE", `/sources/${source.id}`)
  })

  it("A message that is too large is terminated, and is delivered no more", async ({ gateway, nats }) => {
    await nats.stream("LARGE", { subjects: ["large"] })
    await nats.consumer("LARGE", "tidegate", { ack_wait: 1_000_000_000 })
    const source = await subscribe(gateway, nats.port, "LARGE")
    await nats.published("large", ["x".repeat(1_048_577), "{}"])
    await state(gateway, source.id, ({ rejected_count, stored_count }) => rejected_count === 1 && stored_count === 1)
    await gateway.eventually("both are settled", async () => {
      const [waiting, unsettled] = await nats.left("LARGE", "tidegate")
      return waiting + unsettled === 0 ? true : null
    })
    await gateway.api("DELETE", `/sources/${source.id}`)
  })

  it("Messages that lead back to their own stream end", async ({ gateway, nats }) => {
    await nats.stream("ROUND", { subjects: ["round"] })
    await nats.consumer("ROUND", "tidegate")
    const source = await subscribe(gateway, nats.port, "ROUND")
    const destination = await gateway.destination(
      {
        host: "127.0.0.1",
        port: nats.port,
        tls_mode: "disable",
        subject: "round",
        auth_type: "DATABASE_PASSWORD",
        auth: { username: "owner", password: "owner" }
      },
      "NATS_JETSTREAM"
    )
    await gateway.connection(source, destination)
    await nats.published("round", ["{}"])
    const shown = await state(gateway, source.id, ({ rejected_count }) => rejected_count !== 0)
    expect(shown).toMatchObject({ stored_count: 11, last_rejection: "a message has led back to the gateway too often" })
    await gateway.api("DELETE", `/sources/${source.id}`)
  })

  it("A source signs in by the key of a user, and says what it may not do and what is not there", async ({
    gateway,
    nats
  }) => {
    await nats.stream("KEYED", { subjects: ["keyed"] })
    await nats.consumer("KEYED", "tidegate")
    await nats.consumer("KEYED", "unacknowledged", { ack_policy: "none" })
    const key = { auth_type: "NATS_NKEY", auth: { seed: operated.user.seed } }
    const source = await subscribe(gateway, nats.port, "KEYED", key)
    const { last_error } = await state(gateway, source.id, ({ status }) => status === "connected")
    expect(last_error).toBe(null)
    const failing = async (change: object, says: string) => {
      await gateway.api("PATCH", `/sources/${source.id}`, { config: change })
      const found = await state(gateway, source.id, ({ status }) => status === "failing")
      expect(found.last_error).toContain(says)
    }
    await failing({ subscription: { consumer: "other" } }, "there is no such consumer (10014)")
    await failing({ subscription: { stream: "OTHER" } }, "there is no such stream (10059)")
    await failing({ subscription: { stream: "KEYED", consumer: "unacknowledged" } }, "it must have the policy explicit")
    const barred = { auth_type: "BASIC_AUTH", auth: { username: "barred", password } }
    await failing({ subscription: { consumer: "tidegate" }, ...barred }, "the user may not use the consumer")
    await failing({ ...barred, auth: { ...barred.auth, password: "wrong" } }, "the server does not let the source in")
    await gateway.api("DELETE", `/sources/${source.id}`)
  })
})
