/** Slow targets, and many destinations at once: how many deliveries one process keeps under way. */
import * as Effect from "effect/Effect"
import {
  atMost,
  beside,
  faults,
  type Outcome,
  type Plan,
  relayAndPostgres,
  single,
  startGateway,
  warmUp
} from "./Comparison.ts"
import { type Measurement, offer, type Subject } from "./Measurement.ts"
import type { Row } from "./Report.ts"

/**
 * The requests per second to a source with one connection, the delay of the target's answer (ms), and the highest allowed p99.
 */
const slow = [
  { after: 200, perSecond: 1_000, p99: 400 },
  { after: 1_000, perSecond: 500, p99: 1_500 }
] as const

const many = { destinations: 1_000, after: 200, perSecond: 2 } as const

/** A source with this number of destinations, whose targets answer after this delay. */
const answeredAfter = Effect.fnUntraced(function* (plan: Plan, name: string, after: number, destinations: number) {
  const gateway = yield* startGateway(plan, name)
  const targetPaths = Array.from({ length: destinations }, (_, index) => `/after-${after}/${name}-${index}`)
  const url = yield* gateway.route({
    name,
    destinations: targetPaths.map((targetPath) => ({ url: `${plan.bench.targetOrigin}${targetPath}` })),
    rules: []
  })
  return { pid: gateway.pid, database: name, url, targetPaths } satisfies Subject
})

const figures = (row: ReturnType<typeof beside>, p99?: number): ReadonlyArray<Row> => [
  row("events delivered", "events/s", (one) => one.perSecond),
  row("sender to answer p50", "ms", (one) => one.senderToTarget.p50),
  row(
    "sender to answer p99",
    "ms",
    (one) => one.senderToTarget.p99,
    p99 === undefined ? undefined : atMost("value", p99)
  ),
  row("CPU per event, gateway and PostgreSQL", "ms", relayAndPostgres),
  row("SQL statements per event", "", (one) => one.statements),
  row("resident memory, peak", "MB", (one) => one.peakMegabytes),
  row("cores taken by other processes", "", (one) => one.otherCores)
]

/**
 * Each slow target compared with one that answers at once, at the same rate; and a thousand destinations compared with one that
 * gets the same load.
 */
export const slowTargets = Effect.fnUntraced(function* (given: Plan) {
  const rounds = Math.min(3, given.settings.rounds)
  const { bench, progress, settings } = given
  const part = settings.slowTargets
  const rows: Array<Row> = []
  const all = { reference: [] as Array<Measurement>, gateway: [] as Array<Measurement> }

  const compare = Effect.fnUntraced(function* (
    scenario: string,
    subjects: { readonly reference: Subject; readonly gateway: Subject },
    rates: { readonly reference: number; readonly gateway: number },
    p99?: number
  ) {
    const sides = { reference: [] as Array<Measurement>, gateway: [] as Array<Measurement> }
    const load = (side: "reference" | "gateway", leadIn: number) =>
      // Long enough for at least two requests.
      offer(bench, subjects[side], { leadIn, seconds: Math.max(1, settings.offered), perSecond: rates[side] })
    yield* warmUp(given, subjects.reference)
    const cold = yield* load("gateway", 0)
    yield* progress(`${scenario}: from cold, p99 ${cold.senderToTarget.p99.toFixed(0)} ms`)
    for (let round = 0; round < rounds; round++) {
      for (const side of ["reference", "gateway"] as const) {
        const found = yield* load(side, settings.leadIn)
        sides[side].push(found)
        yield* progress(
          `${subjects[side].database}: ${found.perSecond.toFixed(0)}/s, to the answer p50 ${found.senderToTarget.p50.toFixed(0)} ms ` +
            `p99 ${found.senderToTarget.p99.toFixed(0)} ms, ${found.missing} missing`
        )
      }
    }
    rows.push(
      ...figures(beside(scenario, sides), p99),
      single(scenario, "from cold: sender to answer p99", "ms", cold.senderToTarget.p99),
      ...faults(`Faults: ${scenario}`, [cold, ...sides.gateway])
    )
    all.reference.push(...sides.reference)
    all.gateway.push(...sides.gateway)
  }, Effect.scoped)

  for (const { after, p99, ...full } of slow) {
    const perSecond = full.perSecond * part
    yield* Effect.scoped(
      Effect.gen(function* () {
        const reference = yield* answeredAfter(given, `at_once_${after}`, 0, 1)
        const gateway = yield* answeredAfter(given, `after_${after}`, after, 1)
        const scenario = `A target that answers after ${after} ms, ${perSecond} events/s; reference: one that answers at once`
        yield* compare(scenario, { reference, gateway }, { reference: perSecond, gateway: perSecond }, p99)
      })
    )
  }
  yield* Effect.scoped(
    Effect.gen(function* () {
      const destinations = many.destinations * part
      const total = many.perSecond * destinations
      const reference = yield* answeredAfter(given, "one_destination", many.after, 1)
      const gateway = yield* answeredAfter(given, "many_destinations", many.after, destinations)
      yield* compare(
        `${destinations} destinations at once, ${many.after} ms each, ${total} events/s; reference: one destination`,
        { reference, gateway },
        { reference: total, gateway: many.perSecond }
      )
    })
  )
  return { rows, measured: { offered: all, saturated: { reference: [], gateway: [] } } } satisfies Outcome
}, Effect.scoped)
