/** Several processes of one gateway on one PostgreSQL: the cost of an event that one process hands over to another. */
import * as Effect from "effect/Effect"
import {
  atMost,
  beside,
  faults,
  type Outcome,
  type Plan,
  relayAndPostgres,
  startProcess,
  warmUp
} from "./Comparison.ts"
import { type Measurement, offer, saturate, type Subject } from "./Measurement.ts"
import type { Row } from "./Report.ts"

const sources = 20
const senders = 64
/** Low enough for two cores that run all of it. */
const perSecond = 1_000
/** Long enough for all processes to know each other, and for the shards to be distributed. */
const settling = "4 seconds"

/**
 * A gateway with this number of processes, and sources with one destination each. Either one process receives all requests, or
 * all receive the same share.
 */
const gatewayOf = Effect.fnUntraced(function* (plan: Plan, name: string, count: number) {
  const databaseUrl = yield* plan.bench.postgres.database(name)
  const nameOf = (index: number): string => (index === 0 ? name : `${name}_${index}`)
  const first = yield* startProcess(plan, name, databaseUrl, name)
  const others = yield* Effect.forEach(Array.from({ length: count - 1 }), (_, index) =>
    startProcess(plan, name, databaseUrl, nameOf(index + 1))
  )
  yield* Effect.sleep(settling)
  const targetPath = `/${name}`
  const urls = yield* Effect.forEach(Array.from({ length: sources }), (_, index) =>
    first.route({
      name: `${name}-${index}`,
      destinations: [{ url: `${plan.bench.targetOrigin}${targetPath}` }],
      rules: []
    })
  )
  const processes = [first, ...others]
  const taking = (number: number): Subject => {
    // Each source is used through each process, so that no source belongs to one process.
    const [url = "", ...otherUrls] = urls.flatMap((url) =>
      processes.slice(0, number).map(({ origin }) => `${origin}${new URL(url).pathname}`)
    )
    return {
      pid: first.pid,
      others: others.map(({ pid }) => pid),
      database: name,
      url,
      otherUrls,
      targetPaths: [targetPath]
    }
  }
  /** Messages that its processes have sent to each other so far. */
  const messages = Effect.map(
    Effect.forEach(processes, ({ counted }) => counted("tidegate_cluster_messages_total", `direction="sent"`)),
    (each) => each.reduce((all, sent) => all + sent, 0)
  )
  return { messages, one: taking(1), all: taking(count) }
})

type Several = Effect.Success<ReturnType<typeof gatewayOf>>
type Loads = Record<"offered" | "saturated", Array<Measurement>>

const loads = (): Loads => ({ offered: [], saturated: [] })

const figures = (row: ReturnType<typeof beside>, isBounded: boolean): ReadonlyArray<Row> => [
  row("CPU per event, gateway and PostgreSQL", "ms", relayAndPostgres, isBounded ? atMost("ratio", 1.2) : undefined),
  row("CPU per event, gateway", "ms", (one) => one.cpu.subject),
  row("CPU per event, PostgreSQL", "ms", (one) => one.cpu.postgres),
  row("SQL statements per event", "", (one) => one.statements),
  row("events delivered", "events/s", (one) => one.perSecond),
  row("sender to target p50", "ms", (one) => one.senderToTarget.p50),
  row("sender to target p99", "ms", (one) => one.senderToTarget.p99),
  row("resident memory of all processes", "MB", (one) => one.residentMegabytes),
  row("cores taken by other processes", "", (one) => one.otherCores)
]

/** This number of processes compared with one: with one process that receives all requests, and with all of them. */
export const processes = Effect.fnUntraced(function* (plan: Plan) {
  const { bench, progress, settings } = plan
  const rounds = Math.min(3, settings.rounds)
  const rows: Array<Row> = []
  const sides = { reference: loads(), gateway: loads() }
  const load = Effect.fnUntraced(function* (to: Loads, name: string, gateway: Several, subject: Subject) {
    const { leadIn, offered, saturated } = settings
    const before = yield* gateway.messages
    const found = {
      offered: yield* offer(bench, subject, { leadIn, seconds: offered, perSecond }),
      saturated: yield* saturate(bench, subject, { leadIn, seconds: saturated, inFlight: senders })
    }
    const messages = (yield* gateway.messages) - before
    const events = found.offered.delivered + found.saturated.delivered
    yield* progress(`${name}: ${((messages * 1_000) / events).toFixed(0)} messages between processes for 1,000 events`)
    for (const kind of ["offered", "saturated"] as const) {
      const { cpu, otherCores, perSecond, statements } = found[kind]
      to[kind].push(found[kind])
      yield* progress(
        `${name}, ${kind}: ${perSecond.toFixed(0)}/s, gateway ${cpu.subject.toFixed(3)} ms and PostgreSQL ` +
          `${cpu.postgres.toFixed(3)} ms an event, ${statements.toFixed(3)} statements, other processes ${otherCores.toFixed(2)} cores`
      )
    }
  })

  for (const count of settings.processes) {
    const one = loads()
    const oneIngress = loads()
    const allIngress = loads()
    yield* Effect.scoped(
      Effect.gen(function* () {
        const reference = yield* gatewayOf(plan, `one_beside_${count}`, 1)
        const several = yield* gatewayOf(plan, `of_${count}`, count)
        yield* warmUp(plan, reference.all)
        // Each process must have handled about this many events before, because code that has seldom run costs several times as much.
        yield* warmUp({ ...plan, settings: { ...settings, warmUp: settings.warmUp * 3 * count } }, several.all)
        for (let round = 0; round < rounds; round++) {
          yield* load(one, "1 process", reference, reference.one)
          yield* load(oneIngress, `${count} processes, one ingress`, several, several.one)
          yield* load(allIngress, `${count} processes, every ingress`, several, several.all)
        }
      })
    )
    for (const [used, found] of [
      ["one ingress", oneIngress],
      ["every ingress", allIngress]
    ] as const) {
      for (const [kind, at] of [
        ["saturated", `${senders} senders`],
        ["offered", `${perSecond} events/s`]
      ] as const) {
        const scenario = `${count} processes, ${used}, ${sources} destinations, ${at}; reference: one process`
        rows.push(...figures(beside(scenario, { reference: one[kind], gateway: found[kind] }), count <= 4))
      }
      rows.push(...faults(`Faults of ${count} processes, ${used}`, [...found.offered, ...found.saturated]))
    }
    for (const kind of ["offered", "saturated"] as const) {
      sides.reference[kind].push(...one[kind])
      sides.gateway[kind].push(...oneIngress[kind], ...allIngress[kind])
    }
  }
  return {
    rows,
    measured: {
      offered: { reference: sides.reference.offered, gateway: sides.gateway.offered },
      saturated: { reference: sides.reference.saturated, gateway: sides.gateway.saturated }
    }
  } satisfies Outcome
})
