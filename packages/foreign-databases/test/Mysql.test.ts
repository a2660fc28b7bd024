import { Context, Effect, Layer } from "effect"
import { describe, expect, layer } from "@effect/vitest"
import type { Config } from "@tidegate/connectors/Settings"
import { mysql } from "../../connectors/src/Mysql.ts"
import { auth, brokers, brokerSession, sentUntilKilled } from "./Brokering.ts"
import { sent, told } from "./Delivering.ts"
import { ownMariaDb, type OwnMariaDb, program } from "./OwnMariaDb.ts"

/** Against a real MariaDB, where one is installed (`apt-get install mariadb-server`). */

class Foreign extends Context.Service<Foreign, OwnMariaDb>()("ForeignMariaDb") {}

const world = Layer.merge(brokers(), Layer.effect(Foreign, ownMariaDb))

const refused = { code: "BAD_RESPONSE", final: false, broken: false }
const notIn = { ...refused, code: "AUTH_REJECTED" }
const constraint = { code: "DB_CONSTRAINT", final: true, broken: false }

/** A table of its own. */
const table = (name: string, more = "") =>
  Effect.flatMap(Foreign, ({ owner }) =>
    Effect.promise(() =>
      owner(`create table shop.${name} (payload json, event_id varchar(64) unique, meta json, at datetime(6) ${more})`)
    )
  )

const rows = (select: string) => Effect.flatMap(Foreign, ({ owner }) => Effect.promise(() => owner(select)))

const session = Effect.fnUntraced(function* (
  name: string,
  change: Config = {},
  as: Readonly<Record<string, string>> = auth
) {
  const { port } = yield* Foreign
  const config = { host: "target.test", port, database: "shop", table: name, event_id_column: "event_id", ...change }
  return yield* brokerSession(mysql, config, as)
})

describe.skipIf(program === undefined)("Destination in a table of MariaDB (skipped if it is not installed)", () => {
  layer(world, { excludeTestServices: true })((it) => {
    it.effect("Row has the body, the event's id, its metadata and the server's time, over TLS and in the clear", () =>
      Effect.gen(function* () {
        yield* table("whole")
        const body = JSON.stringify({ text: `'; drop table shop.whole; -- \\ \0 ж😀 ${"ж".repeat(400_000)}` })
        const columns = { metadata_column: "meta", delivered_at_column: "at" }
        const secure = yield* sent(yield* session("whole", columns), body, "evt_one")
        expect(secure.failure).toBeNull()
        expect(secure.answer?.body.toString()).toBe('{"inserted":1}')
        const plain = yield* session("whole", { ...columns, tls_mode: "disable" })
        expect(told(yield* sent(plain, "no json", "evt_two"))).toBe(200)
        const found = yield* rows(
          "select event_id, sha2(payload, 256), json_value(meta, '$.event_id'), at > utc_timestamp() - interval 1 day from shop.whole order by 1"
        )
        const digest = (text: string) =>
          Effect.promise(() => crypto.subtle.digest("SHA-256", Buffer.from(text))).pipe(
            Effect.map((bytes) => Buffer.from(bytes).toString("hex"))
          )
        expect(found.split("\n")).toEqual([
          `evt_one\t${yield* digest(body)}\tevt_one\t1`,
          `evt_two\t${yield* digest('"no json"')}\tevt_two\t1`
        ])
      })
    )

    it.effect("Server with another certificate gets no row", () =>
      Effect.gen(function* () {
        yield* table("other")
        expect(told(yield* sent(yield* session("other", { host: "other.example" })))).toEqual({
          code: "ERR_TLS_CERT_ALTNAME_INVALID",
          final: false,
          broken: true
        })
        expect(yield* rows("select count(*) from shop.other")).toBe("0")
      })
    )

    it.effect("Wrong password, unknown user, unknown way to sign in and missing right are rejected credentials", () =>
      Effect.gen(function* () {
        yield* table("closed")
        expect(told(yield* sent(yield* session("closed", {}, { ...auth, password: "wrong" })))).toEqual(notIn)
        expect(told(yield* sent(yield* session("closed", {}, { ...auth, username: "nobody" })))).toEqual(notIn)
        expect(told(yield* sent(yield* session("closed", {}, { ...auth, username: "other" })))).toEqual(notIn)
        expect(told(yield* sent(yield* session("db", { database: "mysql" })))).toEqual(notIn)
      })
    )

    it.effect("Row that is there already is a permanent failure, or as good as inserted", () =>
      Effect.gen(function* () {
        yield* table("twice")
        const strict = yield* session("twice")
        expect(told(yield* sent(strict, "1", "evt_1"))).toBe(200)
        expect(told(yield* sent(strict, "2", "evt_1"))).toEqual(constraint)
        const { answer, failure } = yield* sent(yield* session("twice", { conflict_mode: "IGNORE" }), "3", "evt_1")
        expect(failure).toBeNull()
        expect(answer?.body.toString()).toBe('{"inserted":0}')
        expect(yield* rows("select payload from shop.twice")).toBe("1")
        // The connection is still good.
        expect(told(yield* sent(strict, "4", "evt_2"))).toBe(200)
      })
    )

    it.effect("Missing table is tried again, a value that does not fit is not, and neither is cut", () =>
      Effect.gen(function* () {
        const early = yield* session("late")
        expect(told(yield* sent(early))).toEqual(refused)
        yield* table("late", ", check (json_valid(payload)), constraint small check (length(payload) < 100)")
        expect(told(yield* sent(early))).toBe(200)
        expect(told(yield* sent(early, JSON.stringify("a".repeat(100)), "evt_2"))).toEqual(constraint)
        const long = yield* sent(early, "1", "e".repeat(65))
        expect(told(long)).toEqual({ ...refused, final: true })
        expect(long.failure?.message).toContain("1406 22001")
        expect(yield* rows("select count(*) from shop.late")).toBe("1")
      })
    )

    it.effect("Server that is killed in the middle loses no confirmed row, and is used again when it is back", () =>
      Effect.gen(function* () {
        const { kill, start } = yield* Foreign
        yield* table("killed")
        const to = yield* session("killed")
        const { confirmed, finals } = yield* sentUntilKilled(to, kill)
        expect(finals).toEqual([false])
        yield* start
        expect(told(yield* sent(to, "{}", "evt_after"))).toBe(200)
        const found = new Set((yield* rows("select event_id from shop.killed")).split("\n"))
        expect([...confirmed, "evt_after"].filter((id) => !found.has(id))).toEqual([])
      })
    )
  })
})
