import { describe, expect, it, layer } from "@effect/vitest"
import { brotliCompressSync, gzipSync } from "node:zlib"
import { Context, Effect, Exit, Fiber, Layer, Scope } from "effect"
import type { Config } from "@tidegate/connectors/Settings"
import { tcpTarget } from "../../egress/test/targets.ts"
import { statementOf } from "../src/PostgresServers.ts"
import { factsOf } from "../../connectors/test/Facts.ts"
import { endedOf, message, sent, servers, sessionOf, told } from "./Delivering.ts"
import { ownPostgres, type OwnPostgres } from "./OwnPostgres.ts"

/** Against a real PostgreSQL, in the clear and over TLS. */

class Foreign extends Context.Service<Foreign, OwnPostgres>()("Foreign") {}

const world = Layer.merge(
  servers(),
  Layer.effect(
    Foreign,
    Effect.gen(function* () {
      const server = yield* ownPostgres
      for (const statement of [
        "create role writer login password 'wr1ter-p4ssword'",
        "create role nobody login password 'x-of-nobody'",
        "create role lonely login password 'x-of-lonely' connection limit 1",
        "create schema shop",
        `create table shop.orders (event_id text unique, payload jsonb not null, metadata jsonb, delivered_at timestamptz,
           plain text, old json, number int, checked jsonb check (checked is null))`,
        `create table shop."Select" ("Order" jsonb)`,
        "grant usage on schema shop to writer, lonely, nobody",
        "grant all on all tables in schema shop to writer, lonely"
      ]) {
        yield* server.query(statement)
      }
      return server
    })
  )
)

const writer = { username: "writer", password: "wr1ter-p4ssword" }

const configOf = ({ database, port }: OwnPostgres, change: Config = {}): Config => ({
  host: "127.0.0.1",
  port,
  database,
  schema: "shop",
  table: "orders",
  tls_mode: "disable",
  ...change
})

/** Sends once by a destination with these settings. */
const send = (change: Config = {}, body: string | Uint8Array = "{}", auth = writer) =>
  Effect.gen(function* () {
    const server = yield* Foreign
    const session = yield* sessionOf(configOf(server, change), auth)
    return yield* sent(session, body, "evt_of_this")
  }).pipe(Effect.scoped)

const rows = Effect.fnUntraced(function* (columns: string) {
  const { query } = yield* Foreign
  const found = yield* query(`select ${columns} from shop.orders`)
  yield* query("truncate shop.orders")
  return found
})

it("Insert statement quotes its names", () => {
  const table = { schema: "s", table: 'a"b', columns: ["p", "e"], timed: ["d"], unique: "e" }
  expect(statementOf(table as never, 1)).toBe(
    'insert into "s"."a""b" ("p", "e", "d") values ($1, $2, now()) on conflict ("e") do nothing'
  )
})

