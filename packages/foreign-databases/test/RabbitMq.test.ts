import { describe, expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import type { Config } from "@tidegate/connectors/Settings"
import { rabbitMq } from "../../connectors/src/RabbitMq.ts"
import { auth, brokers, brokerSession, sentUntilKilled } from "./Brokering.ts"
import { sent, told } from "./Delivering.ts"
import { ownRabbit, type OwnRabbit, program } from "./OwnRabbit.ts"

/** Against a real RabbitMQ, where one is installed (`apt-get install rabbitmq-server`). */

class Foreign extends Context.Service<Foreign, OwnRabbit>()("ForeignRabbit") {}

const world = Layer.merge(brokers(), Layer.effect(Foreign, ownRabbit))

const refused = { code: "BAD_RESPONSE", final: false, broken: false }
const notIn = { ...refused, code: "AUTH_REJECTED" }

const session = Effect.fnUntraced(function* (change: Config = {}, as: Readonly<Record<string, string>> = auth) {
  const { port } = yield* Foreign
  const config = { host: "127.0.0.1", port, vhost: "shop", exchange: "orders", tls_mode: "disable", ...change }
  return yield* brokerSession(rabbitMq, config, as)
})

describe.skipIf(program === undefined)("Destination in RabbitMQ (skipped if it is not installed)", () => {
  layer(world, { excludeTestServices: true })((it) => {
    it.effect("Message has the body, the properties and the headers of its event", () =>
      Effect.gen(function* () {
        const { taken } = yield* Foreign
        const to = yield* session({ routing_key: "order.{{payload.type}}" })
        const body = JSON.stringify({ type: "paid", text: "ж".repeat(200_000) })
        expect(told(yield* sent(to, body, "evt_one"))).toBe(200)
        const [{ message } = { message: null }, ...more] = yield* Effect.promise(() => taken("kept"))
        expect(more).toEqual([])
        expect(message!.content.toString()).toBe(body)
        expect(message!.fields.routingKey).toBe("order.paid")
        expect(message!.properties).toMatchObject({
          messageId: "evt_one",
          contentType: "application/json",
          deliveryMode: 2,
          headers: { event_id: "evt_one", request_id: "req_1", attempt_number: "1" }
        })
      })
    )

    it.effect("Message is delivered over TLS, and not to a broker with another certificate", () =>
      Effect.gen(function* () {
        const { taken, tlsPort } = yield* Foreign
        const secure = { port: tlsPort, tls_mode: "verify-full", routing_key: "order.tls" }
        expect(told(yield* sent(yield* session({ ...secure, host: "target.test" })))).toBe(200)
        expect(told(yield* sent(yield* session({ ...secure, host: "other.example" })))).toEqual({
          code: "ERR_TLS_CERT_ALTNAME_INVALID",
          final: false,
          broken: true
        })
        expect(yield* Effect.promise(() => taken("kept"))).toHaveLength(1)
      })
    )

    it.effect("Wrong password, virtual host or right is reported as rejected credentials", () =>
      Effect.gen(function* () {
        const key = { routing_key: "order.paid" }
        expect(told(yield* sent(yield* session(key, { ...auth, password: "wrong" })))).toEqual(notIn)
        expect(told(yield* sent(yield* session({ ...key, vhost: "closed" })))).toEqual(notIn)
        expect(told(yield* sent(yield* session({ ...key, vhost: "nowhere" })))).toEqual(notIn)
        expect(told(yield* sent(yield* session(key, { ...auth, username: "reader" })))).toEqual(notIn)
      })
    )

    it.effect("Message that no queue gets is a failure, unless the destination says otherwise", () =>
      Effect.gen(function* () {
        const nowhere = { routing_key: "nowhere" }
        const to = yield* session(nowhere)
        expect(told(yield* sent(to, "x".repeat(300_000)))).toEqual(refused)
        // The connection is still good.
        expect((yield* sent(to)).failure?.message).toContain("no queue gets a message with this routing key (312)")
        expect(told(yield* sent(yield* session({ ...nowhere, mandatory: false })))).toBe(200)
        expect((yield* sent(yield* session({ exchange: "none" }))).failure?.message).toContain(
          "there is no such exchange"
        )
      })
    )

    it.effect("Full queue refuses a message", () =>
      Effect.gen(function* () {
        const { taken } = yield* Foreign
        const to = yield* session({ exchange: "", routing_key: "full" })
        expect(told(yield* sent(to))).toBe(200)
        const ended = yield* sent(to)
        expect(told(ended)).toEqual(refused)
        expect(ended.failure?.message).toContain("a queue is full")
        yield* Effect.promise(() => taken("full"))
      })
    )

    it.effect("Broker that is killed in the middle loses no confirmed message, and is used again when it is back", () =>
      Effect.gen(function* () {
        const { kill, start, taken } = yield* Foreign
        const to = yield* session({ routing_key: "order.paid" })
        const { confirmed, finals } = yield* sentUntilKilled(to, kill)
        expect(finals).toEqual([false])
        yield* start
        expect(told(yield* sent(to, "{}", "evt_after"))).toBe(200)
        const found = new Set((yield* Effect.promise(() => taken("kept"))).map(({ id }) => id))
        expect([...confirmed, "evt_after"].filter((id) => !found.has(id))).toEqual([])
      })
    )
  })
})
