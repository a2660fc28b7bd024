/** Destinations in brokers, databases and a mail server, compared with plain HTTP: with single deliveries and with batches. */
import * as Effect from "effect/Effect"
import { type StartedParty, startParties } from "./BrokerParties.ts"
import { atLeast, type Outcome, type Plan, single, startProcess } from "./Comparison.ts"
import { type Delivering, deliveryRows, observer, summaryOf } from "./Deliveries.ts"
import type { Row } from "./Report.ts"

interface Sizes {
  /** Events of a closed loop. */
  readonly events: number
  readonly inFlight: number
  /**
   * The rate (events per second) and the length (seconds) of the open loop. Latency is measured at this low rate, at which no destination is at its
   * limit.
   */
  readonly perSecond: number
  readonly seconds: number
  readonly rounds: number
  readonly patienceMillis: number
}

const full: Sizes = {
  events: 1_500,
  inFlight: 32,
  perSecond: 100,
  seconds: 4,
  rounds: 3,
  patienceMillis: 60_000
}
const quick: Sizes = { ...full, events: 100, seconds: 1, rounds: 1 }

/** About how long (s) the events of one round may take at a slow receiver. */
const slowSeconds = 10

/** A destination, single or in batches. The first one is the reference. */
export interface Way {
  readonly name: string
  readonly type: string
  readonly config: object
}

export const waysOf = (http: object, parties: ReadonlyArray<StartedParty>): ReadonlyArray<Way> => [
  { name: "HTTP", type: "HTTP", config: http },
  ...parties.flatMap(({ batches, config, standIn, type }): ReadonlyArray<Way> => {
    const name = standIn === null ? type : `${type} (${standIn})`
    const one = { name, type, config }
    return batches ? [one, { ...one, name: `${name}, in batches`, config: { ...config, batch: {} } }] : [one]
  })
]

/** The measurements of a destination, saturated and at a low rate in the same rounds; or the reason why there are none. */
export interface Found {
  readonly saturated: Array<Delivering>
  readonly offered: Array<Delivering>
  fault: string | null
}

/** Rate and CPU are those of saturation, the latency is that at a low rate. */
export const brokerRows = (
  perSecond: number,
  found: ReadonlyMap<string, Found>,
  missing: ReadonlyMap<string, string>
): ReadonlyArray<Row> => {
  const scenario = `Brokers; reference: HTTP; rate and CPU saturated, latency at ${perSecond} events/s`
  const roundsOf = ({ offered, saturated }: Found): ReadonlyArray<Delivering> =>
    offered.map(({ p50, p99 }, round) => ({ ...saturated[round]!, p50, p99 }))
  const [reference] = found.values()
  const plain = reference === undefined ? [] : roundsOf(reference)
  return [
    ...[...found].flatMap(([name, one]) =>
      one.fault === null
        ? deliveryRows(scenario, name, roundsOf(one), plain)
        : [single(scenario, `${name}: ${one.fault}`, "", Number.NaN, atLeast("value", 0))]
    ),
    ...[...missing].map(([type, why]) => single(scenario, `${type}: skipped, because ${why}`, "", Number.NaN))
  ]
}

const destinations = Effect.fnUntraced(function* (plan: Plan, sizes: Sizes, parties: ReadonlyArray<StartedParty>) {
  const { bench, progress } = plan
  const databaseUrl = yield* bench.postgres.database("brokers")
  const gateway = yield* startProcess(plan, "brokers", databaseUrl, "brokers")
  const { delivering } = yield* observer(gateway.pid, databaseUrl, bench.postgres)
  const ways = waysOf({ url: `${bench.targetOrigin}/brokers` }, parties)
  const found = new Map(ways.map(({ name }): [string, Found] => [name, { saturated: [], offered: [], fault: null }]))
  const urls = new Map<string, string>()
  for (const [at, { config, name, type }] of ways.entries()) {
    urls.set(name, yield* gateway.route({ name: `way-${at}`, destinations: [{ type, config }], rules: [] }))
  }
  const loadOf = (name: string) => ({ urls: [urls.get(name)!], run: bench.nextRun() })

  const saturate = (name: string, count: number) =>
    delivering(
      bench.generator.call("saturate", { ...loadOf(name), inFlight: sizes.inFlight, seconds: 60, count }),
      count,
      sizes.patienceMillis
    )
  const offer = (name: string) =>
    delivering(
      bench.generator.call("offer", {
        ...loadOf(name),
        perSecond: sizes.perSecond,
        seconds: sizes.seconds,
        connections: sizes.inFlight
      }),
      sizes.perSecond * sizes.seconds,
      sizes.patienceMillis
    )

  /** How many events are sent. A receiver that is slower than the others gets fewer, because its events would take too long. */
  const counts = new Map<string, number>()
  for (const { name } of ways) {
    const least = sizes.events / 5
    const first = yield* saturate(name, least)
    found.get(name)!.fault = first.fault
    counts.set(name, Math.round(Math.min(sizes.events, Math.max(least, first.found.perSecond * slowSeconds))))
  }
  for (let round = 0; round < Math.min(sizes.rounds, plan.settings.rounds); round++) {
    // A drift of the machine favours nobody.
    for (const { name } of round % 2 === 0 ? ways : ways.toReversed()) {
      const one = found.get(name)!
      if (one.fault !== null) continue
      const saturated = yield* saturate(name, counts.get(name)!)
      const offered = saturated.fault === null ? yield* offer(name) : saturated
      one.fault = saturated.fault ?? offered.fault
      if (one.fault === null) {
        one.saturated.push(saturated.found)
        one.offered.push(offered.found)
      }
      const { p50, p99 } = offered.found
      yield* progress(one.fault === null ? summaryOf(name, { ...saturated.found, p50, p99 }) : `${name}: ${one.fault}`)
    }
  }
  return found
}, Effect.scoped)

export const brokers = Effect.fnUntraced(function* (plan: Plan) {
  const sizes = plan.settings.rounds === 1 ? quick : full
  const { missing, started } = yield* startParties(plan.home)
  for (const [type, why] of missing) yield* plan.progress(`${type} is skipped, because ${why}`)
  const found = yield* destinations(plan, sizes, started)
  const none = { reference: [], gateway: [] }
  return {
    rows: brokerRows(sizes.perSecond, found, missing),
    measured: { offered: none, saturated: none }
  } satisfies Outcome
}, Effect.scoped)
