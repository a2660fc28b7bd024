import { describe, expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import type { Config } from "@tidegate/connectors/Settings"
import { mysql } from "../../connectors/src/Mysql.ts"
import { brokers, brokerSession } from "./Brokering.ts"
import { sent, told } from "./Delivering.ts"
import { ownMariaDb, type OwnMariaDb, program } from "./OwnMariaDb.ts"

/** Rows of several events in one statement, against a real MariaDB, where one is installed (`apt-get install mariadb-server`). */

class Foreign extends Context.Service<Foreign, OwnMariaDb>()("BatchedMariaDb") {}

const world = Layer.merge(brokers(), Layer.effect(Foreign, ownMariaDb))

/** A table of its own, and a session that writes to it in batches of ten. */
const table = Effect.fnUntraced(function* (name: string, more = "", change: Config = {}) {
  const { owner, port } = yield* Foreign
  const ask = (statement: string) => Effect.promise(() => owner(statement))
  yield* ask(`create table shop.${name} (payload json, event_id varchar(64) unique, meta json, at datetime(6) ${more})`)
  const session = yield* brokerSession(mysql, {
    host: "target.test",
    port,
    database: "shop",
    table: name,
    event_id_column: "event_id",
    metadata_column: "meta",
    delivered_at_column: "at",
    batch: { max_count: 10 },
    ...change
  })
  return {
    ask,
    ids: Effect.map(ask(`select event_id from shop.${name} order by 1`), (found) => found.split("\n")),
    send: (bodies: ReadonlyArray<string>) =>
      Effect.forEach(bodies, (body, i) => sent(session, body, `evt_${i}`), { concurrency: "unbounded" }),
    /** How many statements have inserted rows into any table. */
    inserts: Effect.map(ask("show global status like 'Com_insert'"), (said) => Number(said.split("\t")[1]))
  }
})

const numbered = Array.from({ length: 10 }, (_, n) => JSON.stringify({ n }))
const idsBut = (...without: ReadonlyArray<number>) =>
  numbered.flatMap((_, n) => (without.includes(n) ? [] : [`evt_${n}`]))
const constraint = { code: "DB_CONSTRAINT", final: true, broken: false }

describe.skipIf(program === undefined)("Batch of rows in MariaDB (skipped if it is not installed)", () => {
  layer(world, { excludeTestServices: true })((it) => {
    it.effect("Ten events are ten rows of one statement, each with its own values", () =>
      Effect.gen(function* () {
        const { ask, ids, inserts, send } = yield* table("whole")
        const before = yield* inserts
        const ends = yield* send(numbered)
        expect(new Set(ends.map(({ answer }) => answer?.body.toString()))).toEqual(
          new Set(['{"inserted":10,"rows":10}'])
        )
        expect((yield* inserts) - before).toBe(1)
        expect(yield* ids).toEqual(idsBut())
        const wrong = `select count(*) from shop.whole where json_value(payload, '$.n') <> substr(event_id, 5)
          or json_value(meta, '$.event_id') <> event_id or at is null`
        expect(yield* ask(wrong)).toBe("0")
      })
    )

    it.effect("Only the row that is refused fails in a batch, and the connection goes on", () =>
      Effect.gen(function* () {
        const { ids, send } = yield* table("bad", ", constraint not_three check (json_value(payload, '$.n') <> 3)")
        expect((yield* send(numbered)).map(told)).toEqual(numbered.map((_, n) => (n === 3 ? constraint : 200)))
        expect(yield* ids).toEqual(idsBut(3))
      })
    )

    it.effect("A batch that is repeated is as good as inserted with IGNORE, and fails row by row without it", () =>
      Effect.gen(function* () {
        const ignoring = yield* table("again", "", { conflict_mode: "IGNORE" })
        yield* ignoring.send(numbered)
        yield* ignoring.ask("delete from shop.again where event_id in ('evt_4', 'evt_7')")
        const ends = yield* ignoring.send(numbered)
        expect(ends.map(told)).toEqual(numbered.map(() => 200))
        expect(ends.map(({ answer }) => JSON.parse(answer!.body.toString()).inserted)).toEqual(
          numbered.map((_, n) => (n === 4 || n === 7 ? 1 : 0))
        )
        expect(yield* ignoring.ids).toEqual(idsBut())
        const strict = yield* table("once")
        yield* strict.send(numbered.slice(0, 5))
        expect((yield* strict.send(numbered)).map(told)).toEqual(numbered.map((_, n) => (n < 5 ? constraint : 200)))
      })
    )

    it.effect("The largest batch of rows is one statement, and the server keeps few statements", () =>
      Effect.gen(function* () {
        const { ask, inserts, send } = yield* table("most", "", { batch: { max_count: 500 } })
        const before = yield* inserts
        const bodies = Array.from({ length: 500 }, () => '{"n":1}')
        expect(new Set((yield* send(bodies)).map(told))).toEqual(new Set([200]))
        expect((yield* inserts) - before).toBe(1)
        yield* ask("delete from shop.most where event_id <> 'evt_77'")
        const again = yield* send(bodies)
        expect(again.map(told)).toEqual(bodies.map((_, n) => (n === 77 ? constraint : 200)))
        const [, kept] = (yield* ask("show global status like 'Prepared_stmt_count'")).split("\t")
        // Of this connection two, and of those of the other tests that are not closed yet.
        expect(Number(kept)).toBeLessThan(12)
      })
    )
  })
})
