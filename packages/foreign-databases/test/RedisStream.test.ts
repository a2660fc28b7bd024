import { describe, expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import type { Config } from "@tidegate/connectors/Settings"
import { redisStream } from "../../connectors/src/RedisStream.ts"
import { auth, brokers, brokerSession, sentUntilKilled } from "./Brokering.ts"
import { sent, told } from "./Delivering.ts"
import { ownRedis, type OwnRedis, program } from "./OwnRedis.ts"

/** Against a real Redis, where one is installed (`apt-get install redis-server`). */

class Foreign extends Context.Service<Foreign, OwnRedis>()("ForeignRedis") {}

const world = Layer.merge(brokers(), Layer.effect(Foreign, ownRedis))

const refused = { code: "BAD_RESPONSE", final: false, broken: false }
const notIn = { ...refused, code: "AUTH_REJECTED" }

const session = Effect.fnUntraced(function* (change: Config = {}, as: Readonly<Record<string, string>> = auth) {
  const { port } = yield* Foreign
  const config = { host: "127.0.0.1", port, stream: "orders:all", tls_mode: "disable", ...change }
  return yield* brokerSession(redisStream, config, as)
})

describe.skipIf(program === undefined)("Destination in a stream of Redis (skipped if it is not installed)", () => {
  layer(world, { excludeTestServices: true })((it) => {
    it.effect("Entry has the body, the headers and the ids of its event, in the stream that its template names", () =>
      Effect.gen(function* () {
        const { entries } = yield* Foreign
        const to = yield* session({ stream: "orders:{{payload.type}}", database: 3 })
        const body = JSON.stringify({ type: "paid", text: "ж\r\n$5".repeat(200_000) })
        const { answer } = yield* sent(to, body, "evt_one")
        expect(answer?.body.toString()).toMatch(/^\{"id":"\d+-\d+"\}$/)
        const [entry, ...more] = yield* Effect.promise(() => entries("orders:paid", 3))
        expect(more).toEqual([])
        expect(entry).toEqual({
          message_id: "evt_one",
          event_id: "evt_one",
          request_id: "req_1",
          source_id: "src_1",
          connection_id: "con_1",
          destination_id: "des_1",
          attempt_number: "1",
          created_at: "1970-01-01T00:00:00.000Z",
          content_type: "application/json",
          headers: '{"content-type":"application/json"}',
          body
        })
      })
    )

    it.effect("Entry is added over TLS, and not at a server with another certificate", () =>
      Effect.gen(function* () {
        const { entries, tlsPort } = yield* Foreign
        const secure = { port: tlsPort, tls_mode: "verify-full", stream: "orders:tls" }
        expect(told(yield* sent(yield* session({ ...secure, host: "target.test" })))).toBe(200)
        expect(told(yield* sent(yield* session({ ...secure, host: "other.example" })))).toEqual({
          code: "ERR_TLS_CERT_ALTNAME_INVALID",
          final: false,
          broken: true
        })
        expect(yield* Effect.promise(() => entries("orders:tls"))).toHaveLength(1)
      })
    )

    it.effect(
      "Wrong password, unknown user, missing right and missing sign-in are reported as rejected credentials",
      () =>
        Effect.gen(function* () {
          expect(told(yield* sent(yield* session({}, { ...auth, password: "wrong" })))).toEqual(notIn)
          expect(told(yield* sent(yield* session({}, { ...auth, username: "nobody" })))).toEqual(notIn)
          expect(told(yield* sent(yield* session({ stream: "invoices" })))).toEqual(notIn)
          expect(told(yield* sent(yield* session({}, {})))).toEqual(notIn)
        })
    )

    it.effect("Key that is no stream is a permanent failure, and a database that there is not is none", () =>
      Effect.gen(function* () {
        const { owner } = yield* Foreign
        yield* Effect.promise(() => owner("SET", "orders:text", "a"))
        expect(told(yield* sent(yield* session({ stream: "orders:text" })))).toEqual({ ...refused, final: true })
        const nowhere = yield* sent(yield* session({ database: 1_000 }))
        expect(told(nowhere)).toEqual(refused)
        expect(nowhere.failure?.message).toContain("DB index is out of range")
      })
    )

    it.effect(
      "Server whose memory is full refuses an entry, and takes it over the same connection when there is room",
      () =>
        Effect.gen(function* () {
          const { entries, owner } = yield* Foreign
          const to = yield* session({ stream: "orders:full" })
          yield* Effect.promise(() => owner("CONFIG", "SET", "maxmemory", "1"))
          const full = yield* sent(to)
          expect(told(full)).toEqual(refused)
          expect(full.failure?.message).toContain("the memory of the server is full (OOM)")
          yield* Effect.promise(() => owner("CONFIG", "SET", "maxmemory", "0"))
          expect(told(yield* sent(to))).toBe(200)
          expect(yield* Effect.promise(() => entries("orders:full"))).toHaveLength(1)
        })
    )

    it.effect("Stream keeps about as many entries as its destination says", () =>
      Effect.gen(function* () {
        const { entries } = yield* Foreign
        const to = yield* session({ stream: "orders:few", max_length: 50 })
        yield* Effect.forEach(Array.from({ length: 400 }), () => sent(to), { concurrency: 50 })
        // Redis drops whole blocks of 100 entries.
        expect((yield* Effect.promise(() => entries("orders:few"))).length).toBeLessThan(200)
      })
    )

    it.effect("Server that is killed in the middle loses no confirmed entry, and is used again when it is back", () =>
      Effect.gen(function* () {
        const { entries, kill, start } = yield* Foreign
        const to = yield* session({ stream: "orders:killed" })
        const { confirmed, finals } = yield* sentUntilKilled(to, kill)
        expect(finals).toEqual([false])
        yield* start
        expect(told(yield* sent(to, "{}", "evt_after"))).toBe(200)
        const found = new Set(
          (yield* Effect.promise(() => entries("orders:killed"))).map((entry) => entry["message_id"])
        )
        expect([...confirmed, "evt_after"].filter((id) => !found.has(id))).toEqual([])
      })
    )
  })
})
