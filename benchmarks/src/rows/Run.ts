/** Runs rows. Each row has its own gateways, of the earlier version and of this one, which are loaded in turn. */
import * as Effect from "effect/Effect"
import { type Outcome, type Plan, startProcess } from "../Comparison.ts"
import type { Gateway } from "../Gateway.ts"
import { drain, type Measurement, offer, saturate, type Subject } from "../Measurement.ts"
import type { Load, Row } from "./Row.ts"
import { linesOf, loadName, type Phases, type Version } from "./Table.ts"

/** A gateway with a row's settings: the subject for each phase, and the other sources. */
interface Arranged {
  readonly subject: Effect.Effect<Subject, Effect.Error<ReturnType<Gateway["route"]>>>
  readonly pause: Gateway["pause"]
  readonly beside: ReadonlyArray<{ readonly url: string; readonly perSecond: number }>
}

/** Long enough for all processes to know each other, and for the shards to be distributed. */
const settling = "4 seconds"
/** Requests in flight at saturation. With customers, at most one for each customer. */
const inFlight = 100

const upTo = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, index) => index)

/** Starts a row's gateway of one version. */
const arrange = Effect.fnUntraced(function* (plan: Plan, row: Row, name: string) {
  const { answersAfter = 0, connection = {}, destinations = 1, rules = [], source = {}, sources = 1 } = row
  const databaseUrl = yield* plan.bench.postgres.database(name)
  const [first, ...others] = yield* Effect.forEach(upTo(row.processes ?? 1), (index) =>
    startProcess(plan, name, databaseUrl, index === 0 ? name : `${name}_${index}`)
  )
  if (first === undefined) return yield* Effect.die("no process")
  if (others.length > 0) yield* Effect.sleep(settling)
  const targetPaths = upTo(destinations).map((index) => `/after-${answersAfter}/${name}-${index}`)
  const targets = targetPaths.map((targetPath) => ({ url: `${plan.bench.targetOrigin}${targetPath}` }))
  let routes = 0
  const route = (settings: {
    readonly rules: ReadonlyArray<object>
    readonly source?: object
    readonly connection?: object
  }) => first.route({ name: `${name}-${++routes}`, destinations: targets, ...settings })
  const subject = Effect.gen(function* () {
    const made = yield* Effect.forEach(upTo(sources), () => route({ rules, source, connection }))
    // Each source is used through each process, so that no source belongs to one process.
    const [url = "", ...otherUrls] = made.flatMap((url) =>
      [first, ...others].map(({ origin }) => `${origin}${new URL(url).pathname}`)
    )
    return {
      pid: first.pid,
      others: others.map(({ pid }) => pid),
      database: name,
      url,
      otherUrls,
      targetPaths
    } satisfies Subject
  })
  const beside = yield* Effect.forEach(row.beside ?? [], ({ perSecond, rules }) =>
    Effect.map(route({ rules }), (url) => ({ url, perSecond }))
  )
  return {
    subject: row.isFresh === true ? subject : Effect.succeed(yield* subject),
    pause: first.pause,
    beside
  } satisfies Arranged
})

const inTurn = ({ customers }: Row) =>
  customers === undefined ? {} : { customers, inFlight: Math.min(customers, inFlight) }

/**
 * The warm-up lasts longer with more processes, because they share the cores. With a slow target there is no saturation, because
 * its backlog would last too long.
 */
const warm = (plan: Plan, row: Row, { subject }: Arranged) =>
  Effect.flatMap(subject, (subject) => {
    const phase = { leadIn: 0, seconds: plan.settings.warmUp * (row.processes ?? 1), ...inTurn(row) }
    const [load] = row.loads
    return row.answersAfter === undefined || typeof load !== "number"
      ? saturate(plan.bench, subject, phase)
      : offer(plan.bench, subject, { ...phase, perSecond: load })
  })

