import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Result } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { idTime, newId, prefixes } from "@tidegate/model/Ids"
import type { ScheduleSettings } from "@tidegate/model/ScheduledSource"
import { TeamLimits } from "@tidegate/resources/TeamLimits"
import { Connections } from "../src/control/Connections.ts"
import { Destinations } from "../src/control/Destinations.ts"
import { Sources } from "../src/control/Sources.ts"
import { weighRoutedSource } from "../src/delivery/RoutedSource.ts"
import { ensurePartitions } from "../src/retention/Partitions.ts"
import { makeScheduled, nextScheduledRequest } from "../src/schedules/ScheduledRequests.ts"
import * as ControlPlane from "./controlPlane.ts"

/**
 * The requests of schedules, over real rows. Each look is that of another process: what was made is known from the database only. The times
 * of looks are given and in the past, so no test depends on when it runs.
 */

const { connectionFields, destinationFields, sourceFields, team, unique } = ControlPlane
const [hour, day] = [3_600_000, 86_400_000]

const routing = { shardOf: () => 1, orderingKeyOf: () => null }

/** A look at this time. Partitions are those of its days. */
const look = Effect.fnUntraced(function* (now: number) {
  yield* ensurePartitions(now)
  return yield* makeScheduled(now, routing)
})

const plain = sourceFields().config
const nightly: ScheduleSettings = { cron: "30 2 * * *", timezone: "UTC", missed: "once", body: null, headers: {} }

const scheduled = (schedule: Partial<ScheduleSettings> = {}) =>
  sourceFields({ type: "CRON", config: { ...plain, schedule: Object.assign({}, nightly, schedule) } })

/** A source, as if it had been written right before this time. */
const make = Effect.fnUntraced(function* (due: string, schedule: Partial<ScheduleSettings> = {}) {
  const source = yield* (yield* Sources).create(team, newId(prefixes.source, Date.now()), scheduled(schedule))
  yield* dueAt(source.id, due)
  return source
})

const dueAt = Effect.fnUntraced(function* (source: string, at: string) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`update source_schedules set due_at = ${new Date(at)} where source_id = ${source}`
})

/** The next time of a source; undefined: it has no row. */
const dueOf = Effect.fnUntraced(function* (source: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ due_at: Date | null }>`select due_at from source_schedules where source_id = ${source}`
  return row === undefined ? undefined : (row.due_at?.toISOString() ?? null)
})

const requestsOf = Effect.fnUntraced(function* (source: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ id: string; body: Uint8Array; headers: string; status: string; method: string }>`
    select id, body, headers, status, method from requests where source_id = ${source}`
  return rows
    .map(({ body, headers, ...row }) =>
      Object.assign(row, {
        body: JSON.parse(Buffer.from(body).toString()) as unknown,
        headers: JSON.parse(headers) as Record<string, string>
      })
    )
    .toSorted((a, b) => a.headers["x-gateway-scheduled-at"]!.localeCompare(b.headers["x-gateway-scheduled-at"]!))
})

/** The times for which a source has made requests. */
const timesOf = (source: string) =>
  Effect.map(requestsOf(source), (requests) => requests.map(({ headers }) => headers["x-gateway-scheduled-at"]))

const change = Effect.fnUntraced(function* (source: string, schedule: Partial<ScheduleSettings>) {
  const to = Object.assign({}, nightly, schedule)
  yield* (yield* Sources).update(team, source, (stored) =>
    Result.succeed({ ...stored, config: { ...stored.config, schedule: to }, auth: "unchanged" as const })
  )
})

