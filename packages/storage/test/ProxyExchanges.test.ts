import { expect, layer } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes, sibling } from "@tidegate/model/Ids"
import { next } from "@tidegate/runtime/TestSignal"
import * as Database from "@tidegate/storage/Database"
import { migrate } from "@tidegate/storage/Migrations"
import { type ProxyExchangeRecord, ProxyExchanges } from "@tidegate/storage/delivery/ProxyExchanges"
import { freshDatabase } from "../../../test/postgres.ts"

const database = Layer.effectDiscard(migrate).pipe(
  Layer.provideMerge(Layer.unwrap(Effect.map(freshDatabase, (url) => Database.layer({ url }))))
)

const exchange = (change: Partial<ProxyExchangeRecord> = {}): ProxyExchangeRecord => {
  const at = Date.now()
  return {
    requestId: newId(prefixes.request, at),
    teamId: "tm_demo",
    sourceId: "src_1",
    targetUrl: "https://a.example/x?key=1",
    httpMethod: "POST",
    responseStatus: 200,
    responseHeaders: '{"set-cookie":["a=1","b=2"]}',
    responseBody: Buffer.from([0, 1, 255]),
    responseBodyTruncated: true,
    errorCode: null,
    errorText: null,
    startedAt: at,
    respondedAt: at + 12,
    responseLatency: 12,
    createdAt: at + 40,
    ...change
  }
}

/** A writer of its own, on the suite's database; its scope is the effect's. What it logs as an error is noted. */
const withWriter = <A, E>(
  use: (writer: typeof ProxyExchanges.Service, errors: Array<string>) => Effect.Effect<A, E, SqlClient.SqlClient>
) => {
  const errors: Array<string> = []
  const noting = Logger.make(({ logLevel, message }) => {
    if (logLevel === "Error") errors.push([message].flat().map(String).join(" "))
  })
  return Effect.flatMap(ProxyExchanges, (writer) => use(writer, errors)).pipe(
    Effect.provide(ProxyExchanges.layer.pipe(Layer.provide(Logger.layer([noting])))),
    Effect.map((result) => ({ result, errors }))
  )
}

const settled = (writer: typeof ProxyExchanges.Service): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (writer.stats().waiting === 0) return Effect.void
    return Effect.andThen(
      Effect.promise(() => next("commit")),
      settled(writer)
    )
  })

const rows = (records: ReadonlyArray<ProxyExchangeRecord>) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<Record<string, unknown>>`
      select * from proxy_exchanges where request_id = any(${records.map(({ requestId }) => requestId)})
      order by request_id`
  )

