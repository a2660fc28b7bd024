import { describe, expect, it as plainIt, layer } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { granularities, type Granularity, eventMeasures, requestMeasures } from "@tidegate/model/Metrics"
import type { EventStatus } from "@tidegate/model/Event"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { idBound, prefixes } from "@tidegate/model/Ids"
import * as Database from "@tidegate/storage/Database"
import { migrate } from "@tidegate/storage/Migrations"
import { freshDatabase } from "../../../../test/postgres.ts"
import { addUp } from "../../src/journal/Counting.ts"
import { day, ensurePartitions } from "../../src/retention/Partitions.ts"
import { compactRollups } from "../../src/retention/RollupCompaction.ts"
import * as EventReads from "../../src/reads/EventReads.ts"
import { countEvents, eventBuckets } from "../../src/reads/EventTally.ts"
import * as MetricsReads from "../../src/reads/MetricsReads.ts"
import * as RequestReads from "../../src/reads/RequestReads.ts"
import { countRequests, requestBuckets } from "../../src/reads/RequestTally.ts"
import { bucketOf } from "../../src/reads/Buckets.ts"
import { partsOf, type Since } from "../../src/reads/Rolled.ts"
import type { Stretch } from "../../src/reads/Window.ts"
import { asReport } from "../../src/FairReads.ts"
import * as SummaryReads from "../../src/reads/SummaryReads.ts"
import { explained } from "./Explained.ts"
import { anyEvent, anyRequest } from "./Filters.ts"
import {
  countIn,
  endsOf,
  eventsThat,
  ignoredThat,
  type Made,
  make,
  makeTeam,
  requestsThat,
  statusOf,
  store,
  type Thought
} from "./Tallies.ts"

const minute = 60_000
const hour = 60 * minute
const now = Date.now()
const clock = (unit: number, ago: number): number => Math.floor((now - ago) / unit) * unit

/** The same numbers for the same seed. */
const randomOf = (seed: number) => {
  let state = seed
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
  const below = (n: number): number => Math.floor(next() * n)
  const of = <A>(all: ReadonlyArray<A>): A => all[below(all.length)]!
  return { below, of }
}
type Random = ReturnType<typeof randomOf>

/** Times in the last three days and a half, most of them at the borders of minutes, hours and days. */
const timeOf = ({ below, of }: Random): number => {
  const unit = of([minute, minute, hour, day])
  const at = of([
    clock(unit, below(84) * hour) + of([-1, 0, 0, 1]),
    clock(minute, below(50 * 60) * minute) + below(minute),
    now - below(3 * minute)
  ])
  return Math.min(now, Math.max(at, now - 84 * hour))
}

const outcomes: ReadonlyArray<Thought["becomes"]> = [
  "rejected",
  "ignored",
  "successful",
  "successful",
  "failed",
  "cancelled",
  "queued",
  "scheduled",
  "started"
]

const historyOf = (random: Random, team: string, size: number): Made =>
  make(
    team,
    Array.from({ length: size }, () => ({
      at: timeOf(random),
      connection: random.below(3),
      becomes: random.of(outcomes)
    }))
  )

const statuses: ReadonlyArray<EventStatus> = ["SCHEDULED", "QUEUED", "HOLD", "SUCCESSFUL", "FAILED", "CANCELLED"]

const some = <A>({ below }: Random, all: ReadonlyArray<A>): ReadonlyArray<A> => all.filter(() => below(2) === 0)

const eventFilterOf = (random: Random, made: Made): EventReads.EventFilter => {
  const { connections, destinations, sources } = endsOf(made.team)
  const filter = { ...anyEvent, statuses: random.of([[], [], some(random, statuses)]) }
  return random.of([
    filter,
    filter,
    { ...filter, sources: some(random, sources) },
    { ...filter, destinations: some(random, destinations) },
    {
      ...filter,
      connections: some(
        random,
        connections.map(({ id }) => id)
      )
    },
    { ...filter, sources: [sources[0]], destinations: some(random, destinations) },
    { ...filter, sources: some(random, sources), destinations: [destinations[1]] },
    { ...filter, search: random.of(made.events).id.slice(0, 10 + random.below(6)) }
  ])
}

