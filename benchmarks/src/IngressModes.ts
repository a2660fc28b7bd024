/** The cost of additional work in ingress. Each kind is compared with a gateway that has one connection and no such work. */
import * as Effect from "effect/Effect"
import {
  alternate,
  atMost,
  beside,
  faults,
  gatewayWith,
  type Outcome,
  type Plan,
  relayAndPostgres,
  type Sides,
  startGateway,
  warmUp
} from "./Comparison.ts"
import type { Measurement, Subject } from "./Measurement.ts"
import { makeRow, type Requirement, type Row } from "./Report.ts"
import { deduplicate, transform } from "./Rules.ts"

/** All 50 are evaluated, a third of them read the body, and none matches. */
const responseRules = Array.from({ length: 50 }, (_, index) => ({
  match: [
    { path: { $starts_with: `/tenants/${index}` } },
    { headers: { "x-tenant": `tenant-${index}` } },
    { body: { type: "order.created", amount: { $gt: 5_000 + index } } }
  ][index % 3],
  response: { status: 202, body: `{"rule":${index}}` }
}))

/** A source in proxy mode without connections: the target receives the sender's own request. */
const proxied = Effect.fnUntraced(function* (plan: Plan) {
  const name = "proxied"
  const gateway = yield* startGateway(plan, name)
  const targetPath = `/${name}`
  const config = { mode: "proxy", proxy: { enabled: true, target_url: `${plan.bench.targetOrigin}${targetPath}` } }
  const url = yield* gateway.route({ name, destinations: [], rules: [], source: { config } })
  return { pid: gateway.pid, database: name, url, targetPaths: [targetPath] } satisfies Subject
})

/** Low enough for all of them on two cores. */
const perSecond = 300

/**
 * The additional CPU time per event, compared with an event without the work. CPU seconds per 1,000 events are milliseconds per
 * event.
 */
const extraCpu = (scenario: string, { gateway, reference }: Sides, required?: Requirement): Row =>
  makeRow({
    scenario,
    measure: "CPU per event beyond one without",
    unit: "ms",
    gateway: gateway.map((one, round) => relayAndPostgres(one) - relayAndPostgres(reference[round]!)),
    ...(required && { required })
  })

export const ingressModes = Effect.fnUntraced(function* (given: Plan) {
  const plan: Plan = {
    ...given,
    settings: {
      ...given.settings,
      rounds: Math.min(3, given.settings.rounds),
      perSecond: Math.min(perSecond, given.settings.perSecond)
    }
  }
  const plain = yield* gatewayWith(plan, "plain", 1, [])
  const response = { content_type: "json", body: '{"received":"{{request.id}}"}', rules: responseRules }
  const variants: ReadonlyArray<readonly [what: string, Subject]> = [
    ["a transformation", yield* gatewayWith(plan, "transformed", 1, [transform])],
    ["a deduplicate rule", yield* gatewayWith(plan, "deduplicated", 1, [deduplicate])],
    ["50 response rules", yield* gatewayWith(plan, "responding", 1, [], { config: { custom_response: response } })],
    ["proxy mode", yield* proxied(plan)]
  ]
  yield* warmUp(plan, plain)
  const rows: Array<Outcome["rows"][number]> = []
  const all = { offered: [] as Array<Measurement>, saturated: [] as Array<Measurement> }
  for (const [what, subject] of variants) {
    yield* warmUp(plan, subject)
    const measured = yield* alternate(plan, { reference: plain, gateway: subject }, ["offered", "saturated"])
    const offeredScenario = `With ${what}, ${plan.settings.perSecond} events/s; reference: without`
    const saturatedScenario = `With ${what}, saturated; reference: without`
    const offered = beside(offeredScenario, measured.offered)
    const saturated = beside(saturatedScenario, measured.saturated)
    rows.push(
      offered("acknowledge p50", "ms", (one) => one.acknowledge.p50),
      offered("acknowledge p99", "ms", (one) => one.acknowledge.p99),
      offered("sender to target p50", "ms", (one) => one.senderToTarget.p50),
      offered("sender to target p99", "ms", (one) => one.senderToTarget.p99),
      offered("CPU per event, gateway and PostgreSQL", "ms", relayAndPostgres),
      extraCpu(offeredScenario, measured.offered),
      saturated("events delivered", "events/s", (one) => one.perSecond),
      saturated("SQL statements per event", "", (one) => one.statements),
      saturated("CPU per event, gateway and PostgreSQL", "ms", relayAndPostgres),
      extraCpu(saturatedScenario, measured.saturated, what === "a transformation" ? atMost("value", 2) : undefined),
      saturated("resident memory, peak", "MB", (one) => one.peakMegabytes),
      ...faults(`Faults with ${what}`, [...measured.offered.gateway, ...measured.saturated.gateway])
    )
    for (const load of ["offered", "saturated"] as const) all[load].push(...measured[load].gateway)
  }
  return {
    rows,
    measured: {
      offered: { reference: [], gateway: all.offered },
      saturated: { reference: [], gateway: all.saturated }
    }
  } satisfies Outcome
}, Effect.scoped)
