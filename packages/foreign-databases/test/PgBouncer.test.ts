import { describe, expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import type { Session } from "@tidegate/connectors/Connector"
import type { Config } from "@tidegate/connectors/Settings"
import { type Ended, sent, servers, sessionOf, told } from "./Delivering.ts"
import { ownPostgres, type OwnPostgres } from "./OwnPostgres.ts"
import { type Pooler, pooler as startPooler, program } from "./Pooler.ts"

/** Against a real PgBouncer, where one is installed (`apt-get install pgbouncer`). */

class Foreign extends Context.Service<Foreign, OwnPostgres>()("Foreign") {}

const writer = { username: "writer", password: "wr1ter-p4ssword" }

const world = Layer.merge(
  // A pooler that had few left is tried again at once.
  servers({ fewerMs: 0 }),
  Layer.effect(
    Foreign,
    Effect.gen(function* () {
      const server = yield* ownPostgres
      yield* server.query(`create role writer login password '${writer.password}'`)
      yield* server.query("create table orders (event_id text unique, payload jsonb not null)")
      yield* server.query("grant all on orders to writer")
      return server
    })
  )
)

/** A pooler in front of the server, with so many connections of its own. */
const pooler = Effect.fnUntraced(function* (mode: string, size: number) {
  const { database, port } = yield* Foreign
  return yield* startPooler(port, database, writer, mode, size)
})

const configOf = ({ database }: OwnPostgres, { port }: Pooler, change: Config = {}): Config => ({
  host: "127.0.0.1",
  port,
  database,
  table: "orders",
  event_id_column: "event_id",
  tls_mode: "disable",
  connect_timeout: 1,
  ...change
})

/** How so many events end that are sent at once. */
const all = (session: Session, name: string, count: number) =>
  Effect.all(
    Array.from({ length: count }, (_, i) => sent(session, "{}", `evt_${name}_${i}`)),
    { concurrency: "unbounded" }
  )

const stored = Effect.fnUntraced(function* () {
  const { query } = yield* Foreign
  const [row] = yield* query("select count(*)::int as count from orders")
  yield* query("truncate orders")
  return Number(row!["count"])
})

describe.skipIf(program === undefined)("Database destination behind PgBouncer", () => {
  layer(world, { excludeTestServices: true })((it) => {
    it.effect.each([
      ["session", 4, 4],
      ["session", 2, 2],
      ["transaction", 4, 4],
      ["transaction", 1, 4],
      ["statement", 1, 4]
    ] as const)("Pooler in %s mode with %i connections accepts up to %i concurrent inserts", ([mode, size, most]) =>
      Effect.gen(function* () {
        const server = yield* Foreign
        // They wait for each other, and a busy machine takes its time for each: no time limit is meant to end one of them.
        const config = configOf(server, yield* pooler(mode, size), { max_concurrency: most, connect_timeout: 30 })
        const session = yield* sessionOf(config, writer)
        const ends = yield* all(session, "a", 20)
        expect(ends.map(told)).toEqual(Array.from({ length: 20 }, () => 200))
        expect(yield* stored()).toBe(20)
      })
    )

    it.effect(
      "Pooler with fewer connections than allowed limits the destination, and unsent rows are retried later",
      () =>
        Effect.gen(function* () {
          const server = yield* Foreign
          const pool = yield* pooler("session", 2)
          const session = yield* sessionOf(configOf(server, pool, { max_concurrency: 4 }), writer)
          const first = yield* all(session, "first", 20)
          // What was left over was not sent, which is no attempt; the others have gone by the two that there are.
          const left = first.filter(({ failure }) => failure !== null)
          expect(left.map(({ failure }) => [failure!.unsent, failure!.broken])).toEqual([
            [true, false],
            [true, false]
          ])
          expect(yield* stored()).toBe(18)
          pool.resize(4)
          let second: ReadonlyArray<Ended> = []
          // It reads its settings in its own time.
          do second = yield* all(session, "second", 20)
          while ((yield* stored()) < 20)
          expect(second.map(told)).toEqual(Array.from({ length: 20 }, () => 200))
        })
    )

    it.effect("Pooler without a free connection fails an attempt within the connect timeout and states the cause", () =>
      Effect.gen(function* () {
        const server = yield* Foreign
        const pool = yield* pooler("session", 1)
        const holder = yield* sessionOf(configOf(server, pool), writer)
        expect(told(yield* sent(holder, "{}", "evt_held"))).toBe(200)
        const { failure } = yield* sent(yield* sessionOf(configOf(server, pool), writer), "{}", "evt_late")
        expect([failure!.code, failure!.final, failure!.unsent]).toEqual(["TIMEOUT", false, undefined])
        expect(failure!.message).toContain("config.max_concurrency")
        expect(yield* stored()).toBe(1)
      })
    )
  })
})