const requestFilterOf = (random: Random, made: Made): RequestReads.RequestFilter => {
  const filter = { ...anyRequest, status: random.of([undefined, undefined, "accepted", "rejected"] as const) }
  return random.of([
    filter,
    { ...filter, sources: some(random, endsOf(made.team).sources) },
    { ...filter, search: `ext-${random.of(made.requests).id.slice(0, 10 + random.below(6))}` }
  ])
}

const windowOf = (random: Random): Stretch => {
  const [from, to] = [timeOf(random), timeOf(random)].sort((a, b) => a - b) as [number, number]
  return { from, to }
}

const iso = (at: number): string => new Date(at).toISOString()

/** Asks for counts and series at random, and compares each with what the rows say. */
const askAll = Effect.fnUntraced(function* (random: Random, made: Made, times: number) {
  for (let n = 0; n < times; n++) {
    const { from, to } = windowOf(random)
    const window = { from: iso(from), to: iso(to) }
    const events = eventFilterOf(random, made)
    const requests = requestFilterOf(random, made)
    const about = JSON.stringify({ window, events, requests })

    const counted = yield* EventReads.count(made.team, events, window)
    expect(counted, about).toMatchObject({ total: countIn(eventsThat(made, events), from, to + 1), total_exact: true })
    const requested = yield* RequestReads.count(made.team, requests, window)
    expect(requested, about).toMatchObject({
      total: countIn(requestsThat(made, requests), from, to + 1),
      total_exact: true
    })

    const fits = (Object.keys(granularities) as Array<Granularity>).filter(
      (name) => (to - from) / granularities[name] < 2_900
    )
    const granularity = random.of([undefined, ...fits])
    const told = yield* MetricsReads.events(made.team, events, { window, granularity, measures: eventMeasures })
    const step = granularities[told.granularity]
    const all = eventsThat(made, events)
    const ignored = ignoredThat(made, events)
    const start = Math.floor(from / step) * step
    expect(told.date_range.start, about).toBe(iso(start))
    expect(Date.parse(told.date_range.end), about).toBe(start + told.series.length * step)
    for (const [index, bucket] of told.series.entries()) {
      const [first, end] = [start + index * step, start + (index + 1) * step]
      const n = (wanted: (event: Made["events"][number]) => boolean) => countIn(all.filter(wanted), first, end)
      expect(bucket, `${about} ${told.granularity}`).toEqual({
        timestamp: iso(first),
        count: n(() => true),
        delivered_count: n(({ state }) => state === "SUCCESSFUL"),
        failed_count: n(({ state }) => state === "FAILED"),
        queued_count: n((e) => e.reads !== "PROCESSING" && ["QUEUED", "SCHEDULED"].includes(statusOf(e))),
        processing_count: n(({ reads }) => reads === "PROCESSING"),
        hold_count: n(({ reads }) => reads === "HOLD"),
        ignored_count: countIn(ignored, first, end)
      })
    }
    const overTime = yield* MetricsReads.requests(made.team, requests, {
      window,
      granularity,
      measures: requestMeasures
    })
    const wanted = requestsThat(made, requests)
    for (const [index, bucket] of overTime.series.entries()) {
      const first = Date.parse(overTime.date_range.start) + index * granularities[overTime.granularity]
      const n = (status: string) =>
        countIn(
          wanted.filter((request) => request.status === status),
          first,
          first + granularities[overTime.granularity]
        )
      expect(bucket, `${about} ${overTime.granularity}`).toEqual({
        timestamp: iso(first),
        count: n("accepted") + n("rejected"),
        accepted_count: n("accepted"),
        rejected_count: n("rejected")
      })
    }
  }
})

const world = Layer.effectDiscard(
  Effect.gen(function* () {
    yield* migrate
    for (const ago of [4, 3, 1]) yield* ensurePartitions(now - ago * day)
  })
).pipe(Layer.provideMerge(Layer.unwrap(Effect.map(freshDatabase, (url) => Database.layer({ url })))))

