import { describe, expect, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Layer } from "effect"
import type { Config } from "@tidegate/connectors/Settings"
import { kafka } from "../../connectors/src/Kafka.ts"
import { auth, brokers, brokerSession, sentUntilKilled } from "./Brokering.ts"
import { sent, told } from "./Delivering.ts"
import { isInstalled, ownKafka, type OwnKafka } from "./OwnKafka.ts"

/** Against a real Kafka, where there is one (`OwnKafka.ts`), read by Kafka's own console consumer. */

class Foreign extends Context.Service<Foreign, OwnKafka>()("ForeignKafka") {}

const making = Effect.tap(ownKafka, ({ topic }) =>
  Effect.promise(async () => {
    await topic("orders", 3)
    await topic("killed", 3)
    await topic("restarted", 3)
    await topic("small", 1, { "max.message.bytes": "2000" })
    await topic("compacted", 1, { "cleanup.policy": "compact" })
  })
)
const world = Layer.merge(brokers(), Layer.effect(Foreign, making))

const refused = { code: "BAD_RESPONSE", final: false, broken: false }
const notIn = { ...refused, code: "AUTH_REJECTED" }

const session = Effect.fnUntraced(function* (change: Config = {}, as: Readonly<Record<string, string>> = auth) {
  const { port } = yield* Foreign
  const config = { bootstrap_servers: `127.0.0.1:${port}`, topic: "orders", tls_mode: "disable", ...change }
  return yield* brokerSession(kafka, config, as)
})

