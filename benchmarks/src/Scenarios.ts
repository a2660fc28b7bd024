/** The scenarios, their order, and their requirements. */
import * as Effect from "effect/Effect"
import {
  alternate,
  atLeast,
  atMost,
  beside,
  faults,
  gatewayWith,
  type Outcome,
  type Plan,
  relayAndPostgres,
  single,
  startGateway,
  startPipeline,
  warmUp
} from "./Comparison.ts"
import { fill, type Subject } from "./Measurement.ts"

/** A filter that reads two members of the body and matches, and a retry rule: the work of rules without an effect. */
const RULES = [
  { type: "filter", body: { type: { $in: ["order.created", "order.paid"] }, customer: { country: "DE" } } },
  { type: "retry", strategy: "exponential", count: 5, interval: 60_000, response_status_codes: ["429", "500-599"] }
]

/** The bare pipeline compared with itself: the speed of this machine, and how far a ratio differs from 100 % by chance. */
export const pipeline = Effect.fnUntraced(function* (plan: Plan) {
  const subjects = {
    reference: yield* startPipeline(plan, "bare_first"),
    gateway: yield* startPipeline(plan, "bare_second")
  }
  yield* warmUp(plan, subjects.reference)
  yield* warmUp(plan, subjects.gateway)
  const measured = yield* alternate(plan, subjects, ["offered", "saturated"])
  const saturated = beside("Saturated end to end; the bare pipeline in both columns", measured.saturated)
  const offered = beside(
    `${plan.settings.perSecond} events/s offered; the bare pipeline in both columns`,
    measured.offered
  )
  return {
    rows: [
      saturated("events delivered", "events/s", (one) => one.perSecond),
      saturated("SQL statements per event", "", (one) => one.statements),
      saturated("CPU per 1,000 events, relay and PostgreSQL", "s", relayAndPostgres),
      offered("acknowledge p50", "ms", (one) => one.acknowledge.p50),
      offered("acknowledge p99", "ms", (one) => one.acknowledge.p99),
      offered("sender to target p50", "ms", (one) => one.senderToTarget.p50),
      offered("sender to target p99", "ms", (one) => one.senderToTarget.p99)
    ],
    measured
  } satisfies Outcome
}, Effect.scoped)

/** The gateway compared with the bare pipeline: throughput, latency, statements, CPU, memory. */
export const throughput = Effect.fnUntraced(function* (plan: Plan) {
  const subjects = {
    reference: yield* startPipeline(plan, "bare"),
    gateway: yield* gatewayWith(plan, "gateway", 1, [])
  }
  yield* warmUp(plan, subjects.reference)
  yield* warmUp(plan, subjects.gateway)
  const measured = yield* alternate(plan, subjects, ["offered", "saturated"])
  const saturated = beside("Saturated end to end, one connection; reference: bare pipeline", measured.saturated)
  const offered = beside(`${plan.settings.perSecond} events/s offered; reference: bare pipeline`, measured.offered)
  return {
    rows: [
      saturated("events delivered", "events/s", (one) => one.perSecond, atLeast("ratio", 0.6)),
      saturated("SQL statements per event", "", (one) => one.statements, atMost("value", 0.1)),
      saturated("CPU per 1,000 events, relay", "s", (one) => one.cpu.subject),
      saturated("CPU per 1,000 events, PostgreSQL", "s", (one) => one.cpu.postgres),
      saturated("CPU per 1,000 events, relay and PostgreSQL", "s", relayAndPostgres),
      saturated("CPU per 1,000 events, generator and target", "s", (one) => one.cpu.generator + one.cpu.target),
      saturated("acknowledge p50", "ms", (one) => one.acknowledge.p50),
      saturated("acknowledge p99", "ms", (one) => one.acknowledge.p99),
      saturated("sender to target p50", "ms", (one) => one.senderToTarget.p50),
      saturated("sender to target p99", "ms", (one) => one.senderToTarget.p99),
      saturated("resident memory, peak", "MB", (one) => one.peakMegabytes),
      saturated("cores taken by other processes", "", (one) => one.otherCores),
      offered("acknowledge p50", "ms", (one) => one.acknowledge.p50, atMost("ratio", 2)),
      offered("acknowledge p99", "ms", (one) => one.acknowledge.p99, atMost("ratio", 2)),
      offered("sender to target p50", "ms", (one) => one.senderToTarget.p50, atMost("ratio", 2)),
      offered("sender to target p99", "ms", (one) => one.senderToTarget.p99, atMost("ratio", 2)),
      offered("events delivered", "events/s", (one) => one.perSecond),
      offered("SQL statements per event", "", (one) => one.statements),
      offered("CPU per 1,000 events, relay and PostgreSQL", "s", relayAndPostgres),
      offered("cores taken by other processes", "", (one) => one.otherCores),
      ...faults("Faults of the gateway in these runs", [...measured.offered.gateway, ...measured.saturated.gateway])
    ],
    measured
  } satisfies Outcome
}, Effect.scoped)

