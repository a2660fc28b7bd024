/** The cost of sources that subscribe to an empty queue: memory, CPU, SQL statements, and the effect on events. */
import { make } from "@effect/sql-pg/PgConnection"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { SqlError } from "effect/sql/SqlError"
import { startParties } from "./BrokerParties.ts"
import {
  alternate,
  atLeast,
  atMost,
  beside,
  faults,
  type Outcome,
  type Plan,
  relayAndPostgres,
  type Sides,
  single,
  startProcess,
  warmUp
} from "./Comparison.ts"
import * as Gateway from "./Gateway.ts"
import type { Subject } from "./Measurement.ts"
import { processMemory } from "./ProcessMemory.ts"
import { processStats } from "./ProcessStats.ts"
import { makeRow, type Row } from "./Report.ts"

interface Sizes {
  /** Sources of each type. */
  readonly subscriptions: number
  /** Seconds until the work of creating them is over, and seconds for which they are then watched. */
  readonly settle: number
  readonly window: number
}

const full: Sizes = { subscriptions: 34, settle: 15, window: 30 }
const quick: Sizes = { subscriptions: 10, settle: 2, window: 5 }

/** How long (s) it may take until all subscriptions are connected. */
const patienceSeconds = 240

/** Sources that are created at the same time. */
const creators = 16

/** What a gateway costs while nothing happens. */
interface Idle {
  readonly megabytes: number
  /** Percent of a core. */
  readonly cpu: number
  readonly statements: number
}

const idleRows = (scenario: string, [reference, gateway]: readonly [Idle, Idle]): ReadonlyArray<Row> => {
  const figure = (measure: string, unit: string, of: (one: Idle) => number) =>
    makeRow({ scenario, measure, unit, reference: [of(reference)], gateway: [of(gateway)] })
  return [
    figure("memory of the gateway", "MB", (one) => one.megabytes),
    figure("CPU of the gateway", "% of a core", (one) => one.cpu),
    figure("SQL statements", "/s", (one) => one.statements)
  ]
}

/** With the subscriptions, events may cost 2 % more. */
const pathRows = ({ settings }: Plan, measured: Readonly<Record<"offered" | "saturated", Sides>>, what: string) => {
  const path = `Events beside ${what}; reference: without`
  const offered = beside(`${path}; ${settings.perSecond} events/s`, measured.offered)
  const saturated = beside(`${path}; saturated`, measured.saturated)
  const noMore = atMost("ratio", 1.02)
  return [
    saturated("events delivered", "events/s", (one) => one.perSecond, atLeast("ratio", 0.98)),
    saturated("CPU per 1,000 events, gateway and PostgreSQL", "s", relayAndPostgres, noMore),
    saturated("cores taken by other processes", "", (one) => one.otherCores),
    offered("CPU per 1,000 events, gateway and PostgreSQL", "s", relayAndPostgres, noMore),
    offered("sender to target p50", "ms", (one) => one.senderToTarget.p50, noMore),
    offered("sender to target p99", "ms", (one) => one.senderToTarget.p99),
    offered("cores taken by other processes", "", (one) => one.otherCores),
    ...faults(`Faults of the gateway beside ${what}`, [...measured.offered.gateway, ...measured.saturated.gateway])
  ]
}

/**
 * Two gateways get the same number of sources. The sources of the first one subscribe to brokers. Those of the second one are ordinary sources, for
 * which a gateway holds no connection.
 */
