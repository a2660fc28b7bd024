import { describe, expect, it as test, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import type { Config } from "@tidegate/connectors/Settings"
import { natsJetStream } from "../../connectors/src/NatsJetStream.ts"
import { auth, brokers, brokerSession, sentUntilKilled } from "./Brokering.ts"
import { sent, told } from "./Delivering.ts"
import { operated, overTls, ownNats, type OwnNats, program, type SignIn, userKey } from "./OwnNats.ts"

/** Against a real NATS server, where one is installed (`apt-get install nats-server`). */

const users = `authorization { users = [
  { user: owner, password: owner }
  { user: writer, password: "${auth.password}", permissions: { publish: "orders.>", subscribe: "_INBOX.>" } }
  { user: deaf, password: "${auth.password}", permissions: { publish: "orders.>", subscribe: "nothing" } }
  { nkey: ${userKey.name} }
] }`

class Foreign extends Context.Service<Foreign, OwnNats>()("ForeignNats") {}

const making = Effect.tap(ownNats(users, { username: "owner", password: "owner" }), ({ stream }) =>
  Effect.promise(async () => {
    await stream("ORDERS", { subjects: ["orders.*"], storage: "file", max_msg_size: 500_000 })
    await stream("FULL", { subjects: ["orders.to.full"], max_msgs: 1, discard: "new" })
  })
)
const world = Layer.merge(brokers(), Layer.effect(Foreign, making))

const refused = { code: "BAD_RESPONSE", final: false, broken: false }
const notIn = { ...refused, code: "AUTH_REJECTED" }

const sessionAt = (port: number, change: Config, as: SignIn) =>
  brokerSession(natsJetStream, { host: "127.0.0.1", port, subject: "orders.paid", tls_mode: "disable", ...change }, as)
const session = Effect.fnUntraced(function* (change: Config = {}, as: SignIn = auth) {
  return yield* sessionAt((yield* Foreign).port, change, as)
})

describe.skipIf(program === undefined)("Destination in NATS JetStream (skipped if it is not installed)", () => {
  layer(world, { excludeTestServices: true })((it) => {
    it.effect(
      "Message has the body, the headers and the subject of its event, and a second one with its id is dropped",
      () =>
        Effect.gen(function* () {
          const { kept } = yield* Foreign
          const to = yield* session({ subject: "orders.{{payload.type}}", stream: "ORDERS" })
          const body = JSON.stringify({ type: "one", text: "ж\r\nMSG a 1 1\r\n".repeat(20_000) })
          const first = yield* sent(to, body, "evt_one")
          expect(JSON.parse(first.answer!.body.toString())).toEqual({ stream: "ORDERS", sequence: 1, duplicate: false })
          const second = yield* sent(to, body, "evt_one")
          expect(JSON.parse(second.answer!.body.toString())).toEqual({ stream: "ORDERS", sequence: 1, duplicate: true })
          const [message, ...more] = yield* Effect.promise(() => kept("ORDERS"))
          expect(more).toEqual([])
          expect(message).toMatchObject({ subject: "orders.one", body })
          expect(message!.headers.split("\r\n")).toEqual([
            "NATS/1.0",
            "Nats-Msg-Id: evt_one",
            "Nats-Expected-Stream: ORDERS",
            "content_type: application/json",
            "event_id: evt_one",
            "request_id: req_1",
            "source_id: src_1",
            "connection_id: con_1",
            "destination_id: des_1",
            "attempt_number: 1",
            "created_at: 1970-01-01T00:00:00.000Z",
            "",
            ""
          ])
        })
    )

    it.effect("Wrong password, missing sign-in, and missing rights are reported as rejected credentials", () =>
      Effect.gen(function* () {
        expect(told(yield* sent(yield* session({}, { ...auth, password: "wrong" })))).toEqual(notIn)
        expect(told(yield* sent(yield* session({}, {})))).toEqual(notIn)
        expect(told(yield* sent(yield* session({}, { ...auth, username: "deaf" })))).toEqual(notIn)
        const to = yield* session({ subject: "{{payload.to}}" })
        const ended = yield* sent(to, '{"to":"invoices.new"}')
        expect(told(ended)).toEqual(notIn)
        expect(ended.failure?.message).toContain("invoices.new")
        // The connection is still good.
        expect(told(yield* sent(to, '{"to":"orders.new"}', "evt_right"))).toBe(200)
      })
    )

    it.effect("User is let in by a key", () =>
      Effect.gen(function* () {
        expect(told(yield* sent(yield* session({}, { seed: userKey.seed }), "{}", "evt_key"))).toBe(200)
      })
    )

    it.effect(
      "Message is refused without a stream, by another stream, by a full one, and finally if it is too large",
      () =>
        Effect.gen(function* () {
          const nowhere = yield* sent(yield* session({ subject: "orders.to.nobody" }))
          expect(told(nowhere)).toEqual(refused)
          expect(nowhere.failure?.message).toContain("no stream takes this subject (NO_RESPONDERS)")
          const other = yield* sent(yield* session({ stream: "FULL" }))
          expect(told(other)).toEqual(refused)
          expect(other.failure?.message).toContain("another stream than config.stream takes this subject (10060)")
          const full = yield* session({ subject: "orders.to.full" })
          expect(told(yield* sent(full, "{}", "evt_1"))).toBe(200)
          const ended = yield* sent(full, "{}", "evt_2")
          expect(told(ended)).toEqual(refused)
          expect(ended.failure?.message).toContain("because it is full (10077)")
          const large = yield* session()
          for (const bytes of [600_000, 2_000_000]) {
            expect(told(yield* sent(large, "x".repeat(bytes)))).toEqual({ ...refused, final: true })
          }
        })
    )

    it.effect("Server that is killed in the middle loses no confirmed message, and is used again when it is back", () =>
      Effect.gen(function* () {
        const { kept, kill, start } = yield* Foreign
        const to = yield* session({ subject: "orders.killed" })
        const { confirmed, finals } = yield* sentUntilKilled(to, kill)
        expect(finals).toEqual([false])
        yield* start
        expect(told(yield* sent(to, "{}", "evt_after"))).toBe(200)
        const messages = yield* Effect.promise(() => kept("ORDERS"))
        const found = new Set(messages.map(({ headers }) => /Nats-Msg-Id: (\S+)/.exec(headers)?.[1]))
        expect([...confirmed, "evt_after"].filter((id) => !found.has(id))).toEqual([])
      })
    )
  })

  test.live("Message is delivered over TLS by a token, and not to a server with another certificate", () =>
    Effect.gen(function* () {
      const config = `${overTls}\nauthorization { token: "${auth.password}" }`
      const { kept, port, stream } = yield* ownNats(config, { token: auth.password })
      yield* Effect.promise(() => stream("SAFE", { subjects: ["orders.*"] }))
      const secure = { tls_mode: "verify-full" }
      const token = { token: auth.password }
      expect(told(yield* sent(yield* sessionAt(port, { ...secure, host: "target.test" }, token)))).toBe(200)
      expect(told(yield* sent(yield* sessionAt(port, { ...secure, host: "target.test" }, { token: "wrong" })))).toEqual(
        notIn
      )
      expect(told(yield* sent(yield* sessionAt(port, { ...secure, host: "other.example" }, token)))).toEqual({
        code: "ERR_TLS_CERT_ALTNAME_INVALID",
        final: false,
        broken: true
      })
      expect(told(yield* sent(yield* sessionAt(port, {}, token)))).toMatchObject({ broken: true })
      expect(yield* Effect.promise(() => kept("SAFE"))).toHaveLength(1)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )

  test.live("User of an operator's account is let in by the JWT and the seed, and not with another seed", () =>
    Effect.gen(function* () {
      const { port, stream } = yield* ownNats(operated.config, operated.user)
      yield* Effect.promise(() => stream("OURS", { subjects: ["orders.*"] }))
      expect(told(yield* sent(yield* sessionAt(port, {}, operated.user)))).toBe(200)
      const other = "SUAASCIJBEEQSCIJBEEQSCIJBEEQSCIJBEEQSCIJBEEQSCIJBEEQSCKHGM"
      expect(told(yield* sent(yield* sessionAt(port, {}, { ...operated.user, seed: other })))).toEqual(notIn)
    }).pipe(Effect.scoped, Effect.provide(brokers()))
  )
})