const phaseOf = Effect.fnUntraced(function* (plan: Plan, row: Row, { beside, pause, subject }: Arranged, load: Load) {
  const { bench, settings } = plan
  const phase = { leadIn: row.isFresh === true ? 0 : settings.leadIn, seconds: settings.offered, ...inTurn(row) }
  const on = yield* subject
  const others = beside.map(({ perSecond, url }) =>
    bench.generator.call("offer", {
      urls: [url],
      run: bench.nextRun(),
      perSecond,
      seconds: phase.leadIn + phase.seconds,
      connections: 10
    })
  )
  const measured =
    load === "saturated"
      ? saturate(bench, on, phase)
      : load === "waiting"
        ? drain(bench, on, { count: row.waiting ?? 0, ...inTurn(row) }, { pause: pause(true), resume: pause(false) })
        : offer(bench, on, { ...phase, perSecond: load })
  const [found] = yield* Effect.all([measured, ...others], { concurrency: "unbounded" })
  return found
})

/** Half as long as the phases of other scenarios, because there are many rows. */
const sizesOf = ({ settings, ...plan }: Plan): Plan => ({
  ...plan,
  settings: { ...settings, leadIn: settings.leadIn / 2, offered: settings.offered / 2 }
})

/** The outcome of one row. If it is not supported or fails, the table says so, and the next row is run. */
export const runRow = (row: Row, index: number) =>
  Effect.fnUntraced(function* (given: Plan) {
    const plan = sizesOf(given)
    const { progress, settings } = plan
    const versions: ReadonlyArray<Version> = plan.beforeEntry === plan.gatewayEntry ? ["now"] : ["before", "now"]
    const found: Record<Version, Phases> = { before: new Map(), now: new Map() }
    const failed = new Map<Version, { readonly isUnknown: boolean; readonly message: string }>()

    /** Runs this, unless the version has failed before. A failure is kept. */
    const trying = <A, E extends { readonly _tag: string; readonly message: string }, R>(
      version: Version,
      effect: Effect.Effect<A, E, R>
    ) =>
      failed.has(version)
        ? Effect.succeed(null)
        : Effect.catch(effect, ({ _tag, message }) => {
            failed.set(version, { isUnknown: _tag === "UnknownSetting", message })
            return Effect.as(progress(`${row.name}, ${version}: ${message}`), null)
          })

    const session = Effect.fnUntraced(function* (names: ReadonlyArray<Version>, rounds: number, session: string) {
      const arranged = new Map<Version, Arranged>()
      for (const version of names) {
        const entry = version === "before" ? plan.beforeEntry : plan.gatewayEntry
        const made = yield* trying(
          version,
          Effect.tap(arrange({ ...plan, gatewayEntry: entry }, row, `row_${index}_${version}${session}`), (made) =>
            warm(plan, row, made)
          )
        )
        if (made !== null) arranged.set(version, made)
      }
      for (let round = 0; round < rounds; round++) {
        for (const load of row.loads) {
          for (const version of round % 2 === 0 ? names : names.toReversed()) {
            const on = arranged.get(version)
            if (on === undefined) continue
            const one = yield* trying(version, phaseOf(plan, row, on, load))
            if (one === null) continue
            found[version].set(load, [...(found[version].get(load) ?? []), one])
            yield* progress(
              `${row.name}, ${loadName(load)}, ${version}: ${one.perSecond.toFixed(0)}/s, to target p50 ` +
                `${one.senderToTarget.p50.toFixed(1)} ms p99 ${one.senderToTarget.p99.toFixed(1)} ms, ` +
                `other processes ${one.otherCores.toFixed(2)} cores`
            )
          }
        }
      }
    }, Effect.scoped)

    if (row.beside === undefined) yield* session(versions, settings.rounds, "")
    else {
      // Work that hostile code has left behind would disturb the other version, so only one version runs at a time.
      for (let round = 0; round < settings.rounds; round++) {
        for (const version of versions) yield* session([version], 1, `_${round}`)
      }
    }
    const measured = (version: Version, isSaturated: boolean): ReadonlyArray<Measurement> =>
      [...found[version]].flatMap(([load, phases]) => ((typeof load !== "number") === isSaturated ? phases : []))
    const sides = (isSaturated: boolean) => ({
      reference: measured("before", isSaturated),
      gateway: measured("now", isSaturated)
    })
    return {
      rows: [],
      lines: linesOf(row, versions, found, failed),
      measured: { offered: sides(false), saturated: sides(true) }
    } satisfies Outcome
  })
