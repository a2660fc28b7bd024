import { expect, layer } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { freshDatabase } from "../../../test/postgres.ts"
import * as Database from "../src/Database.ts"
import { pendingEvents } from "../src/delivery/DeliveryRows.ts"
import { retryEvent } from "../src/bulk/EventRetry.ts"
import { migrate } from "../src/Migrations.ts"
import { day, partitions, startOfDay } from "../src/retention/Partitions.ts"
import * as AttemptReads from "../src/reads/AttemptReads.ts"
import * as EventReads from "../src/reads/EventReads.ts"
import * as RequestReads from "../src/reads/RequestReads.ts"
import * as TraceReads from "../src/reads/TraceReads.ts"
import { retain } from "../src/retention/Retention.ts"
import { growing } from "../src/Tables.ts"
import { idOf, makeOldDays, makeRoutingJob, makeWaiting, type OldDays } from "./OldDays.ts"
import { explained } from "./reads/Explained.ts"
import { anyAttempt, anyEvent, anyRequest, firstPage as page } from "./reads/Filters.ts"

const world = Layer.unwrap(Effect.map(freshDatabase, (url) => Database.layer({ url }))).pipe(
  (database) => Layer.provideMerge(Layer.effectDiscard(migrate), database),
  Layer.provideMerge(Logger.layer([])),
  Layer.orDie
)

const defaults = { payloadDays: 14, recordDays: 25 }
const now = Date.now()
const old: OldDays = {
  now,
  days: 40,
  teams: {
    tm_usual: { payload: null, record: null },
    tm_brief: { payload: 5, record: 10 },
    tm_long: { payload: 30, record: 35 }
  },
  perDay: Number(process.env["TIDEGATE_RETENTION_ROWS"] ?? 60),
  bodyBytes: 1024
}
const kept: Readonly<Record<string, { payload: number; record: number }>> = {
  tm_usual: { payload: 14, record: 25 },
  tm_brief: { payload: 5, record: 10 },
  tm_long: { payload: 30, record: 35 }
}

/** Rows of a table by team and age of their day, and how many of them have payload. */
const rowsOf = Effect.fnUntraced(function* () {
  const sql = yield* SqlClient.SqlClient
  const found = new Map<string, { readonly rows: number; readonly whole: number }>()
  for (const { start, table, name } of yield* partitions) {
    const payload = Object.entries(table.payload ?? {})
    const isWhole = payload.map(([column, value]) => `${column} is distinct from ${value}`).join(" and ") || "true"
    for (const row of yield* sql.unsafe<{ team_id: string; rows: number; whole: number }>(
      `select team_id, count(*)::int4 as rows, count(*) filter (where ${isWhole})::int4 as whole from ${name} group by 1`
    )) {
      found.set(`${table.name} ${row.team_id} ${(startOfDay(now) - start) / day}`, row)
    }
  }
  return found
})

const sizes = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ bytes: number }>`
    select sum(pg_total_relation_size(inhrelid))::float8 as bytes from pg_inherits`
  return row!.bytes
})

const waiting = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ id: string }>`
    select event_id as id from deliveries union all select request_id from pending_routes`
  return rows.map(({ id }) => id).sort()
})

const retry = (team: string, age: number, n: number) => {
  const id = newId(prefixes.event, Date.now())
  const event_id = `evt_${idOf(old, team, age, n)}`
  return Effect.as(retryEvent({ team_id: team, event_id, id, shardOf: () => 1 }), id)
}