layer(world, { excludeTestServices: true })("Counts and series", (it) => {
  it.effect("Counts and series equal a count of the rows, before and after compaction", () =>
    Effect.gen(function* () {
      for (let seed = 1; seed <= 4; seed++) {
        const random = randomOf(seed)
        const made = historyOf(random, `tm_p${seed}`, 40 + random.below(60))
        yield* makeTeam(made.team)
        yield* store(made)
        yield* askAll(random, made, 12)
        yield* addUp(seed)
        yield* askAll(random, made, 8)
        yield* compactRollups(now)
        yield* askAll(random, made, 12)
      }
    })
  )

  it.effect("Counts and series are exact where the previous version counted wrongly", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const random = randomOf(99)
      const made = historyOf(random, "tm_before", 80)
      yield* makeTeam(made.team)
      yield* store(made)
      yield* addUp(1)
      const since = clock(hour, 20 * hour)
      yield* sql`update rollups set count = count + 3 where team_id = ${made.team} and minute < ${new Date(since)}`
      yield* sql`insert into settings (name, value) values ('counts_exact_from', ${String(since)})`
      yield* askAll(random, made, 25)
      yield* sql`delete from settings where name = 'counts_exact_from'`
    })
  )

  it.effect("Counts by source and destination use their own counters from when these exist", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const made = make("tm_pair", [
        { at: now - 3 * hour, connection: 0, becomes: "successful" },
        { at: now - hour, connection: 1, becomes: "successful" },
        { at: now - hour, connection: 0, becomes: "failed" }
      ])
      yield* makeTeam(made.team)
      yield* store(made)
      yield* addUp(1)
      const { destinations, sources } = endsOf(made.team)
      const pair = { ...anyEvent, sources: [sources[0]], destinations: [destinations[0]] }
      const count = countEvents(made.team, pair, { from: now - 5 * hour, to: now }, 1)
      // No row is looked through.
      expect(yield* count).toEqual({ total: 2, exact: true })
      const setFrom = (at: number) =>
        sql`insert into settings (name, value) values ('pair_counts_exact_from', ${String(at)})`
      const over = sql`delete from settings where name = 'pair_counts_exact_from'`
      const older = sql`update rollups set count = count + 3
        where team_id = ${made.team} and key_id like '%>%' and minute < ${new Date(clock(hour, 2 * hour))}`
      yield* older
      yield* setFrom(clock(hour, 2 * hour))
      expect(yield* count).toEqual({ total: 2, exact: true })
      yield* over
      expect(yield* count).toEqual({ total: 5, exact: true })
    })
  )

  it.effect("Counts exclude deleted records, and series include them while counts are kept", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const at = now - 3 * day
      const made = make("tm_gone", [
        { at, connection: 0, becomes: "successful" },
        { at: now - 1_000, connection: 0, becomes: "successful" }
      ])
      yield* makeTeam(made.team)
      yield* store(made)
      const cleared = new Date(clock(day, day))
      yield* sql`delete from events where team_id = ${made.team} and created_at < ${cleared}`
      yield* sql`update teams set records_cleared_to = ${cleared} where id = ${made.team}`
      const { total } = yield* EventReads.count(made.team, anyEvent, { from: "now-3d", to: "now" })
      expect(total).toBe(1)
      const { series } = yield* MetricsReads.events(made.team, anyEvent, {
        window: { from: "now-30d", to: "now" },
        granularity: "1h",
        measures: ["count"]
      })
      expect(series).toHaveLength(30 * 24 + 1)
      expect(series.reduce((sum, { count = 0 }) => sum + count, 0)).toBe(2)
    })
  )

  it.effect("Reads from before the rollups only use rows of that time, and otherwise no rows", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const border = clock(hour, 30 * hour)
      const made = make("tm_border", [
        { at: border - 1, connection: 0, becomes: "successful" },
        { at: border - hour, connection: 1, becomes: "failed" },
        ...Array.from({ length: 20 }, (_, n) => ({ at: border + n, connection: 0, becomes: "successful" as const })),
        { at: border + hour, connection: 0, becomes: "ignored" }
      ])
      yield* makeTeam(made.team)
      yield* store(made)
      yield* addUp(1)
      const exactFrom = (at: number) =>
        sql`insert into settings (name, value) values ('counts_exact_from', ${String(at)})`
      const ranges: ReadonlyArray<readonly [from: number, step: number, old: number]> = [
        [clock(hour, 100 * day), hour, 2],
        [border - 2 * hour, minute, 2],
        [border - 2 * hour, hour, 2],
        [border, 5 * minute, 0]
      ]
      for (const [from, step, old] of ranges) {
        const at = { from, to: clock(hour, 0) + hour, step }
        const read = Effect.all([
          eventBuckets(made.team, anyEvent, at, 5),
          requestBuckets(made.team, anyRequest, at, 5)
        ])
        yield* exactFrom(border)
        const [events, requests] = yield* read
        yield* sql`delete from settings where name = 'counts_exact_from'`
        const sum = (buckets: ReadonlyArray<{ readonly count: number }> | undefined | null) =>
          buckets?.reduce((total, { count }) => total + count, 0)
        expect([sum(events?.buckets), sum(requests)], `${from} ${step}`).toEqual([20 + old, 21 + old])
        expect(events?.buckets[Math.floor((border - from) / step)]?.count).toBe(20)
      }
      const told = yield* explained(
        MetricsReads.events(
          made.team,
          { ...anyEvent, statuses: ["SUCCESSFUL"] },
          {
            window: { from: "now-30d", to: "now" },
            granularity: "1h",
            measures: eventMeasures
          }
        )
      )
      expect(told.days).toEqual([])
    })
  )

  it.effect("A series of many buckets looks each row up in only a few of them", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const at = { from: clock(hour, 2 * hour), to: clock(hour, 2 * hour) + 3_000_000, step: 1_000 }
      const { bucket, joins } = bucketOf(sql, sql.literal("e.id"), prefixes.event, at)
      const ids = [0, 1, 999, 1_000, 54_999, 55_000, 55_001, 2_999_999].map((ms) =>
        idBound(prefixes.event, at.from + ms)
      )
      const statement = sql<{ bucket: number }>`select (${bucket})::int4 as bucket
        from unnest(${ids}::text[]) with ordinality as e (id, n) ${joins} order by e.n`
      expect((yield* statement).map(({ bucket }) => bucket)).toEqual([1, 1, 1, 2, 55, 56, 56, 3_000])
      const [, parameters] = statement.compile()
      const looked = parameters.filter((value) => Array.isArray(value) && !value.some((text) => ids.includes(text)))
      for (const list of looked) expect((list as ReadonlyArray<string>).length).toBeLessThan(64)
    })
  )

  it.effect("A report whose statement takes too long is rejected with advice for a shorter range", () =>
    Effect.gen(function* () {
      const late = Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        // All statements of a report have the same session, which keeps its settings.
        const [before] = yield* sql<{ statement_timeout: string }>`show statement_timeout`
        yield* sql`select set_config('statement_timeout', '20ms', false)`
        yield* Effect.ensuring(
          sql`select pg_sleep(60)`,
          Effect.orDie(sql`select set_config('statement_timeout', ${before!.statement_timeout}, false)`)
        )
      })
      expect(yield* Effect.flip(asReport("tm_late")(late))).toMatchObject({
        code: "QUEUE_UNAVAILABLE",
        message: expect.stringContaining("shorter range")
      })
    })
  )

  it.effect("Counts beyond the read limit are lower bounds, and such series are rejected", () =>
    Effect.gen(function* () {
      const made = make(
        "tm_many",
        Array.from({ length: 40 }, (_, n) => ({
          at: clock(minute, 10 * minute) + n,
          connection: 0,
          becomes: n % 4 === 0 ? ("queued" as const) : ("successful" as const)
        }))
      )
      yield* makeTeam(made.team)
      yield* store(made)
      const all = { from: now - hour, to: now }
      const narrow = { ...anyEvent, search: prefixes.event }
      const at = { from: clock(hour, hour), to: clock(hour, 0) + hour, step: 1_000 }
      expect(yield* countEvents(made.team, anyEvent, all, 9)).toEqual({ total: 40, exact: true })
      const some = yield* countEvents(made.team, narrow, all, 9)
      expect(some.exact).toBe(false)
      expect(some.total).toBeLessThanOrEqual(40)
      expect(yield* countEvents(made.team, narrow, all, 40)).toEqual({ total: 40, exact: true })
      expect((yield* countEvents(made.team, { ...anyEvent, statuses: ["QUEUED"] }, all, 9)).exact).toBe(false)
      // A minute that most of is wanted of, and that has too many to be looked through.
      const cut = { from: clock(minute, 10 * minute) + 20, to: now }
      const least = yield* countEvents(made.team, anyEvent, cut, 9)
      expect(least.exact).toBe(false)
      expect(least.total).toBeLessThanOrEqual(20)
      expect(yield* countRequests(made.team, { ...anyRequest, verified: false }, all, 40)).toEqual({
        total: 40,
        exact: true
      })
      expect((yield* countRequests(made.team, { ...anyRequest, verified: false }, all, 9)).exact).toBe(false)
      expect(yield* eventBuckets(made.team, anyEvent, at, 9)).toBeNull()
      expect(yield* requestBuckets(made.team, anyRequest, at, 9)).toBeNull()
      const minutes = yield* eventBuckets(made.team, anyEvent, { ...at, step: minute }, 9)
      expect(minutes).toMatchObject({ partial: true })
      expect(minutes?.buckets.reduce((sum, { count }) => sum + count, 0)).toBe(40)
    })
  )

  it.effect("Counts and series only read partitions of their range, and none if rollups suffice", () =>
    Effect.gen(function* () {
      const made = historyOf(randomOf(5), "tm_days", 60)
      yield* makeTeam(made.team)
      yield* store(made)
      const { destinations, sources } = endsOf(made.team)
      const window = { from: iso(now - 2 * hour), to: iso(now - hour) }
      const days = new Set([now - 2 * hour, now - hour].map((at) => iso(at).slice(0, 10).replaceAll("-", "")))
      const both = { ...anyEvent, sources: [sources[0]], destinations: [destinations[0]] }
      const series = { window, granularity: "30s" as const, measures: eventMeasures }
      const reads: Readonly<
        Record<string, Effect.Effect<object, GatewayError | SqlError.SqlError, SqlClient.SqlClient>>
      > = {
        count: EventReads.count(made.team, anyEvent, window),
        "count by status": EventReads.count(made.team, { ...anyEvent, statuses }, window),
        "count by two": EventReads.count(made.team, both, window),
        "count requests": RequestReads.count(made.team, anyRequest, window),
        "count unverified requests": RequestReads.count(made.team, { ...anyRequest, verified: false }, window),
        events: MetricsReads.events(made.team, anyEvent, series),
        "events by two": MetricsReads.events(made.team, both, series),
        requests: MetricsReads.requests(made.team, anyRequest, { ...series, measures: requestMeasures })
      }
      for (const [name, read] of Object.entries(reads)) {
        const { days: looked } = yield* explained(read)
        for (const partition of looked) expect([...days], `${name}: ${partition}`).toContain(partition.slice(-8))
      }
      const whole = { from: iso(clock(hour, 6 * hour)), to: iso(clock(hour, hour)) }
      const told = yield* explained(
        MetricsReads.requests(made.team, anyRequest, { window: whole, granularity: "1m", measures: requestMeasures })
      )
      expect(told.days).toEqual([])
    })
  )

  it.effect("Series are in UTC, whatever the time zone of the session and of the range", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const at = clock(hour, 3 * hour)
      const made = make("tm_zones", [
        { at, connection: 0, becomes: "successful" },
        { at: at + hour - 1, connection: 0, becomes: "failed" }
      ])
      yield* makeTeam(made.team)
      yield* store(made)
      const local = (ms: number) => `${iso(ms + 5.75 * hour).slice(0, 19)}+05:45`
      for (const zone of ["Asia/Kathmandu", "America/St_Johns"]) {
        yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`select set_config('timezone', ${zone}, true)`
            const { date_range, series } = yield* MetricsReads.events(made.team, anyEvent, {
              window: { from: local(at), to: local(at + hour) },
              granularity: "1h",
              measures: ["count", "failed_count"]
            })
            expect(date_range).toEqual({ start: iso(at), end: iso(at + hour) })
            expect(series).toEqual([{ timestamp: iso(at), count: 2, failed_count: 1 }])
            expect(
              (yield* EventReads.count(made.team, anyEvent, { from: local(at + 1_000), to: local(at + hour) })).total
            ).toBe(1)
          })
        )
      }
    })
  )

  it.effect("Rates count the current minute and the four before it, for ids of several kinds in one answer", () =>
    Effect.gen(function* () {
      // Not the time at which the suite was loaded, which is minutes ago on a busy machine.
      const now = yield* Clock.currentTimeMillis
      const made = make("tm_rates", [
        { at: now - 1_000, connection: 0, becomes: "successful" },
        { at: now - 3 * minute, connection: 0, becomes: "failed" },
        { at: now - 6 * minute, connection: 0, becomes: "successful" },
        { at: now - 1_000, connection: 0, becomes: "rejected" }
      ])
      yield* makeTeam(made.team)
      yield* store(made)
      const { connections, destinations, sources } = endsOf(made.team)
      const asked = [sources[0], connections[0].id, destinations[0], "src_none"]
      const { count, date_range, models } = yield* SummaryReads.rates(made.team, asked)
      const nothing = { requests_count: 0, events_count: 0, successful_count: 0, failed_count: 0, attempts_count: 0 }
      const events = { events_count: 2, successful_count: 1, failed_count: 1 }
      expect(models).toMatchObject([
        { id: sources[0], ...events, requests_count: 3, attempts_count: 0 },
        { id: connections[0].id, ...events, requests_count: 0 },
        { id: destinations[0], ...events, requests_count: 0 },
        { id: "src_none", ...nothing }
      ])
      expect(count).toBe(4)
      expect(Date.parse(date_range.start) % minute).toBe(0)
      expect(Date.parse(date_range.end) - Date.parse(date_range.start)).toBeGreaterThanOrEqual(4 * minute)
      expect((yield* SummaryReads.rates("tm_others", asked)).models).toMatchObject(asked.map(() => nothing))
    })
  )

  it.effect("Summaries show the last 24 hours of each resource, and zeros for unknown ones", () =>
    Effect.gen(function* () {
      const made = make("tm_sums", [
        { at: now - hour, connection: 0, becomes: "successful" },
        { at: now - 2 * hour, connection: 0, becomes: "failed" },
        { at: now - 23 * hour, connection: 1, becomes: "queued" },
        { at: now - 25 * hour, connection: 0, becomes: "successful" },
        { at: now - hour, connection: 0, becomes: "rejected" },
        { at: now - hour, connection: 2, becomes: "cancelled" }
      ])
      yield* makeTeam(made.team)
      yield* store(made)
      const { connections, destinations, sources } = endsOf(made.team)
      const [source, none] = yield* SummaryReads.sources(made.team, [sources[0], "src_none"])
      expect(source).toMatchObject({
        id: sources[0],
        connections_count: 2,
        requests_24h_count: 4,
        requests_24h_total_count: 4,
        requests_24h_accepted_count: 3,
        requests_24h_rejected_count: 1,
        requests_24h_rejected_bins: [0, 0, 0, 0, 0, 1],
        events_24h_count: 3,
        events_24h_bins: [1, 0, 0, 0, 0, 2],
        events_24h_successful_count: 1,
        events_24h_failed_count: 1,
        events_24h_pending_bins: [1, 0, 0, 0, 0, 0],
        events_24h_cancelled_count: 0
      })
      expect(none).toMatchObject({ id: "src_none", requests_24h_count: 0, events_24h_bins: [0, 0, 0, 0, 0, 0] })
      const [destination] = yield* SummaryReads.destinations(made.team, [destinations[1]])
      expect(destination).toMatchObject({
        connections_count: 2,
        events_24h_count: 2,
        events_24h_pending_count: 1,
        events_24h_cancelled_count: 1,
        attempts_24h_count: 0
      })
      const [connection] = yield* SummaryReads.connections(made.team, [connections[0].id])
      expect(connection).toMatchObject({
        connection_id: connections[0].id,
        webhook_id: connections[0].id,
        source_id: sources[0],
        destination_id: destinations[0],
        events_24h_count: 2
      })
      expect(yield* SummaryReads.sources("tm_many", [sources[0]])).toMatchObject([
        { connections_count: 0, requests_24h_count: 0, events_24h_count: 0 }
      ])
    })
  )
})

describe("Parts of a time range", () => {
  plainIt("The parts of a range cover each moment once, and rollups cover whole units", () => {
    const random = randomOf(7)
    for (let n = 0; n < 5_000; n++) {
      const since: Since = {
        hours: clock(hour, random.below(80) * hour),
        minutes: clock(hour, random.below(50) * hour)
      }
      const whole = windowOf(random)
      const { added, removed, rolled } = partsOf({ from: whole.from, to: whole.to + 1 }, since, now, n % 2 === 0)
      const length = (all: ReadonlyArray<Stretch>) => all.reduce((sum, { from, to }) => sum + to - from, 0)
      expect(length(added) - length(removed) + (rolled === null ? 0 : rolled.to - rolled.from)).toBe(
        whole.to + 1 - whole.from
      )
      if (n % 2 === 1) expect(removed).toEqual([])
      if (rolled === null) continue
      for (const at of [rolled.from, rolled.to]) {
        expect(at % (at < since.minutes ? hour : minute)).toBe(0)
        expect(at).toBeGreaterThanOrEqual(since.hours)
      }
    }
  })
})
