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

it("A page of several parts ends where the least examined part ends", () => {
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

layer(filled, { excludeTestServices: true })("Rare match among many rows", (test) => {
  test.effect("A rare match is on the first page, with or without an index for it", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const connections = (yield* sql<{ id: string }>`select id from connections`).map(({ id }) => id)
      yield* sql`update requests set verified = true`
      const [oldest] = yield* sql<{ id: string }>`
        update requests set retry_kind = 'single', verified = false
        where id = (select min(id) from requests where status = 'accepted' and events_count > 0) returning id`
      for (const filter of [
        { ...anyRequest, isRetry: true },
        { ...anyRequest, retryKind: "single" as const },
        { ...anyRequest, verified: false },
        { ...anyRequest, verified: false, connections }
      ]) {
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
        expect(steps).toEqual([1])
        const { total, total_exact } = yield* RequestReads.count(team, filter, {})
        expect([total, total_exact]).toEqual([1, true])
      }
    })
  )

  test.effect("The events of a bulk operation can be listed as targets, retries or both", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [oldest] = yield* sql<{ id: string }>`select min(id) as id from events`
      const [newest] = yield* sql<{ id: string }>`
        update events set retry_parent_event_id = ${oldest!.id}, retry_operation_id = 'bch_few'
        where id = (select max(id) from events) returning id`
      const asked = { key: "k", window: {}, cursor: undefined, limit: 10 }
      for (const [operationScope, ids] of [
        ["targets", [oldest!.id]],
        ["retries", [newest!.id]],
        ["related", [newest!.id, oldest!.id]]
      ] as const) {
        const filter = { ...anyEvent, operation: "bch_few", operationScope }
        const { models, next_cursor } = yield* EventReads.list(team, filter, asked, { data: false })
        expect(models.map(({ id }) => id)).toEqual(ids)
        expect(next_cursor).toBeNull()
        expect(yield* EventReads.count(team, filter, {})).toMatchObject({ total: ids.length, total_exact: true })
      }
    })
  )

  test.effect("An old match among very many targets is on the first page, and all targets are listed and counted", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      // Each of the newer half retries one of the older.
      yield* sql`
        with ordered as (select id, row_number() over (order by id) as n, count(*) over () / 2 as half from events)
        update events e set retry_parent_event_id = older.id, retry_operation_id = 'bch_many'
        from ordered newer join ordered older on older.n = newer.n - newer.half where e.id = newer.id`
      const [first] = yield* sql<{ id: string; total: number }>`
        select min(retry_parent_event_id) as id, count(*)::int4 as total from events where retry_operation_id = 'bch_many'`
      const filter = { ...anyEvent, operation: "bch_many", operationScope: "targets" as const }
      const found = new Set<string>()
      let cursor: string | undefined
      do {
        const page = yield* EventReads.list(
          team,
          filter,
          { key: "k", window: {}, cursor, limit: 1_000 },
          { data: false }
        )
        expect(page.count).toBeGreaterThan(0)
        for (const { id } of page.models) found.add(id)
        cursor = page.next_cursor ?? undefined
      } while (cursor !== undefined)
      expect(found.size).toBe(first!.total)
      expect(yield* EventReads.count(team, filter, {})).toMatchObject({ total: first!.total, total_exact: true })
      yield* sql`update events set state = case id when ${first!.id} then 'FAILED' else 'SUCCESSFUL' end, failed = id = ${first!.id}`
      const rare = { ...filter, statuses: ["FAILED" as const] }
      const { models } = yield* EventReads.list(
        team,
        rare,
        { key: "k", window: {}, cursor, limit: 10 },
        { data: false }
      )
      expect(models.map(({ id }) => id)).toEqual([first!.id])
    })
  )

  test.effect("All events of several destinations are found", () =>
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

  test.effect(
    "Events of a busy and a quiet destination are listed in order, however old those of the quiet one are",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const [quiet, busy] = (yield* sql<{ id: string }>`select id from destinations order by id limit 2`).map(
          ({ id }) => id
        ) as [string, string]
        yield* sql`update events set destination_id = ${busy}, error_code = null where destination_id <> ${quiet}`
        // As if their connections had led to it before.
        yield* sql`insert into connection_links (connection_id, source_id, destination_id, team_id)
          select distinct connection_id, source_id, destination_id, team_id from events on conflict do nothing`
        // Those of the busy one are behind more of its events than are looked at together, and newer than those of the quiet one.
        yield* sql`update events set error_code = 'RARE' where id in (
        select id from events where destination_id = ${busy} order by id desc offset 11000 limit 5)`
        yield* sql`update events set error_code = 'RARE' where id in (
        select id from events where destination_id = ${quiet} order by id limit 40)`
        const expected = yield* sql<{ id: string }>`select id from events where error_code = 'RARE' order by id desc`
        const filter: EventReads.EventFilter = { ...anyEvent, destinations: [quiet, busy], errorCodes: ["RARE"] }
        const found: Array<string> = []
        let cursor: string | undefined
        do {
          const page = yield* EventReads.list(
            team,
            filter,
            { key: "k", window: {}, cursor, limit: 10 },
            { data: false }
          )
          expect(page.count).toBeGreaterThan(0)
          found.push(...page.models.map(({ id }) => id))
          cursor = page.next_cursor ?? undefined
        } while (cursor !== undefined)
        expect(found).toEqual(expected.map(({ id }) => id))
      })
  )
})