/** The gateway compared with another version of itself: the cost of a change. */
export const versions = Effect.fnUntraced(function* (plan: Plan) {
  const subjects = {
    reference: yield* gatewayWith({ ...plan, gatewayEntry: plan.beforeEntry }, "before", 1, []),
    gateway: yield* gatewayWith(plan, "after", 1, [])
  }
  yield* warmUp(plan, subjects.reference)
  yield* warmUp(plan, subjects.gateway)
  const measured = yield* alternate(plan, subjects, ["offered", "saturated"])
  const saturated = beside("Saturated end to end, one connection; reference: the version before", measured.saturated)
  const offered = beside(`${plan.settings.perSecond} events/s offered; reference: the version before`, measured.offered)
  const noWorse = atMost("ratio", 1.03)
  return {
    rows: [
      saturated("events delivered", "events/s", (one) => one.perSecond, atLeast("ratio", 0.97)),
      saturated("CPU per 1,000 events, gateway", "s", (one) => one.cpu.subject),
      saturated("CPU per 1,000 events, PostgreSQL", "s", (one) => one.cpu.postgres),
      saturated("CPU per 1,000 events, gateway and PostgreSQL", "s", relayAndPostgres, noWorse),
      saturated("SQL statements per event", "", (one) => one.statements),
      saturated("acknowledge p50", "ms", (one) => one.acknowledge.p50, noWorse),
      saturated("acknowledge p99", "ms", (one) => one.acknowledge.p99),
      saturated("sender to target p50", "ms", (one) => one.senderToTarget.p50, noWorse),
      saturated("sender to target p99", "ms", (one) => one.senderToTarget.p99),
      saturated("resident memory, peak", "MB", (one) => one.peakMegabytes),
      saturated("cores taken by other processes", "", (one) => one.otherCores),
      offered("acknowledge p50", "ms", (one) => one.acknowledge.p50, noWorse),
      offered("acknowledge p99", "ms", (one) => one.acknowledge.p99),
      offered("sender to target p50", "ms", (one) => one.senderToTarget.p50, noWorse),
      offered("sender to target p99", "ms", (one) => one.senderToTarget.p99),
      offered("CPU per 1,000 events, gateway and PostgreSQL", "s", relayAndPostgres, noWorse),
      offered("SQL statements per event", "", (one) => one.statements),
      offered("cores taken by other processes", "", (one) => one.otherCores),
      ...faults("Faults of the gateway in these runs", [...measured.offered.gateway, ...measured.saturated.gateway])
    ],
    measured
  } satisfies Outcome
}, Effect.scoped)

/**
 * Three connections with filter and retry rules, compared with one connection without rules. An event is one routed delivery, and
 * CPU is the time of gateway and PostgreSQL.
 */
