/** The memory of all processes of the product: just started, idle, at 1,000 events/s, saturated, and a minute after. */
import * as Effect from "effect/Effect"
import { atMost, faults, gatewayWith, type Outcome, type Plan, single, warmUp } from "./Comparison.ts"
import { type Measurement, offer, saturate } from "./Measurement.ts"
import { type ProcessMemory, processMemory } from "./ProcessMemory.ts"
import type { Requirement, Row } from "./Report.ts"
import { transform } from "./Rules.ts"

/** Enough that buffers, heaps and sessions have reached their full size. */
const saturations = 5
/** Seconds without work after which a process has given back what its start took. */
const settleSeconds = 65
/** Seconds after the last event: memory with a time limit has been freed by then. */
const restSeconds = 65
/** MB of all processes. */
const bounds = { idle: 180, plain: 500, transformed: 650 } as const

const rowsOf = (scenario: string, found: ProcessMemory, required?: Requirement): ReadonlyArray<Row> => [
  single(scenario, "all processes", "MB", found.all / 1e6, required),
  single(scenario, "gateway", "MB", found.gateway / 1e6),
  single(scenario, `sandbox, ${found.sandboxes} processes`, "MB", found.sandbox / 1e6),
  single(scenario, `PostgreSQL, ${found.backends} processes`, "MB", found.sessions / 1e6),
  single(scenario, "PostgreSQL, shared", "MB", found.shared / 1e6)
]

/**
 * A new gateway for events with a transformation, and another for events without. PostgreSQL keeps its shared memory from the
 * first to the second.
 */
export const memory = Effect.fnUntraced(function* (plan: Plan) {
  const { bench, progress, settings } = plan
  const rows: Array<Row> = []
  const offered: Array<Measurement> = []
  const saturated: Array<Measurement> = []

  const measure = Effect.fnUntraced(function* (
    what: string,
    name: "plain" | "transformed",
    rules: ReadonlyArray<object>
  ) {
    const subject = yield* gatewayWith(plan, `${name}_memory`, 1, rules)
    const look = Effect.fnUntraced(function* (when: string, required?: Requirement) {
      const found = processMemory([subject.pid], bench.postgres.pid)
      rows.push(...rowsOf(`${what}, ${when}`, found, required))
      const figures = [found.all, found.gateway, found.sandbox, found.sessions, found.shared]
      yield* progress(`${what}, ${when}: ${figures.map((bytes) => (bytes / 1e6).toFixed(0)).join(" ")} MB`)
    })
    yield* look("just started")
    // A quick run waits for nothing.
    if (settings.rounds > 1) {
      yield* Effect.sleep(settleSeconds * 1_000)
      // The second gateway finds PostgreSQL with the buffers that the first one filled.
      yield* look("idle", rules.length === 0 ? atMost("value", bounds.idle) : undefined)
    }
    yield* warmUp(plan, subject)
    const phase = { leadIn: settings.leadIn, seconds: settings.offered, perSecond: settings.perSecond }
    if (rules.length === 0) {
      offered.push(yield* offer(bench, subject, phase))
      yield* look(`at ${settings.perSecond} events/s`)
    }
    saturated.push(
      yield* saturate(bench, subject, { leadIn: settings.leadIn, seconds: settings.saturated * saturations })
    )
    yield* look("saturated", atMost("value", bounds[name]))
    if (settings.rounds > 1) yield* Effect.sleep(restSeconds * 1_000)
    yield* look("a minute after")
  }, Effect.scoped)

  yield* measure("Memory with plain events", "plain", [])
  yield* measure("Memory with a transformation", "transformed", [transform])
  rows.push(...faults("Faults of the gateway in these runs", [...offered, ...saturated]))
  return {
    rows,
    measured: { offered: { reference: [], gateway: offered }, saturated: { reference: [], gateway: saturated } }
  } satisfies Outcome
}, Effect.scoped)
