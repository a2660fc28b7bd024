import { describe, expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import type { Config } from "@tidegate/connectors/Settings"
import { sent, servers, sessionOf, told } from "./Delivering.ts"
import { ownPostgres, type OwnPostgres } from "./OwnPostgres.ts"

/** Rows of several events in one statement, against a real PostgreSQL. Rows of one statement have the same `xmin`. */

class Foreign extends Context.Service<Foreign, OwnPostgres>()("BatchedPostgres") {}

const making = Effect.tap(ownPostgres, ({ query }) =>
  Effect.forEach(
    [
      "create role writer login password 'wr1ter-p4ssword'",
      `create function refuse() returns trigger language plpgsql as $$
         begin
           if new.payload->>'n' = '3' then raise exception 'not this one'; end if;
           return new;
         end $$`
    ],
    query
  )
)
const world = Layer.merge(servers(), Layer.effect(Foreign, making))

/** A table of its own, and a session that writes to it in batches of ten. */
const table = Effect.fnUntraced(function* (name: string, more = "", change: Config = {}) {
  const { database, port, query } = yield* Foreign
  yield* query(`create table ${name} (event_id text unique, payload jsonb, metadata jsonb, at timestamptz ${more})`)
  yield* query(`grant all on ${name} to writer`)
  const session = yield* sessionOf(
    {
      host: "127.0.0.1",
      port,
      database,
      table: name,
      event_id_column: "event_id",
      metadata_column: "metadata",
      delivered_at_column: "at",
      tls_mode: "disable",
      batch: { max_count: 10 },
      ...change
    },
    { username: "writer", password: "wr1ter-p4ssword" }
  )
  return {
    query,
    send: (bodies: ReadonlyArray<string>) =>
      Effect.forEach(bodies, (body, i) => sent(session, body, `evt_${i}`), { concurrency: "unbounded" }),
    rows: query(
      `select event_id, payload::text, metadata->>'event_id' as id, at is not null as timed, xmin::text from ${name} order by 1`
    )
  }
})

const numbered = Array.from({ length: 10 }, (_, n) => JSON.stringify({ n }))

layer(world, { excludeTestServices: true })((it) => {
  describe("Batch of rows in PostgreSQL", () => {
    it.effect("Ten events are ten rows of one statement, each with its own values", () =>
      Effect.gen(function* () {
        const { rows, send } = yield* table("whole")
        const bodies = [...numbered.slice(2), "no json", String.raw`{"big":12345678901234567890,"text":"'); --ж"}`]
        const ends = yield* send(bodies)
        expect(new Set(ends.map(({ answer }) => answer?.body.toString()))).toEqual(
          new Set(['{"inserted":10,"rows":10}'])
        )
        const found = yield* rows
        expect(new Set(found.map((row) => row["xmin"])).size).toBe(1)
        for (const [i, row] of found.entries()) {
          expect(row).toMatchObject({ event_id: `evt_${i}`, id: `evt_${i}`, timed: true })
          const body = bodies[i]!
          expect(row["payload"]).toBe(body === "no json" ? '"no json"' : body.replaceAll(/([:,])/g, "$1 "))
        }
      })
    )

    const bad: ReadonlyArray<readonly [name: string, more: string, body: string, as: object, trigger?: true]> = [
      ["a constraint", ", check ((payload->>'n')::int <> 3)", '{"n":3}', { code: "DB_CONSTRAINT", final: true }],
      ["a zero character", "", String.raw`"\u0000"`, { code: "INVALID_CHARACTER", final: true }],
      [
        "a reference",
        ", n int generated always as ((payload->>'n')::int) stored references known",
        '{"n":3}',
        { code: "DB_CONSTRAINT", final: false }
      ],
      ["a trigger", "", '{"n":3}', { code: "BAD_RESPONSE", final: false }, true]
    ]
    for (const [i, [name, more, body, as, hasTrigger]] of bad.entries()) {
      it.effect(`Only the row that is refused fails in a batch: ${name}`, () =>
        Effect.gen(function* () {
          const { query } = yield* Foreign
          yield* query("create table if not exists known (n int primary key)")
          yield* query("insert into known select n from generate_series(0, 9) n where n <> 3 on conflict do nothing")
          const { rows, send } = yield* table(`bad_${i}`, more)
          if (hasTrigger) {
            yield* query(`create trigger t before insert on bad_${i} for each row execute function refuse()`)
          }
          const ends = yield* send(numbered.map((usual, n) => (n === 3 ? body : usual)))
          expect(ends.map(told)).toEqual(
            Array.from({ length: 10 }, (_, n) => (n === 3 ? { broken: false, ...as } : 200))
          )
          expect((yield* rows).map((row) => row["event_id"])).toEqual(
            numbered.flatMap((_, n) => (n === 3 ? [] : [`evt_${n}`]))
          )
        })
      )
    }

    it.effect("A batch that is repeated is as good as inserted with IGNORE, and fails row by row without it", () =>
      Effect.gen(function* () {
        const ignoring = yield* table("again", "", { conflict_mode: "IGNORE" })
        expect((yield* ignoring.send(numbered)).map(told)).toEqual(numbered.map(() => 200))
        const { query } = yield* Foreign
        yield* query("delete from again where event_id = 'evt_7'")
        const ends = yield* ignoring.send(numbered)
        expect(ends.map(({ answer }) => answer?.body.toString())).toEqual(
          numbered.map(() => '{"inserted":1,"rows":10}')
        )
        expect(yield* ignoring.rows).toHaveLength(10)
        const strict = yield* table("once")
        yield* strict.send(numbered.slice(0, 5))
        const constraint = { code: "DB_CONSTRAINT", final: true, broken: false }
        expect((yield* strict.send(numbered)).map(told)).toEqual(numbered.map((_, n) => (n < 5 ? constraint : 200)))
      })
    )

    it.effect(
      "A missing table is no row's fault: the batch fails as a whole, and arrives when the table is there",
      () =>
        Effect.gen(function* () {
          const { query, rows, send } = yield* table("late")
          yield* query("alter table late rename to hidden")
          const missing = { code: "BAD_RESPONSE", final: false, broken: false }
          expect((yield* send(numbered)).map(told)).toEqual(numbered.map(() => missing))
          yield* query("alter table hidden rename to late")
          expect((yield* send(numbered)).map(told)).toEqual(numbered.map(() => 200))
          expect(yield* rows).toHaveLength(10)
        })
    )

    it.effect("The largest batch of rows is one statement", () =>
      Effect.gen(function* () {
        const { rows, send } = yield* table("most", "", { batch: { max_count: 500 } })
        const ends = yield* send(Array.from({ length: 500 }, () => '{"n":1}'))
        expect(ends.map(told)).toEqual(ends.map(() => 200))
        expect(new Set((yield* rows).map((row) => row["xmin"])).size).toBe(1)
      })
    )
  })
})
