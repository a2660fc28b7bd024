import { expect, it, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { freshDatabase } from "../../../../test/postgres.ts"
import * as Database from "../../src/Database.ts"
import { migrate } from "../../src/Migrations.ts"
import * as EventReads from "../../src/reads/EventReads.ts"
import * as RequestReads from "../../src/reads/RequestReads.ts"
import { toPage } from "../../src/reads/Scan.ts"
import { anyEvent, anyRequest } from "./Filters.ts"
import { makeHistory } from "./History.ts"

const rows = (...ids: ReadonlyArray<string>) => ids.map((id) => ({ id }))

it("a page of several parts ends where the least examined of them does", () => {
  const parts = [
    { rows: rows("9", "5", "2"), examinedTo: null },
    { rows: rows("8", "4"), examinedTo: "4" },
    { rows: rows("9", "3"), examinedTo: "3" }
  ]
  expect(toPage(parts, "desc", 10)).toEqual({ rows: rows("9", "8", "5", "4"), next: "4" })
  expect(toPage(parts, "desc", 2)).toEqual({ rows: rows("9", "8"), next: "8" })
  expect(toPage([{ rows: [], examinedTo: "4" }], "desc", 2)).toEqual({ rows: [], next: "4" })
  expect(toPage([{ rows: rows("1", "2", "7"), examinedTo: "5" }], "asc", 9)).toEqual({
    rows: rows("1", "2"),
    next: "5"
  })
  expect(toPage([{ rows: rows("1", "2"), examinedTo: null }], "asc", 9)).toEqual({ rows: rows("1", "2"), next: null })
})

const team = "tm_scan"

const filled = Layer.effectDiscard(
  Effect.gen(function* () {
    yield* migrate
    const to = Date.now()
    yield* makeHistory({ team, requests: 25_000, from: to - 3_600_000, to })
  })
).pipe(Layer.provideMerge(Layer.unwrap(Effect.map(freshDatabase, (url) => Database.layer({ url })))))

layer(filled, { excludeTestServices: true })("a rare match among many rows", (test) => {
  test.effect("is found in steps, each of bounded cost", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [oldest] = yield* sql<{ id: string }>`
        update requests set retry_kind = 'single' where id = (select min(id) from requests) returning id`
      const filter = { ...anyRequest, isRetry: true }
      const found: Array<string> = []
      const steps: Array<number> = []
      let cursor: string | undefined
      do {
        const page = yield* RequestReads.list(
          team,
          filter,
          { key: "k", window: {}, cursor, limit: 10 },
          { data: false, eventSummary: false }
        )
        found.push(...page.models.map(({ id }) => id))
        steps.push(page.count)
        expect(page.total_exact).toBe(page.next_cursor === null)
        cursor = page.next_cursor ?? undefined
      } while (cursor !== undefined)
      expect(found).toEqual([oldest!.id])
      expect(steps).toEqual([0, 0, 1])
    })
  )

  test.effect("of several destinations, all are found", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const destinations = (yield* sql<{ id: string }>`select id from destinations order by id limit 3`).map(
        ({ id }) => id
      )
      const connections = (yield* sql<{ id: string }>`select id from connections`).map(({ id }) => id)
      yield* sql`update events set error_code = 'RARE', state = 'FAILED', failed = true
        where id in (select id from events where destination_id = any(${destinations}) order by id limit 5)`
      const filter: EventReads.EventFilter = { ...anyEvent, statuses: ["SUCCESSFUL"], connections, destinations }
      const expected = yield* sql<{ id: string }>`
        select id from events where destination_id = any(${destinations}) and state = 'SUCCESSFUL' order by id desc`
      const found: Array<string> = []
      let cursor: string | undefined
      do {
        const page = yield* EventReads.list(
          team,
          filter,
          { key: "k", window: {}, cursor, limit: 1_000 },
          { data: false }
        )
        found.push(...page.models.map(({ id }) => id))
        cursor = page.next_cursor ?? undefined
      } while (cursor !== undefined)
      expect(found).toEqual(expected.map(({ id }) => id))
    })
  )
})