layer(world, { excludeTestServices: true })("Forty days of three teams", (it) => {
  /** Waits within its time, beyond it but within the grace, and for longer than that; and what nothing can come of. */
  const made = { fresh: "", late: "", retried: "", given: "", route: "", lateRetry: "", keeper: "" }
  /** A day that somebody who does not keep it waits for stays for all. */
  const heldAges: ReadonlySet<number> = new Set([13, 16, 17, 18, 23])
  let before = 0

  it.effect(
    "One run of retention removes everything that is due",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* makeOldDays(old)
        made.fresh = yield* makeWaiting(old, "tm_usual", 3, 4)
        made.late = yield* makeWaiting(old, "tm_usual", 16, 4)
        made.given = yield* makeWaiting(old, "tm_usual", 23, 4)
        made.route = yield* makeRoutingJob(old, "tm_usual", 17, 5)
        made.retried = yield* retry("tm_usual", 18, 6)
        made.lateRetry = yield* retry("tm_brief", 13, 6)
        // A keeper's waits hold nobody else's day.
        made.keeper = yield* makeWaiting(old, "tm_long", 22, 4)
        yield* sql`insert into deliveries (event_id, shard, destination_id, connection_id, due_at)
        values ('evt_0000000000orphan', 1, 'des_x', 'web_x', now())`
        yield* sql`insert into pending_routes (shard, connection_id, request_id, team_id, source_id, created_at)
        values (1, 'web_x', 'req_0000000000orphan', 'tm_usual', 'src_x', now())`
        before = yield* sizes
        const done = yield* retain(defaults)
        expect(done).toMatchObject({ orphans: 2, cancelled: 2, held: 5 })

        const found = yield* rowsOf()
        for (const table of growing) {
          for (const [team, { payload, record }] of Object.entries(kept)) {
            for (let age = 0; age <= old.days; age++) {
              const { rows, whole } = found.get(`${table.name} ${team} ${age}`) ?? { rows: 0, whole: 0 }
              const isDue = (days: number) => age > days && !heldAges.has(age)
              const isGone = isDue(table.keptAs === "payload" ? payload : record)
              const isWhole = !isGone && (table.payload === undefined || !isDue(payload))
              expect([table.name, team, age, rows > 0, whole > 0]).toEqual([table.name, team, age, !isGone, isWhole])
            }
          }
        }
        // Where nobody keeps them, whole days are gone, not their rows; and where nobody keeps payloads, their pages are.
        const days = (yield* partitions).map(({ isPruned, start, table }) => [
          table.name,
          (startOfDay(now) - start) / day,
          isPruned
        ])
        expect(days.filter(([, age]) => Number(age) > 35)).toEqual([])
        expect(days.filter(([, age, isPruned]) => age === 33 && isPruned === true).map(([name]) => name)).toEqual([
          "requests",
          "attempts",
          "executions",
          "workflow_steps"
        ])
        expect(days.filter(([name, age]) => age === 33 && name === "event_data")).toEqual([])
      }),
    120_000
  )

  it.effect("Retention keeps what waits within its time, and cancels what waits longer", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { given, keeper, lateRetry, ...waits } = made
      expect(yield* waiting).toEqual([keeper, ...Object.values(waits)].sort())
      const cancelled = yield* sql`
        select id, state, error_code from events where id in (${given}, ${lateRetry}) order by id`
      expect(cancelled).toEqual(
        [given, lateRetry].sort().map((id) => ({ id, state: "CANCELLED", error_code: "CANCELLED_PAST_RETENTION" }))
      )
      // All that a delivery needs is there for those that wait.
      const pending = Object.values(waits).filter((id) => id.startsWith("evt_"))
      expect((yield* pendingEvents(pending, 1e6)).map(({ body, id }) => [id, body?.length])).toEqual(
        pending.map((id) => [id, old.bodyBytes])
      )
    })
  )

  it.effect("A second run of retention changes only days that were given up in the first", () =>
    Effect.gen(function* () {
      const first = yield* rowsOf()
      const second = yield* retain(defaults)
      expect(second).toMatchObject({ orphans: 0, cancelled: 0, held: 3 })
      const after = yield* rowsOf()
      const changed = [...first.keys()].filter(
        (name) => JSON.stringify(first.get(name)) !== JSON.stringify(after.get(name))
      )
      expect(new Set(changed.map((name) => Number(name.split(" ")[2])))).toEqual(new Set([13, 23]))
      expect(yield* retain(defaults)).toEqual({
        dropped: 0,
        pruned: 0,
        held: 3,
        cancelled: 0,
        orphans: 0,
        compacted: 0,
        expired: 0
      })
      expect(yield* rowsOf()).toEqual(after)
    })
  )

  it.effect("A held day is removed once nothing waits for it", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { late, retried, route } = made
      yield* sql`update events set state = 'SUCCESSFUL' where id in (${late}, ${retried})`
      yield* sql`delete from deliveries where event_id in (${late}, ${retried})`
      yield* sql`delete from pending_routes where request_id = ${route}`
      expect((yield* retain(defaults)).held).toBe(0)
      const found = yield* rowsOf()
      for (const age of [16, 17, 18]) expect(found.get(`requests tm_usual ${age}`)?.whole).toBe(0)
    })
  )

  it.effect("Deleted payloads are reported as missing and cannot be retried, but the record is shown", () =>
    Effect.gen(function* () {
      const [age, n] = [20, 6]
      const id = idOf(old, "tm_usual", age, n)
      const event = yield* EventReads.get("tm_usual", `evt_${id}`)
      expect(event).toMatchObject({ status: "SUCCESSFUL", data: null })
      expect((yield* RequestReads.detail("tm_usual", `req_${id}`)).data).toBeNull()
      expect((yield* Effect.flip(RequestReads.requestBody("tm_usual", `req_${id}`)))._tag).toBe("GatewayError")
      const refused = yield* Effect.flip(retry("tm_usual", age, n))
      expect(refused.code).toBe("PAYLOAD_UNAVAILABLE")
      const trace = yield* TraceReads.get("tm_usual", `req_${id}`)
      expect(trace.attempts).toMatchObject([{ body: null, response_headers: null, response_status: 200 }])
      expect(trace.counts).toMatchObject({ events: 1, attempts: 1, ignored_events: 0 })
      expect(yield* waiting).not.toContain(`evt_${id}`)
    })
  )

  it.effect("Reads of old records use few partitions", () =>
    Effect.gen(function* () {
      const team = "tm_usual"
      const id = idOf(old, team, 20, 6)
      const looked = Effect.fnUntraced(function* <A>(read: Parameters<typeof explained<A>>[0]) {
        return (yield* explained(read)).days.length
      })
      const listed = yield* explained(EventReads.list(team, anyEvent, page, { data: true }))
      const pageDays = new Set(listed.answer.models.map(({ created_at }) => created_at.slice(0, 10))).size
      const figures = {
        "events of a day": listed.days.length,
        "requests of a day": yield* looked(
          RequestReads.list(team, anyRequest, page, { data: true, eventSummary: false })
        ),
        "an event": yield* looked(EventReads.get(team, `evt_${id}`)),
        "a request": yield* looked(RequestReads.detail(team, `req_${id}`)),
        "a trace": yield* looked(TraceReads.get(team, `req_${id}`)),
        "a trace of today": yield* looked(TraceReads.get(team, `req_${idOf(old, team, 0, 6)}`)),
        "attempts of an event": yield* looked(
          AttemptReads.list(team, { ...anyAttempt, events: [`evt_${id}`] }, "desc", page)
        )
      }
      if (process.env["TIDEGATE_RETENTION_PRINT"] !== undefined) process.stdout.write(`${JSON.stringify(figures)}\n`)
      expect(figures).toMatchObject({ "an event": 3, "a request": 2, "attempts of an event": 1 })
      // A retry of a request is looked for on every day since.
      expect(figures["a trace of today"]).toBeLessThanOrEqual(10)
      expect(figures["a trace"]).toBeLessThanOrEqual(figures["a trace of today"] + 20)
      // Four tables of each day that the page has events of, which are two soon after midnight. Retries also have requests of older days.
      expect(pageDays).toBeLessThanOrEqual(2)
      expect(figures["events of a day"]).toBeLessThanOrEqual(4 * pageDays + 4)
      expect(figures["requests of a day"]).toBeLessThanOrEqual(4)
    })
  )

  it.effect("Retention reduces the size of the tables", () =>
    Effect.gen(function* () {
      const after = yield* sizes
      if (process.env["TIDEGATE_RETENTION_PRINT"] !== undefined) {
        const mb = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`
        process.stdout.write(`${old.perDay} requests a day and team: ${mb(before)} before, ${mb(after)} after\n`)
      }
      expect(after).toBeLessThan(before * 0.9)
    })
  )
})