describe.skipIf(!isInstalled)("Destination in Kafka (skipped where KAFKA_HOME or Java is missing)", () => {
  layer(world, { excludeTestServices: true })((it) => {
    it.effect(
      "Record has the value, the headers and the key of its event, and its offset is the attempt's answer",
      () =>
        Effect.gen(function* () {
          const { consumed } = yield* Foreign
          const to = yield* session({ key: "{{payload.customer}}" })
          const body = JSON.stringify({ customer: "c_1", text: "ж".repeat(100_000) })
          const { answer } = yield* sent(to, body, "evt_one")
          const [record, ...more] = yield* Effect.promise(() => consumed("orders"))
          expect(more).toEqual([])
          expect(JSON.parse(answer!.body.toString())).toEqual({
            topic: "orders",
            partition: record!.partition,
            offset: record!.offset
          })
          expect(record).toMatchObject({ key: "c_1", value: body })
          expect(record!.headers).toEqual({
            message_id: "evt_one",
            event_id: "evt_one",
            request_id: "req_1",
            source_id: "src_1",
            connection_id: "con_1",
            destination_id: "des_1",
            attempt_number: "1",
            created_at: "1970-01-01T00:00:00.000Z",
            content_type: "application/json"
          })
        })
    )

    it.effect(
      "User signs in by each mechanism, and a wrong password, a missing one and a missing right are reported",
      () =>
        Effect.gen(function* () {
          for (const sasl_mechanism of ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]) {
            expect([sasl_mechanism, told(yield* sent(yield* session({ sasl_mechanism })))]).toEqual([
              sasl_mechanism,
              200
            ])
            const ended = yield* sent(yield* session({ sasl_mechanism }, { ...auth, password: "wrong" }))
            expect([sasl_mechanism, told(ended)]).toEqual([sasl_mechanism, notIn])
            expect(ended.failure!.message).toContain(
              "does not know the user or the password (SASL_AUTHENTICATION_FAILED)"
            )
          }
          // Kafka hangs up on who says no name.
          expect(told(yield* sent(yield* session({}, {})))).toMatchObject({ code: "SOCKET_CLOSED", final: false })
          const ended = yield* sent(yield* session({}, { ...auth, username: "reader" }))
          expect(told(ended)).toEqual(notIn)
          expect(ended.failure!.message).toContain("(TOPIC_AUTHORIZATION_FAILED)")
        })
    )

    it.effect(
      "Record is delivered over TLS to the brokers that the cluster names, and not with another certificate",
      () =>
        Effect.gen(function* () {
          const { tlsPort } = yield* Foreign
          const at = (host: string) => session({ bootstrap_servers: `${host}:${tlsPort}`, tls_mode: "verify-full" })
          expect(told(yield* sent(yield* at("target.test")))).toBe(200)
          expect(told(yield* sent(yield* at("other.example")))).toMatchObject({
            code: "ERR_TLS_CERT_ALTNAME_INVALID",
            final: false
          })
        })
    )

    it.effect(
      "Record is refused without a topic, and finally if it is too large or has no key where one is needed",
      () =>
        Effect.gen(function* () {
          const { consumed } = yield* Foreign
          const nowhere = yield* sent(yield* session({ topic: "nowhere" }))
          expect(told(nowhere)).toEqual(refused)
          expect(nowhere.failure!.message).toContain("(UNKNOWN_TOPIC_OR_PARTITION)")
          const unkeyed = yield* sent(yield* session({ topic: "compacted" }))
          expect(told(unkeyed)).toEqual({ ...refused, final: true })
          expect(unkeyed.failure!.message).toContain("(INVALID_RECORD)")
          // One of a batch is too large, and the whole batch is.
          const small = yield* session({ topic: "small" })
          const ends = yield* Effect.all(
            ["a", "b", "c", "d", "e"].map((id) => sent(small, "x".repeat(id === "c" ? 5_000 : 900), id)),
            { concurrency: "unbounded" }
          )
          expect(ends.map(told)).toEqual([200, 200, { ...refused, final: true }, 200, 200])
          expect(ends[2]!.failure!.message).toContain("larger than the topic takes (MESSAGE_TOO_LARGE)")
          const kept = yield* Effect.promise(() => consumed("small"))
          expect(kept.map(({ headers }) => headers["message_id"])).toEqual(["a", "b", "d", "e"])
        })
    )

    it.effect("Broker that is killed in the middle loses no confirmed record, and is used again when it is back", () =>
      Effect.gen(function* () {
        const { consumed, kill, start } = yield* Foreign
        const to = yield* session({ topic: "killed" })
        const { confirmed, finals } = yield* sentUntilKilled(to, kill)
        expect(finals).toEqual([false])
        yield* start
        expect(told(yield* sent(to, "{}", "evt_after"))).toBe(200)
        const records = yield* Effect.promise(() => consumed("killed"))
        const found = new Set(records.map(({ headers }) => headers["message_id"]))
        expect([...confirmed, "evt_after"].filter((id) => !found.has(id))).toEqual([])
      })
    )

    it.effect(
      "Records under way while the broker is killed and started arrive in their order, and once unless reported",
      () =>
        Effect.gen(function* () {
          const { consumed, kill, start } = yield* Foreign
          const to = yield* session({ topic: "restarted", key: "{{payload.key}}" })
          const begun = yield* Deferred.make<void>()
          const isBack = yield* Deferred.make<void>()
          const reported = new Set<string>()
          // Each with a key of its own, one record after the other.
          const sender = Effect.fnUntraced(function* (key: number) {
            for (let i = 0; i < 300; i++) {
              if (i === 100) Deferred.doneUnsafe(begun, Effect.void)
              const id = `evt_${key}_${i}`
              while ((yield* sent(to, JSON.stringify({ key: `k${key}` }), id)).failure !== null) {
                reported.add(id)
                yield* Deferred.await(isBack)
              }
            }
          })
          const restarting = Effect.gen(function* () {
            yield* Deferred.await(begun)
            yield* kill
            yield* start
            yield* Deferred.succeed(isBack, undefined)
          })
          const senders = Array.from({ length: 10 }, (_, key) => sender(key))
          yield* Effect.all([...senders, restarting], { concurrency: "unbounded" })
          const found = yield* Effect.promise(() => consumed("restarted"))
          const ids = found.map(({ headers }) => headers["message_id"]!)
          expect(ids.filter((id, i) => ids.indexOf(id) !== i && !reported.has(id))).toEqual([])
          for (let key = 0; key < 10; key++) {
            const own = [
              ...new Set(found.filter((one) => one.key === `k${key}`).map(({ headers }) => headers["message_id"]))
            ]
            expect(own).toEqual(Array.from({ length: 300 }, (_, i) => `evt_${key}_${i}`))
          }
        })
    )
  })
})
