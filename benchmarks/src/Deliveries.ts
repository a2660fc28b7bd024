/**
 * Measures deliveries that do not go to the benchmark's own target. It uses the attempts that the gateway has recorded, because only the gateway
 * knows for every destination type when an event has arrived.
 */
import { make } from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Postgres } from "./Postgres.ts"
import { processStats } from "./ProcessStats.ts"
import { makeRow, type Row } from "./Report.ts"

/** What was measured of one destination under one load. */
export interface Delivering {
  /** Deliveries per second, from the first send to the last answer. */
  readonly perSecond: number
  /** CPU seconds per 1,000 events. */
  readonly cpu: { readonly gateway: number; readonly postgres: number }
  /** Milliseconds from the stored request to the answer of the destination. */
  readonly p50: number
  readonly p99: number
}

/** The attempts of the events that were made since a time. */
interface Recorded {
  readonly delivered: number
  /** The `error_code` of a failed attempt. Empty: no attempt failed. */
  readonly fault: string
  /** Milliseconds since the epoch: when the last answer came. */
  readonly last: number
  readonly p50: number
  readonly p99: number
}

const pollMillis = 100

/** Watches a gateway, and what it records in its database. */
export const observer = Effect.fnUntraced(function* (gatewayPid: number, databaseUrl: string, postgres: Postgres) {
  const database = yield* make({ url: Redacted.make(databaseUrl) })
  // The reads use only this session's server process, so their CPU time can be subtracted from that of PostgreSQL.
  yield* database.query("set max_parallel_workers_per_gather = 0")
  const [row] = yield* database.queryValues("select pg_backend_pid()")
  const ownPid = Number(row?.[0])
  const look = () => ({
    gateway: processStats(gatewayPid).cpuSeconds,
    postgres: processStats(postgres.pid).cpuSeconds - processStats(ownPid).cpuSeconds
  })

  /** Reads again until `count` events are delivered, one has failed, or it takes too long. */
  const recorded = Effect.fnUntraced(function* (since: Date, count: number, patienceMillis: number) {
    const deadline = performance.now() + patienceMillis
    while (true) {
      const { rows } = yield* database.query(
        `select count(*) filter (where a.successful_at is not null)::int as delivered,
           coalesce(max(a.error_code), '') as fault,
           coalesce(extract(epoch from max(a.responded_at))::float8 * 1000, 'NaN') as last,
           coalesce(percentile_cont(0.5) within group (order by extract(epoch from a.responded_at - e.created_at))::float8 * 1000, 'NaN') as p50,
           coalesce(percentile_cont(0.99) within group (order by extract(epoch from a.responded_at - e.created_at))::float8 * 1000, 'NaN') as p99
         from attempts a join events e on e.id = a.event_id where e.created_at >= $1`,
        [since]
      )
      const [found] = rows as unknown as readonly [Recorded]
      if (found.delivered >= count || found.fault !== "" || performance.now() > deadline) return found
      yield* Effect.sleep(pollMillis)
    }
  })

  return {
    /** Sends a load of `count` events, and waits until they are delivered. `fault`: why the figures do not count; null: they do. */
    delivering: Effect.fnUntraced(function* <E>(
      load: Effect.Effect<unknown, E>,
      count: number,
      patienceMillis: number
    ) {
      const since = new Date()
      const before = look()
      yield* load
      const { delivered, fault, last, p50, p99 } = yield* recorded(since, count, patienceMillis)
      const after = look()
      const thousands = delivered / 1_000
      const found: Delivering = {
        perSecond: (delivered / (last - since.getTime())) * 1_000,
        cpu: {
          gateway: (after.gateway - before.gateway) / thousands,
          postgres: (after.postgres - before.postgres) / thousands
        },
        p50,
        p99
      }
      return { found, fault: fault !== "" ? fault : delivered < count ? `${count - delivered} not delivered` : null }
    })
  }
})

const figures: ReadonlyArray<readonly [measure: string, unit: string, of: (one: Delivering) => number]> = [
  ["rate", "events/s", (one) => one.perSecond],
  ["CPU for 1,000 events, gateway", "s", (one) => one.cpu.gateway],
  ["CPU for 1,000 events, PostgreSQL", "s", (one) => one.cpu.postgres],
  ["event to answer, p50", "ms", (one) => one.p50],
  ["event to answer, p99", "ms", (one) => one.p99]
]

/** The rows of one destination. `reference` has the same rounds of another one. */
export const deliveryRows = (
  scenario: string,
  name: string,
  found: ReadonlyArray<Delivering>,
  reference: ReadonlyArray<Delivering>
): ReadonlyArray<Row> =>
  figures.map(([measure, unit, of]) =>
    makeRow({
      scenario,
      measure: `${name}: ${measure}`,
      unit,
      reference: reference.slice(0, found.length).map(of),
      gateway: found.map(of)
    })
  )

export const summaryOf = (name: string, { cpu, p50, p99, perSecond }: Delivering): string =>
  `${name}: ${perSecond.toFixed(0)}/s, CPU for 1,000 ${cpu.gateway.toFixed(3)} s and PostgreSQL ${cpu.postgres.toFixed(3)} s, ` +
  `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`