layer(world, { excludeTestServices: true })((it) => {
  describe("Inserted row", () => {
    it.effect("Inserted row has the body and the columns that the destination asks for", () =>
      Effect.gen(function* () {
        const columns = {
          event_id_column: "event_id",
          metadata_column: "metadata",
          delivered_at_column: "delivered_at"
        }
        const { answer } = yield* send(columns, '{"id": 7, "big": 12345678901234567890}')
        expect(answer).toMatchObject({ status: 200, bodyTruncated: false })
        expect(answer!.body.toString()).toBe('{"inserted":1}')
        const [row] = yield* rows("event_id, payload::text, metadata, delivered_at > now() - interval '1 min' as fresh")
        expect(row).toMatchObject({
          event_id: "evt_of_this",
          payload: '{"id": 7, "big": 12345678901234567890}',
          fresh: true
        })
        expect(row!["metadata"]).toMatchObject({ source_id: "src_1", method: "POST", path: "/orders", query: "a=b" })
      })
    )

    const kept = [
      ["a text", "hello", '"hello"'],
      ["nothing", "", "null"],
      ["bytes", Buffer.from([0xff, 0x00, 0x41]), '"\ufffd\ufffdA"'],
      [
        "quotes and what looks like SQL",
        `'); drop table shop.orders; --"`,
        String.raw`"'); drop table shop.orders; --\""`
      ]
    ] as const
    for (const [name, body, stored] of kept) {
      it.effect(`Inserted row keeps a body that is not JSON: ${name}`, () =>
        Effect.gen(function* () {
          expect(told(yield* send({}, body))).toBe(200)
          expect(yield* rows("payload::text")).toEqual([{ payload: stored }])
        })
      )
    }

    const json = '{"a": 1}'
    const compressed = [
      ["gzip", gzipSync(json), 200],
      ["br", brotliCompressSync(json), 200],
      // Of a charset, and of what somebody on the way has undone.
      ["utf-8", Buffer.from(json), 200],
      ["gzip", Buffer.from(json), 200],
      ["compress", Buffer.from([0x1f, 0x9d, 0x90, 0xff]), { code: "REQUEST_TOO_LARGE", final: true, broken: false }],
      ["gzip", gzipSync("x".repeat(2_000_000)), { code: "REQUEST_TOO_LARGE", final: true, broken: false }]
    ] as const
    for (const [coding, body, end] of compressed) {
      it.effect(`Row for a ${coding} body of ${body.length} bytes has the decoded body, or is refused`, () =>
        Effect.gen(function* () {
          const session = yield* sessionOf(configOf(yield* Foreign), writer)
          const headers = { "content-type": "application/json", "content-encoding": coding }
          const one = message(body, { headers })
          const ended = yield* Effect.exit(session.send(one, factsOf(one), () => true))
          expect(told(endedOf(ended))).toEqual(end)
          expect(yield* rows("payload::text")).toEqual(end === 200 ? [{ payload: json }] : [])
        }).pipe(Effect.scoped)
      )
    }

    for (const column of ["plain", "old"]) {
      it.effect(`Inserted row has the JSON in a column of another type: ${column}`, () =>
        Effect.gen(function* () {
          const { query } = yield* Foreign
          yield* query("alter table shop.orders alter payload drop not null")
          expect(told(yield* send({ payload_column: column }, '{"a":  1}'))).toBe(200)
          expect(yield* rows(`${column}::text as it`)).toEqual([{ it: '{"a":  1}' }])
          yield* query("alter table shop.orders alter payload set not null")
        })
      )
    }

    it.effect("Inserted row can go to names that must be quoted", () =>
      Effect.gen(function* () {
        expect(told(yield* send({ table: "Select", payload_column: "Order" }))).toBe(200)
      })
    )

    it.effect("Inserted row can have several megabytes", () =>
      Effect.gen(function* () {
        expect(told(yield* send({}, JSON.stringify("x".repeat(9_000_000))))).toBe(200)
        expect(yield* rows("length(payload::text) as it")).toEqual([{ it: 9_000_002 }])
      })
    )

    it.effect("Duplicate row fails permanently, or succeeds in the conflict mode IGNORE", () =>
      Effect.gen(function* () {
        const columns = { event_id_column: "event_id" }
        expect(told(yield* send(columns))).toBe(200)
        const again = yield* send(columns)
        expect(told(again)).toEqual({ code: "DB_CONSTRAINT", final: true, broken: false })
        expect(again.failure!.message).toContain("there is such a row already (23505)")
        const { answer } = yield* send({ ...columns, conflict_mode: "IGNORE" })
        expect([answer!.status, answer!.body.toString()]).toEqual([200, '{"inserted":0}'])
        expect(yield* rows("event_id")).toHaveLength(1)
      })
    )
  })

  const final = { code: "BAD_RESPONSE", final: true, broken: false }
  const missing = { ...final, final: false }
  const refused: ReadonlyArray<readonly [name: string, change: Config, body: string, as: object, says: string]> = [
    ["a table that is not there", { table: "nothing" }, "{}", missing, "no such table (42P01)"],
    ["a column that is not there", { payload_column: "nothing" }, "{}", missing, "no such column (42703)"],
    ["a schema that is not there", { schema: "nothing" }, "{}", missing, "no such table (42P01)"],
    [
      "a database that is not there",
      { database: "nothing" },
      "{}",
      { ...missing, broken: true },
      "no such database (3D000)"
    ],
    ["a column of another type", { payload_column: "number" }, "{}", final, "does not take the value (22P02)"],
    [
      "a constraint",
      { payload_column: "checked" },
      "{}",
      { ...final, code: "DB_CONSTRAINT" },
      "does not allow the row (23"
    ],
    ["IGNORE without a constraint", { event_id_column: "plain", conflict_mode: "IGNORE" }, "{}", missing, "(42P10)"],
    ["a zero in JSON", {}, String.raw`"\u0000"`, { ...final, code: "INVALID_CHARACTER" }, "(22P05)"],
    ["text too long", {}, "x".repeat(1024 * 1024 + 1), { ...final, code: "REQUEST_TOO_LARGE" }, "too long"],
    [
      "text too long, like a word",
      {},
      "t".repeat(1024 * 1024 + 1),
      { ...final, code: "REQUEST_TOO_LARGE" },
      "too long"
    ],
    [
      "text too long, like a list",
      {},
      `[${"1 ".repeat(1024 * 1024)}]`,
      { ...final, code: "REQUEST_TOO_LARGE" },
      "too long"
    ]
  ]

  describe("Refused rows", () => {
    for (const [name, change, body, as, says] of refused) {
      it.effect(`Database row is refused with a specific error: ${name}`, () =>
        Effect.gen(function* () {
          const ended = yield* send(change, body)
          expect(told(ended)).toEqual(as)
          expect(ended.failure!.message).toContain(says)
          expect(ended.failure!.message).not.toContain(writer.password)
        })
      )
    }

    const rejected = { code: "AUTH_REJECTED", final: false }
    it.effect("Wrong password, unknown user and missing right to insert are reported as rejected credentials", () =>
      Effect.gen(function* () {
        const wrong = yield* send({}, "{}", { ...writer, password: "wr0ng-p4ssword" })
        expect(told(wrong)).toEqual({ ...rejected, broken: true })
        expect(wrong.failure!.message).toContain("28P01")
        expect(wrong.failure!.message).not.toContain("wr0ng")
        expect(told(yield* send({}, "{}", { username: "stranger", password: "x" }))).toEqual({
          ...rejected,
          broken: true
        })
        const nobody = { username: "nobody", password: "x-of-nobody" }
        expect(told(yield* send({}, "{}", nobody))).toEqual({ ...rejected, broken: false })
      })
    )

    it.effect("Database session continues after a refused row", () =>
      Effect.gen(function* () {
        const server = yield* Foreign
        const session = yield* sessionOf(configOf(server, { event_id_column: "event_id" }), writer)
        expect(told(yield* sent(session, "1", "evt_a"))).toBe(200)
        expect(told(yield* sent(session, "1", "evt_a"))).toEqual({ ...final, code: "DB_CONSTRAINT" })
        expect(told(yield* sent(session, "1", "evt_b"))).toBe(200)
        const backends = yield* server.query("select pid from pg_stat_activity where usename = 'writer'")
        expect(backends).toHaveLength(1)
        yield* rows("1")
      })
    )
  })

  const broken = { final: false, broken: true }
  const connecting: ReadonlyArray<readonly [name: string, change: Config, as: unknown]> = [
    ["by its name", { host: "target.test" }, 200],
    ["by its address", { host: "127.0.0.1" }, 200],
    ["by another name", { host: "other.example" }, { code: "ERR_TLS_CERT_ALTNAME_INVALID", ...broken }],
    ["without encryption", { host: "target.test", tls_mode: "disable" }, 200],
    ["at a port where nobody listens", { host: "127.0.0.1", port: 1 }, { code: "CONNECTION_REFUSED", ...broken }],
    ["by an unknown name", { host: "nowhere.test" }, { code: "DNS_LOOKUP_FAILED", ...broken }],
    ["at a private address", { host: "10.0.0.1" }, { code: "TARGET_NOT_ALLOWED", ...broken }]
  ]

  describe("Database server", () => {
    for (const [name, change, as] of connecting) {
      it.effect(`Connection to a database server ${name} gives the expected result`, () =>
        Effect.gen(function* () {
          const { port } = yield* Foreign
          expect(told(yield* send({ tls_mode: "verify-full", port, ...change }))).toEqual(as)
          yield* rows("1")
        })
      )
    }

    it.effect("Connection to a database server is encrypted if the destination requires it", () =>
      Effect.gen(function* () {
        const server = yield* Foreign
        const session = yield* sessionOf(configOf(server, { host: "target.test", tls_mode: "verify-full" }), writer)
        yield* sent(session)
        // Sessions of the tests before may still be ending.
        const [found] = yield* server.query(
          "select version from pg_stat_ssl join pg_stat_activity using (pid) where usename = 'writer' order by backend_start desc"
        )
        expect(found).toEqual({ version: "TLSv1.3" })
        yield* rows("1")
      })
    )

    it.effect("Database server with an unknown certificate authority receives no data", () =>
      Effect.gen(function* () {
        expect(told(yield* send({ host: "target.test", tls_mode: "verify-full" }))).toEqual({
          code: expect.stringMatching(/^(SSL_ERROR_CA_UNKNOWN|UNABLE_TO_GET_ISSUER_CERT)$/),
          ...broken
        })
      }).pipe(Effect.provide(servers({ ca: [] })))
    )

    it.effect("Attempt at a database server with too many connections can be retried", () =>
      Effect.gen(function* () {
        const server = yield* Foreign
        const lonely = { username: "lonely", password: "x-of-lonely" }
        const first = yield* sessionOf(configOf(server), lonely)
        expect(told(yield* sent(first))).toBe(200)
        const second = yield* sessionOf(configOf(server), lonely)
        const ended = yield* sent(second)
        expect(told(ended)).toEqual({ code: "DB_UNAVAILABLE", ...broken })
        expect(ended.failure!.message).toContain("too many connections (53300)")
        yield* rows("1")
      })
    )

    const ends = (user: string) =>
      `select pg_terminate_backend(pid, 5000) from pg_stat_activity where usename = '${user}'`

    it.effect("Idle connection that the database server closed costs no attempt", () =>
      Effect.gen(function* () {
        const server = yield* Foreign
        const session = yield* sessionOf(configOf(server), writer)
        expect(told(yield* sent(session))).toBe(200)
        yield* server.query(ends("writer"))
        // Its last words are there before the connection is gone for the server; then they are read.
        yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 200)))
        for (let turn = 0; turn < 20; turn++) yield* Effect.promise(() => new Promise(setImmediate))
        expect(told(yield* sent(session))).toBe(200)
        yield* rows("1")
      })
    )

    it.effect("Attempt fails and can be retried when the database server ends the connection within a statement", () =>
      Effect.gen(function* () {
        const server = yield* Foreign
        const session = yield* sessionOf(configOf(server), writer)
        yield* server.locking("begin")
        yield* server.locking("lock table shop.orders")
        const sending = yield* Effect.forkChild(sent(session))
        yield* blocked(server)
        yield* server.query(ends("writer"))
        const ended = yield* Fiber.join(sending)
        yield* server.locking("rollback")
        expect(told(ended)).toEqual({ code: "DB_UNAVAILABLE", ...broken })
        expect(ended.failure!.message).toContain("57P01")
      })
    )

    it.effect("Cancelled insert is stopped at the database server and stores nothing", () =>
      Effect.gen(function* () {
        const server = yield* Foreign
        const session = yield* sessionOf(configOf(server, { host: "target.test", tls_mode: "verify-full" }), writer)
        yield* server.locking("begin")
        yield* server.locking("lock table shop.orders")
        const sending = yield* Effect.forkChild(sent(session))
        yield* blocked(server)
        yield* Fiber.interrupt(sending)
        // The lock is still held: it is not by its end that the statement has ended.
        while ((yield* server.query(waits)).length > 0) yield* Effect.yieldNow
        yield* server.locking("rollback")
        expect(yield* rows("1")).toEqual([])
        expect(told(yield* sent(session))).toBe(200)
        yield* rows("1")
      })
    )

    it.effect("Insert stopped by the server's statement timeout fails with TIMEOUT and can be retried", () =>
      Effect.gen(function* () {
        const server = yield* Foreign
        yield* server.query("alter role writer set statement_timeout = '50ms'")
        const session = yield* sessionOf(configOf(server), writer)
        yield* server.locking("begin")
        yield* server.locking("lock table shop.orders")
        const ended = yield* sent(session)
        yield* server.locking("rollback")
        yield* server.query("alter role writer reset statement_timeout")
        expect(told(ended)).toEqual({ code: "TIMEOUT", final: false, broken: false })
      })
    )
  })

  const waits = "select pid from pg_stat_activity where usename = 'writer' and wait_event_type = 'Lock'"

  const blocked = Effect.fnUntraced(function* (server: OwnPostgres) {
    while ((yield* server.query(waits)).length === 0) yield* Effect.yieldNow
  })

  const open = (server: OwnPostgres) =>
    Effect.map(server.query("select pid from pg_stat_activity where usename = 'writer'"), (backends) => backends.length)

  /** A connection that was ended is still there for its server, for a moment. */
  const opened = Effect.fnUntraced(function* (server: OwnPostgres, count: number) {
    while ((yield* open(server)) !== count) yield* Effect.yieldNow
  })

  describe("Database connections", () => {
    it.effect("Destination opens at most its number of database connections and closes them at its end", () =>
      Effect.gen(function* () {
        const server = yield* Foreign
        const scope = yield* Scope.make()
        const session = yield* sessionOf(configOf(server, { max_concurrency: 3 }), writer).pipe(Scope.provide(scope))
        yield* server.locking("begin")
        yield* server.locking("lock table shop.orders")
        const sending = yield* Effect.forkChild(
          Effect.all(
            Array.from({ length: 10 }, () => sent(session)),
            { concurrency: 10 }
          )
        )
        while ((yield* server.query(waits)).length < 3) yield* Effect.yieldNow
        expect(yield* open(server)).toBe(3)
        yield* server.locking("rollback")
        expect((yield* Fiber.join(sending)).map(told)).toEqual(Array.from({ length: 10 }, () => 200))
        expect(yield* open(server)).toBe(3)
        yield* Scope.close(scope, Exit.void)
        yield* opened(server, 0)
        yield* rows("1")
      })
    )

    it.effect("Database connection is not used by an event that may not start any more", () =>
      Effect.gen(function* () {
        const server = yield* Foreign
        const session = yield* sessionOf(configOf(server, { event_id_column: "event_id" }), writer)
        let asked = 0
        const lost = () => {
          asked++
          return false
        }
        const ended = yield* sent(session, "{}", "evt_lost", lost)
        expect(told(ended)).toEqual({ code: "NETWORK_REQUEST_CANCELED", final: false, broken: false })
        expect(asked).toBe(1)
        expect(told(yield* sent(session, "{}", "evt_kept"))).toBe(200)
        expect(yield* open(server)).toBe(1)
        expect(yield* rows("event_id")).toEqual([{ event_id: "evt_kept" }])
      })
    )

    it.effect("Process has a limited number of database connections, and a waiting event replaces an idle one", () =>
      Effect.gen(function* () {
        const server = yield* Foreign
        const sessions = yield* Effect.forEach([1, 2, 3, 4, 5], () => sessionOf(configOf(server), writer))
        for (let round = 0; round < 3; round++) {
          const ended = yield* Effect.forEach(sessions, (session) => sent(session), { concurrency: 5 })
          expect(ended.map(told)).toEqual([200, 200, 200, 200, 200])
          while ((yield* open(server)) > 2) yield* Effect.yieldNow
        }
        yield* rows("1")
      }).pipe(Effect.provide(servers({ most: 2 })))
    )

    it.effect("Destinations whose servers never answer leave database connections for others", () =>
      Effect.gen(function* () {
        const server = yield* Foreign
        const dead = yield* Effect.acquireRelease(
          Effect.promise(() => tcpTarget(() => undefined)),
          (target) => Effect.promise(() => target[Symbol.asyncDispose]())
        )
        const stuck = { port: dead.port, connect_timeout: 30, max_concurrency: 20 }
        for (let at = 0; at < 2; at++) {
          const session = yield* sessionOf(configOf(server, stuck), writer)
          for (let n = 0; n < 20; n++) yield* Effect.forkChild(sent(session))
        }
        while (dead.connections() < 10) yield* Effect.sleep("5 millis")
        const session = yield* sessionOf(configOf(server), writer)
        expect(told(yield* sent(session))).toBe(200)
        expect(dead.connections()).toBe(10)
        yield* rows("1")
      }).pipe(Effect.scoped, Effect.provide(servers({ most: 13 })))
    )

    it.effect("Waiting event reuses a connection of its own destination when no more may be opened", () =>
      Effect.gen(function* () {
        const server = yield* Foreign
        const session = yield* sessionOf(configOf(server), writer)
        const ended = yield* Effect.all(
          Array.from({ length: 10 }, () => sent(session)),
          { concurrency: 10 }
        )
        expect(ended.map(told)).toEqual(Array.from({ length: 10 }, () => 200))
        expect(yield* open(server)).toBe(1)
        yield* rows("1")
      }).pipe(Effect.provide(servers({ most: 2 })))
    )

    it.effect("Database connections are released however a send ends", () =>
      Effect.gen(function* () {
        const server = yield* Foreign
        const nowhere = yield* sessionOf(configOf(server, { port: 1 }), writer)
        const session = yield* sessionOf(configOf(server), writer)
        yield* server.locking("begin")
        yield* server.locking("lock table shop.orders")
        for (let round = 0; round < 5; round++) {
          yield* sent(nowhere)
          const sending = yield* Effect.forkChild(sent(session))
          yield* blocked(server)
          yield* Fiber.interrupt(sending)
        }
        yield* server.locking("rollback")
        expect(told(yield* sent(session))).toBe(200)
        yield* rows("1")
      }).pipe(Effect.provide(servers({ most: 1 })))
    )
  })
})