export const idleSubscriptions = Effect.fnUntraced(function* (plan: Plan) {
  const { bench, progress, settings } = plan
  const { settle, subscriptions, window } = settings.rounds === 1 ? quick : full
  const { missing, started } = yield* startParties(plan.home, ({ subscribes }) => subscribes)
  const subscribing = started.flatMap(({ subscription, type }) =>
    subscription === undefined ? [] : [{ subscription, type }]
  )
  const start = Effect.fnUntraced(function* (name: string) {
    const databaseUrl = yield* bench.postgres.database(name)
    const env = { TIDEGATE_MOST_SUBSCRIBED_SOURCES: String(subscriptions * subscribing.length) }
    const gateway = yield* startProcess(plan, name, databaseUrl, name, env)
    const targetPath = `/${name}`
    const destinations = [{ url: `${bench.targetOrigin}${targetPath}` }]
    const url = yield* gateway.route({ name: "events", destinations, rules: [] })
    const subject: Subject = { pid: gateway.pid, database: name, url, targetPaths: [targetPath] }
    const sources = (name: string, input: (n: number) => object) =>
      Effect.forEach(
        Array.from({ length: subscriptions }, (_, n) => n),
        (n) => gateway.create("sources", { name: `${name}-${n}`, ...input(n) }),
        { concurrency: creators, discard: true }
      )
    return { subject, sources, database: yield* make({ url: Redacted.make(databaseUrl) }) }
  })
  const without = yield* start("without_subscriptions")
  const within = yield* start("with_subscriptions")
  yield* warmUp(plan, without.subject)
  yield* warmUp(plan, within.subject)

  const look = Effect.fnUntraced(function* ({ database, pid }: Subject) {
    return { cpu: processStats(pid).cpuSeconds, statements: yield* bench.postgres.statements(database) }
  })
  /** Both are measured at the same time, so that other work on the machine affects them equally. */
  const watch = Effect.gen(function* () {
    yield* Effect.sleep(settle * 1_000)
    const before = [yield* look(without.subject), yield* look(within.subject)] as const
    yield* Effect.sleep(window * 1_000)
    const after = [yield* look(without.subject), yield* look(within.subject)] as const
    const idle = (pid: number, at: 0 | 1): Idle => ({
      megabytes: processMemory([pid], bench.postgres.pid).gateway / 1e6,
      cpu: ((after[at].cpu - before[at].cpu) / window) * 100,
      statements: (after[at].statements - before[at].statements) / window
    })
    return [idle(without.subject.pid, 0), idle(within.subject.pid, 1)] as const
  })

  const rows = [
    ...[...missing].map(([type, why]) =>
      single("Idle subscriptions", `${type}: skipped, because ${why}`, "", Number.NaN)
    ),
    ...idleRows("No subscriptions in both gateways", yield* watch)
  ]
  const held: Array<string> = []
  for (const { subscription, type } of subscribing) {
    yield* without.sources(type, () => ({ type: "WEBHOOK" }))
    yield* within.sources(type, (n) => ({ type, config: subscription(n) }))
    held.push(type)
    const count = subscriptions * held.length
    const others = within.database.queryValues(
      "select count(*)::int, coalesce(max(last_error), 'no error yet') from source_subscriptions where status <> 'connected'"
    )
    const waitFor = (wait: number): Effect.Effect<void, SqlError | Gateway.GatewayError> =>
      Effect.flatMap(others, ([row]) => {
        if (Number(row?.[0]) === 0) return Effect.void
        const message = `${Number(row?.[0])} of ${count} are not connected: ${row?.[1] as string}`
        return wait > patienceSeconds
          ? Effect.fail(new Gateway.GatewayError({ message }))
          : Effect.andThen(Effect.sleep("1 second"), waitFor(wait + 1))
      })
    yield* waitFor(0)
    const pair = yield* watch
    const what = `${count} idle subscriptions (${subscriptions} each of ${held.join(", ")})`
    rows.push(...idleRows(`${what}; reference: ${count} sources without`, pair))
    yield* progress(`${what}: ${pair[1].megabytes.toFixed(0)} MB beside ${pair[0].megabytes.toFixed(0)} MB`)
  }
  const subjects = { reference: without.subject, gateway: within.subject }
  const measured = yield* alternate(plan, subjects, ["offered", "saturated"])
  const what = `${subscriptions * held.length} idle subscriptions`
  return { rows: [...rows, ...pathRows(plan, measured, what)], measured } satisfies Outcome
}, Effect.scoped)