layer(ControlPlane.layerOf({ connections: 6 }), { excludeTestServices: true })("Sources with a schedule", (it) => {
  it.effect(
    "A due time makes one accepted request for its connection, by two looks at once and after a look that died",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const source = yield* make("2025-05-01T02:30:00Z", {
          body: { report: "{{scheduled_at}}", by: "{{source.name}} in {{timezone}}" },
          headers: { "x-kind": "nightly" }
        })
        const destination = yield* (yield* Destinations).create(
          team,
          newId(prefixes.destination, Date.now()),
          destinationFields()
        )
        const connection = yield* (yield* Connections).create(
          team,
          newId(prefixes.connection, Date.now()),
          connectionFields({ source_id: source.id, destination_id: destination.id })
        )
        const now = Date.parse("2025-05-01T02:30:00.400Z")
        yield* look(now - 500)
        expect(yield* timesOf(source.id)).toEqual([])
        const died = new SqlError.SqlError({
          reason: new SqlError.UnknownError({ message: "the process has died", cause: undefined })
        })
        yield* Effect.flip(sql.withTransaction(Effect.andThen(look(now), Effect.fail(died))))
        expect(yield* timesOf(source.id)).toEqual([])
        const looks = yield* Effect.all([look(now), look(now)], { concurrency: 2 })
        yield* look(now + 1_000)
        expect(looks.flatMap(({ made }) => made.map(({ connections }) => connections))).toEqual([[connection.id]])
        const [request, ...others] = yield* requestsOf(source.id)
        expect(others).toEqual([])
        expect(request).toMatchObject({
          status: "accepted",
          method: "POST",
          body: { report: "2025-05-01T02:30:00.000Z", by: `${source.name} in UTC` },
          headers: {
            "content-type": "application/json",
            "x-kind": "nightly",
            "x-gateway-scheduled-at": "2025-05-01T02:30:00.000Z"
          }
        })
        expect(idTime(request!.id)).toBe(Date.parse("2025-05-01T02:30:00Z"))
        const waiting =
          yield* sql`select from pending_routes where request_id = ${request!.id} and connection_id = ${connection.id}`
        expect(waiting).toHaveLength(1)
        expect(yield* dueOf(source.id)).toBe("2025-05-02T02:30:00.000Z")
      })
  )

  it.effect("A time that comes again makes no second request", () =>
    Effect.gen(function* () {
      const source = yield* make("2025-05-01T02:30:00Z")
      const now = Date.parse("2025-05-01T02:30:01Z")
      yield* look(now)
      const [first] = yield* requestsOf(source.id)
      yield* dueAt(source.id, "2025-05-01T02:30:00Z")
      yield* look(now + 20_000)
      expect((yield* requestsOf(source.id)).map(({ id }) => id)).toEqual([first!.id])
      expect(first!.body).toEqual({
        scheduled_at: "2025-05-01T02:30:00.000Z",
        cron: "30 2 * * *",
        timezone: "UTC",
        source: { id: source.id, name: source.name }
      })
    })
  )

  it.effect("A local time that the clock leaves out occurs an hour later, and one that it repeats occurs once", () =>
    Effect.gen(function* () {
      const berlin = { timezone: "Europe/Berlin", missed: "all" } as const
      const spring = yield* make("2025-03-29T01:30:00Z", berlin)
      const autumn = yield* make("2025-10-25T00:30:00Z", berlin)
      const quarters = yield* make("2025-10-26T00:00:00Z", { ...berlin, cron: "*/30 * * * *" })
      for (const from of ["2025-03-29T01:30:01Z", "2025-10-25T01:30:01Z"]) {
        for (let n = 0; n < 3; n++) yield* look(Date.parse(from) + n * day)
      }
      expect((yield* timesOf(spring.id)).slice(0, 3)).toEqual([
        "2025-03-29T01:30:00.000Z",
        "2025-03-30T01:30:00.000Z",
        "2025-03-31T00:30:00.000Z"
      ])
      expect((yield* timesOf(autumn.id)).slice(0, 3)).toEqual([
        "2025-10-25T00:30:00.000Z",
        "2025-10-26T00:30:00.000Z",
        "2025-10-27T01:30:00.000Z"
      ])
      expect((yield* timesOf(quarters.id)).slice(0, 5)).toEqual(
        [0, 1, 2, 3, 4].map((n) => new Date(Date.parse("2025-10-26T00:00:00Z") + n * (hour / 2)).toISOString())
      )
    })
  )

  it.effect("After a downtime the rule for missed times says which of them make requests", () =>
    Effect.gen(function* () {
      const [once, skip, all] = yield* Effect.forEach(["once", "skip", "all"] as const, (missed) =>
        make("2025-05-01T02:30:00Z", { missed })
      )
      const now = Date.parse("2025-05-11T04:00:00Z")
      yield* look(now)
      expect(yield* timesOf(once.id)).toEqual(["2025-05-11T02:30:00.000Z"])
      expect(yield* timesOf(skip!.id)).toEqual([])
      const days = Array.from({ length: 11 }, (_, n) =>
        new Date(Date.parse("2025-05-01T02:30:00Z") + n * day).toISOString()
      )
      expect(yield* timesOf(all!.id)).toEqual(days)
      // The days of older times may have no place any more: their requests are of the day on which they are made.
      for (const { id } of yield* requestsOf(all!.id)) expect(idTime(id)).toBeGreaterThan(now - day)
      for (const one of [once, skip, all]) expect(yield* dueOf(one!.id)).toBe("2025-05-12T02:30:00.000Z")
    })
  )

  it.effect("New times begin at once, and another body or rule for missed times leaves the next time as it is", () =>
    Effect.gen(function* () {
      const source = yield* make("2025-05-01T02:30:00Z")
      yield* change(source.id, { body: { n: 1 }, missed: "all" })
      expect(yield* dueOf(source.id)).toBe("2025-05-01T02:30:00.000Z")
      yield* change(source.id, { cron: "0 5 * * *" })
      const next = yield* dueOf(source.id)
      // The new times are those after the change, so nothing of the old ones is due.
      expect(Date.parse(next!)).toBeGreaterThan(Date.now() - hour)
      expect(next).toMatch(/T05:00:00\.000Z$/)
      yield* look(Date.parse("2025-05-01T02:30:01Z"))
      expect(yield* timesOf(source.id)).toEqual([])
      yield* change(source.id, { cron: "0 5 * * *", timezone: "Asia/Tokyo" })
      expect(yield* dueOf(source.id)).toMatch(/T20:00:00\.000Z$/)
    })
  )

  it.effect("A source that is disabled or deleted makes no request, and has missed nothing when it is enabled", () =>
    Effect.gen(function* () {
      const sources = yield* Sources
      const source = yield* make("2025-05-01T02:30:00Z", { missed: "all" })
      const after = Date.parse("2025-05-01T02:31:00Z")
      expect((yield* sources.get(team, source.id)).next_due_at).toBe("2025-05-01T02:30:00.000Z")
      yield* sources.switch(team, source.id, "disable")
      expect(yield* dueOf(source.id)).toBeUndefined()
      expect((yield* sources.get(team, source.id)).next_due_at).toBeNull()
      // A change while it is disabled begins nothing either.
      yield* change(source.id, { cron: "0 5 * * *" })
      expect(yield* dueOf(source.id)).toBeUndefined()
      yield* look(after)
      const enabled = yield* sources.switch(team, source.id, "enable")
      expect(enabled.next_due_at).toMatch(/T05:00:00\.000Z$/)
      yield* look(after)
      yield* sources.delete(team, source.id)
      expect(yield* dueOf(source.id)).toBeUndefined()
      yield* look(Date.now() + 2 * day)
      expect(yield* timesOf(source.id)).toEqual([])
    })
  )

  it.effect("Nobody can send to it, and other sources show no next time", () =>
    Effect.gen(function* () {
      const source = yield* make("2025-05-01T02:30:00Z")
      expect(yield* weighRoutedSource(source.id)).toBeNull()
      const other = yield* ControlPlane.createSource()
      expect(yield* weighRoutedSource(other.id)).not.toBeNull()
      expect(other).not.toHaveProperty("next_due_at")
    })
  )

  it.effect("A locked source holds no look up, and makes its request afterwards", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [locked, free] = [yield* make("2025-05-01T02:30:00Z"), yield* make("2025-05-01T02:30:00Z")]
      const now = Date.parse("2025-05-01T02:30:01Z")
      const [held, looked] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const holding = sql.withTransaction(
        sql`select from sources where id = ${locked.id} for update`.pipe(
          Effect.andThen(Deferred.succeed(held, undefined)),
          Effect.andThen(Deferred.await(looked))
        )
      )
      const looking = Deferred.await(held).pipe(
        Effect.andThen(look(now)),
        Effect.ensuring(Deferred.succeed(looked, undefined))
      )
      yield* Effect.all([holding, looking], { concurrency: 2 })
      expect([yield* timesOf(locked.id), yield* timesOf(free.id)]).toEqual([[], ["2025-05-01T02:30:00.000Z"]])
      yield* look(now + 1_000)
      expect(yield* timesOf(locked.id)).toEqual(["2025-05-01T02:30:00.000Z"])
    })
  )

  it.effect("More schedules than one look takes are all made, and the next look is that of the earliest time", () =>
    Effect.gen(function* () {
      const many = yield* Effect.forEach(Array.from({ length: 23 }), () => make("2025-04-01T02:30:00Z"))
      const now = Date.parse("2025-04-01T02:30:00Z")
      let looks = 0
      for (let more = true; more; looks++) more = (yield* look(now)).more
      expect(looks).toBeGreaterThan(1)
      for (const { id } of many) expect(yield* timesOf(id)).toHaveLength(1)
      yield* dueAt(many[0]!.id, "2025-04-01T12:00:00Z")
      expect(yield* nextScheduledRequest).toBe(Date.parse("2025-04-01T12:00:00Z"))
    })
  )

  it.effect("A team has a limit of such sources, which two creates at once cannot exceed", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const full = unique("tm_full")
      yield* sql`insert into teams (id, name) values (${full}, ${full})`
      const sources = yield* Sources
      const create = Effect.suspend(() =>
        Effect.exit(sources.create(full, newId(prefixes.source, Date.now()), scheduled()))
      )
      const made = yield* Effect.all([create, create, create], { concurrency: 3 }).pipe(
        Effect.provideService(TeamLimits, { ...(yield* TeamLimits), scheduled_sources: 2 })
      )
      expect(made.filter(({ _tag }) => _tag === "Success")).toHaveLength(2)
      const refused = made.find(({ _tag }) => _tag === "Failure")
      expect(JSON.stringify(refused)).toContain("LIMIT_EXCEEDED")
    })
  )
})