layer(database, { excludeTestServices: true })("Proxy exchanges", (it) => {
  it.effect("A proxy exchange is stored under its request's id, with or without an answer", () =>
    Effect.gen(function* () {
      const answered = exchange()
      const failed = exchange({
        responseStatus: null,
        responseHeaders: null,
        responseBody: null,
        responseBodyTruncated: false,
        errorCode: "TIMEOUT",
        errorText: "no answer within 150 ms",
        respondedAt: null,
        responseLatency: null
      })
      yield* withWriter((writer) => {
        writer.write(answered)
        writer.write(failed)
        return settled(writer)
      })
      const [first, second] = [...(yield* rows([answered])), ...(yield* rows([failed]))]
      expect({ ...first, response_body: Buffer.from(first!["response_body"] as Uint8Array) }).toStrictEqual({
        id: sibling(prefixes.proxyExchange, answered.requestId),
        team_id: "tm_demo",
        source_id: "src_1",
        request_id: answered.requestId,
        target_url: "https://a.example/x?key=1",
        http_method: "POST",
        response_status: 200,
        response_headers: '{"set-cookie":["a=1","b=2"]}',
        response_body: Buffer.from([0, 1, 255]),
        response_body_truncated: true,
        error_code: null,
        error_text: null,
        started_at: new Date(answered.startedAt),
        responded_at: new Date(answered.startedAt + 12),
        response_latency: 12,
        created_at: new Date(answered.startedAt + 40)
      })
      const {
        error_code,
        error_text,
        responded_at,
        response_body,
        response_headers,
        response_latency,
        response_status
      } = second!
      expect([
        response_status,
        response_headers,
        response_body,
        responded_at,
        response_latency,
        error_code,
        error_text
      ]).toStrictEqual([null, null, null, null, null, "TIMEOUT", "no answer within 150 ms"])
    })
  )

  it.effect("Only the first exchange of a request is stored, in one batch or in two", () =>
    Effect.gen(function* () {
      const first = exchange({ responseStatus: 201 })
      const again = { ...first, responseStatus: 500 }
      yield* withWriter((writer) => {
        writer.write(first)
        writer.write(again)
        return Effect.andThen(
          settled(writer),
          Effect.suspend(() => {
            writer.write(again)
            return settled(writer)
          })
        )
      })
      expect((yield* rows([first])).map((row) => row["response_status"])).toStrictEqual([201])
    })
  )

  it.effect("A thousand concurrent exchanges are stored once each with few statements", () =>
    Effect.gen(function* () {
      const records = Array.from({ length: 1_000 }, () => exchange())
      const { result } = yield* withWriter((writer) => {
        for (const record of records) writer.write(record)
        return Effect.map(settled(writer), () => writer.stats())
      })
      expect({ ...result, batches: 0 }).toStrictEqual({
        written: 1_000,
        lost: 0,
        batches: 0,
        waiting: 0,
        waitingBytes: 0
      })
      expect(result.batches).toBeLessThanOrEqual(10)
      expect((yield* rows(records)).length).toBe(1_000)
    })
  )

  it.effect("A rejected exchange is lost and logged, and the others of its batch are stored", () =>
    Effect.gen(function* () {
      const good = [exchange(), exchange(), exchange()] as const
      const nul = exchange({ errorText: "\0" })
      const unsendable = exchange({ responseStatus: Number.NaN })
      const nowhere = exchange({ requestId: newId(prefixes.request, Date.now() + 20 * 86_400_000) })
      const { errors, result } = yield* withWriter((writer) => {
        for (const record of [good[0], nul, good[1], unsendable, nowhere, good[2]]) writer.write(record)
        return Effect.map(settled(writer), () => writer.stats())
      })
      expect(result.written).toBe(3)
      expect(result.lost).toBe(3)
      expect((yield* rows([...good, nul, unsendable, nowhere])).length).toBe(3)
      expect(errors.filter((error) => error.includes("could not be stored")).length).toBe(3)
    })
  )

  it.effect("All exchanges are stored exactly once when every connection is cut meanwhile", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const records = Array.from({ length: 1_000 }, () => exchange())
      const { result } = yield* withWriter((writer) =>
        Effect.gen(function* () {
          for (let from = 0; from < records.length; from += 100) {
            for (const record of records.slice(from, from + 100)) writer.write(record)
            yield* sql`select count(pg_terminate_backend(pid)) from pg_stat_activity
              where application_name = 'tidegate-journal' and datname = current_database()`
          }
          yield* settled(writer)
          return writer.stats()
        })
      )
      expect(result.lost).toBe(0)
      expect((yield* rows(records)).length).toBe(1_000)
    })
  )

  it.effect("The waiting exchanges are bounded while the database is blocked, and lost ones are logged", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const body = Buffer.alloc(65_536)
      const records = Array.from({ length: 1_000 }, () => exchange({ responseBody: body }))
      const { errors, result } = yield* withWriter((writer) =>
        Effect.gen(function* () {
          const during = yield* sql.withTransaction(
            Effect.gen(function* () {
              yield* sql`lock table proxy_exchanges in access exclusive mode`
              for (const record of records) writer.write(record)
              return writer.stats()
            })
          )
          yield* settled(writer)
          return { during, after: writer.stats() }
        })
      )
      expect(result.during.lost).toBeGreaterThan(400)
      expect(result.during.waitingBytes).toBeLessThanOrEqual(33 * 1024 * 1024)
      expect(result.after.lost).toBe(result.during.lost)
      expect(result.after.written).toBe(1_000 - result.during.lost)
      expect((yield* rows(records)).length).toBe(result.after.written)
      expect(errors.length).toBe(2)
      expect(errors[0]).toContain("are being dropped")
      expect(errors[1]).toContain("were dropped")
    })
  )

  it.effect("Waiting exchanges are written when the writer is closed", () =>
    Effect.gen(function* () {
      const records = Array.from({ length: 300 }, () => exchange())
      yield* withWriter((writer) => Effect.sync(() => records.forEach(writer.write)))
      expect((yield* rows(records)).length).toBe(300)
    })
  )
})
