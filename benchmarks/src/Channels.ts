/**
 * Many channels beside the event path: subscriptions that are renewed all the time, and lists that are polled each minute. Then a
 * second process is killed in the middle of renewals.
 */
import * as Effect from "effect/Effect"
import type { ChannelProviderCommands } from "./ChannelProvider.ts"
import {
  alternate,
  atLeast,
  atMost,
  beside,
  faults,
  gatewayWith,
  type Outcome,
  type Plan,
  single,
  startProcess,
  warmUp
} from "./Comparison.ts"
import type { Subject } from "./Measurement.ts"
import { processMemory } from "./ProcessMemory.ts"
import { processStats } from "./ProcessStats.ts"
import type { Row } from "./Report.ts"
import * as Worker from "./Worker.ts"

interface Sizes {
  readonly instant: number
  readonly polling: number
  /** The longest lease (s). Each is renewed at its half, so about `instant` times 8/3 by this number of seconds. */
  readonly lease: number
  /** How long the gateway is watched without other work (s). */
  readonly window: number
}

const full: Sizes = { instant: 5_000, polling: 1_000, lease: 600, window: 60 }
const quick: Sizes = { instant: 60, polling: 20, lease: 40, window: 12 }

/** Sources that are created at the same time. */
const creators = 16

export const channels = Effect.fnUntraced(function* (plan: Plan) {
  const { bench, progress, settings } = plan
  const { instant, lease, polling, window } = settings.rounds === 1 ? quick : full
  const database = "channels"
  const databaseUrl = yield* bench.postgres.database(database)
  const provider = yield* Worker.start<ChannelProviderCommands>("./ChannelProvider.ts")
  const origin = yield* provider.call("start", { longest: lease * 1_000 })
  const start = (name: string, env: Readonly<Record<string, string>> = {}) =>
    startProcess(plan, database, databaseUrl, name, env)
  const gateway = yield* start(database)
  const targetPath = `/${database}`
  const url = yield* gateway.route({
    name: "events",
    destinations: [{ url: `${bench.targetOrigin}${targetPath}` }],
    rules: []
  })
  const subject: Subject = { pid: gateway.pid, database, url, targetPaths: [targetPath] }
  const other = yield* gatewayWith(plan, "without_channels", 1, [])

  const report = provider.call("report", undefined)
  const create = (name: string, count: number, of: (n: number) => object) =>
    Effect.forEach(
      Array.from({ length: count }, (_, n) => n),
      (n) => gateway.create("sources", { name: `${name}-${n}`, type: "PROVIDER", config: { provider: of(n) } }),
      { concurrency: creators, discard: true }
    )
  const feed = (n: number) => ({
    provider_key: "websub",
    definition_key: "entry.added",
    inputs: { url: `${origin}/feeds/feed-${n}.atom` }
  })
  const list = (n: number) => ({
    provider_key: "json_feed",
    definition_key: "item.added",
    inputs: { url: `${origin}/lists/list-${n}`, items_path: "data.items" },
    schedule: { interval_minutes: 1 }
  })

  const began = performance.now()
  yield* create("feed", instant, feed)
  const created = (performance.now() - began) / 1_000
  // The first sources are already renewed while the last ones are created.
  const all = yield* report.pipe(
    Effect.delay("250 millis"),
    Effect.repeat({ until: ({ active }) => active >= instant }),
    Effect.timeout("300 seconds")
  )
  const provisioned = (performance.now() - began) / 1_000
  yield* progress(
    `channels: ${all.active} active after ${provisioned.toFixed(0)} s, of which creating them took ${created.toFixed(0)} s`
  )

  /** What the channels cost while nothing else happens. */
  const watch = Effect.fnUntraced(function* (what: string) {
    const look = Effect.gen(function* () {
      const statements = yield* bench.postgres.statements(database)
      const own = processStats(gateway.pid).cpuSeconds
      return { statements, own, sql: processStats(bench.postgres.pid).cpuSeconds, ...(yield* report) }
    })
    const before = yield* look
    yield* Effect.sleep(window * 1_000)
    const after = yield* look
    const perSecond = (of: (one: typeof before) => number) => (of(after) - of(before)) / window
    const renewals = perSecond((one) => one.subscribed)
    const found = {
      renewals,
      reads: perSecond((one) => one.reads),
      statements: perSecond((one) => one.statements),
      gateway: perSecond((one) => one.own) * 100,
      postgres: perSecond((one) => one.sql) * 100,
      memory: processMemory([gateway.pid], bench.postgres.pid).gateway / 1e6
    }
    yield* progress(
      `${what}: ${renewals.toFixed(1)} renewals/s, ${found.reads.toFixed(1)} reads/s, ${found.statements.toFixed(0)} statements/s, ` +
        `gateway ${found.gateway.toFixed(1)} %, PostgreSQL ${found.postgres.toFixed(1)} % of a core`
    )
    return found
  })
  const rowsOf = (scenario: string, found: Effect.Success<ReturnType<typeof watch>>): ReadonlyArray<Row> => [
    single(scenario, "renewals", "/s", found.renewals),
    single(scenario, "reads of the provider's lists", "/s", found.reads),
    single(scenario, "SQL statements", "/s", found.statements),
    single(scenario, "CPU, gateway", "% of a core", found.gateway),
    single(scenario, "CPU, PostgreSQL", "% of a core", found.postgres),
    single(scenario, "memory of the gateway", "MB", found.memory)
  ]

  // After this time, the leases end at different times.
  yield* Effect.sleep(Math.max(0, lease / 4 - (provisioned - created)) * 1_000)
  const renewing = yield* watch(`${instant} channels`)
  yield* create("list", polling, list)
  // Each list is read twice: then all polls follow their schedule.
  yield* Effect.sleep(settings.rounds === 1 ? "2 seconds" : "60 seconds")
  const both = yield* watch(`${instant} channels and ${polling} pollers`)

  yield* warmUp(plan, other)
  yield* warmUp(plan, subject)
  const measured = yield* alternate(plan, { reference: other, gateway: subject }, ["offered", "saturated"])

  yield* progress(`${(yield* report).expired} expired beside events`)

  // Its callbacks go to the first process, which lives on.
  yield* Effect.scoped(
    Effect.gen(function* () {
      // The address that the first process uses without this setting.
      const publicUrl = `http://localhost:${new URL(gateway.origin).port}`
      const second = yield* start(`${database}_second`, { PUBLIC_URL: publicUrl })
      yield* Effect.sleep(window * 500)
      yield* progress(`${(yield* report).expired} expired before the kill`)
      yield* Effect.sync(() => process.kill(second.pid, "SIGKILL"))
      yield* Effect.sleep(window * 500)
    })
  )
  const last = yield* report
  yield* progress(`${last.active} active, ${last.expired} expired before their renewal`)

  const many = `${instant.toLocaleString("en-US")} channels with leases of ${lease / 2} to ${lease} s`
  const path = `Events beside ${instant.toLocaleString("en-US")} channels and ${polling.toLocaleString("en-US")} pollers; reference: without`
  const offered = beside(`${path}; ${settings.perSecond} events/s`, measured.offered)
  const saturated = beside(`${path}; saturated`, measured.saturated)
  const renewals = Math.max(renewing.renewals, Number.MIN_VALUE)
  const none = atMost("value", 0)
  return {
    rows: [
      single(many, "sources created", "/s", instant / created),
      single(many, "channels provisioned, creating the sources included", "/s", instant / provisioned),
      ...rowsOf(many, renewing),
      single(many, "SQL statements per renewal", "", renewing.statements / renewals),
      ...rowsOf(`${many}, and ${polling.toLocaleString("en-US")} lists polled each minute`, both),
      single(many, "subscriptions that expired, also when a process is killed", "", last.expired, none),
      single(many, "channels that are not active at the end", "", Math.max(0, instant - last.active), none),
      offered("acknowledge p50", "ms", (one) => one.acknowledge.p50, atMost("ratio", 1.03)),
      offered("acknowledge p99", "ms", (one) => one.acknowledge.p99),
      offered("sender to target p50", "ms", (one) => one.senderToTarget.p50),
      offered("sender to target p99", "ms", (one) => one.senderToTarget.p99),
      saturated("events delivered", "events/s", (one) => one.perSecond, atLeast("ratio", 0.97)),
      saturated("cores taken by other processes", "", (one) => one.otherCores),
      ...faults("Faults of the gateway beside channels", [...measured.offered.gateway, ...measured.saturated.gateway])
    ],
    measured
  } satisfies Outcome
}, Effect.scoped)