export const fanOut = Effect.fnUntraced(function* (plan: Plan) {
  const subjects = {
    reference: yield* gatewayWith(plan, "one", 1, []),
    gateway: yield* gatewayWith(plan, "three", 3, RULES)
  }
  yield* warmUp(plan, subjects.reference)
  yield* warmUp(plan, subjects.gateway)
  const measured = yield* alternate(plan, subjects, ["saturated"])
  const row = beside(
    "Three connections with filter and retry rules, saturated; reference: one connection without rules",
    measured.saturated
  )
  return {
    rows: [
      row("events per core", "events/s", (one) => 1_000 / relayAndPostgres(one), atLeast("ratio", 0.8)),
      row("events delivered", "events/s", (one) => one.perSecond),
      row("SQL statements per event", "", (one) => one.statements),
      row("resident memory, peak", "MB", (one) => one.peakMegabytes),
      row("cores taken by other processes", "", (one) => one.otherCores),
      ...faults("Faults of the gateway with three connections", measured.saturated.gateway)
    ],
    measured
  } satisfies Outcome
}, Effect.scoped)

/** A destination with a limit of one delivery per second and a long backlog, and its effect on another destination. */
export const backlog = Effect.fnUntraced(function* (plan: Plan) {
  const { bench, settings, progress } = plan
  const start = Effect.fnUntraced(function* (name: string) {
    const gateway = yield* startGateway(plan, name)
    const pacedLane = `/${name}-paced`
    const pacedUrl = yield* gateway.route({
      name: "paced",
      destinations: [{ url: `${bench.targetOrigin}${pacedLane}`, perSecond: 1 }],
      rules: []
    })
    const targetPath = `/${name}-free`
    const url = yield* gateway.route({
      name: "free",
      destinations: [{ url: `${bench.targetOrigin}${targetPath}` }],
      rules: []
    })
    const subject: Subject = { pid: gateway.pid, database: name, url, targetPaths: [targetPath] }
    return { subject, pacedUrl, pacedLane }
  })
  const plain = yield* start("without_backlog")
  const loaded = yield* start("with_backlog")
  yield* warmUp(plan, plain.subject)
  yield* warmUp(plan, loaded.subject)
  const filled = yield* fill(bench, loaded.pacedUrl, settings.backlog, settings.backlogFill)
  yield* progress(`backlog: ${filled.acknowledged} events accepted at ${filled.perSecond.toFixed(0)}/s`)

  const subjects = { reference: plain.subject, gateway: loaded.subject }
  const measured = yield* alternate(plan, subjects, ["offered", "saturated"])
  const paced = yield* bench.target.call("report", { run: filled.run })
  const waiting = filled.acknowledged - (paced.distinct[loaded.pacedLane] ?? 0)

  const scenario = "Another destination beside the backlog of a paced one; reference: the same without the backlog"
  const saturated = beside(scenario, measured.saturated)
  const offered = beside(scenario, measured.offered)
  const at = `at ${settings.perSecond}/s`
  return {
    rows: [
      // The deliveries that the limit has allowed by then are not missing.
      single(scenario, "events waiting at the end", "", waiting, atLeast("value", settings.backlog * 0.99)),
      single(scenario, "accepted while filling", "events/s", filled.perSecond),
      single(scenario, "refused while filling", "", filled.refused, atMost("value", 0)),
      saturated("events delivered, saturated", "events/s", (one) => one.perSecond, atLeast("ratio", 0.9)),
      offered(`sender to target p99 ${at}`, "ms", (one) => one.senderToTarget.p99, atMost("ratio", 1.1)),
      offered(`sender to target p50 ${at}`, "ms", (one) => one.senderToTarget.p50),
      offered(`acknowledge p99 ${at}`, "ms", (one) => one.acknowledge.p99),
      saturated("SQL statements per event, saturated", "", (one) => one.statements),
      saturated("gateway's resident memory, peak", "MB", (one) => one.peakMegabytes, atMost("value", 600)),
      saturated("cores taken by other processes", "", (one) => one.otherCores),
      ...faults("Faults of the gateway beside the backlog", [
        ...measured.offered.gateway,
        ...measured.saturated.gateway
      ])
    ],
    measured
  } satisfies Outcome
}, Effect.scoped)
