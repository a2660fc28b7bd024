import { monitorEventLoopDelay } from "node:perf_hooks"
import type { Cluster } from "./Cluster.ts"
import type { Course, Fault, Mended } from "./Fault.ts"
import { Findings } from "./Findings.ts"
import { checkGaps, longestGap } from "./Gaps.ts"
import { type History, historyOf } from "./History.ts"
import type { Load, Sent } from "./Load.ts"
import * as Operators from "./Operations.ts"
import * as Oracle from "./Oracle.ts"
import type { Route } from "./Routes.ts"
import type { Arrival, Target } from "./Target.ts"
import { NotReached, now, sleep, waitUntil } from "../support/Waiting.ts"

export interface World {
  readonly cluster: Cluster
  readonly target: Target
  readonly load: Load
  readonly routes: ReadonlyArray<Route>
  /** The work of operators during the round. Null: none. */
  readonly operations: Operators.Operations | null
  /** How many times longer than promised things may take: more than 1 where other programs share the machine. */
  readonly slack: number
}

/** What came of a round. */
export interface Outcome {
  readonly fault: Fault
  readonly findings: Findings
  /** Null if the round could not be completed. */
  readonly figures: Figures | null
  /** The operations, for an independent checker. Null if the round could not be completed. */
  readonly history: History | null
  /** Whether the next round may use the same processes and database. */
  readonly worldIsSound: boolean
}

export interface Figures {
  readonly acknowledged: number
  readonly refused: number
  readonly lost: number
  readonly deliveries: number
  /** The number of delivered events with an ordering key. */
  readonly ordered: number
  readonly retries: number
  /** Events that bulk operations have made. */
  readonly bulk: number
  /** Repeated deliveries that were under way when a process lost its memory, and other repeated deliveries. */
  readonly repeated: number
  readonly unexplained: number
  /** The longest that a destination was without a delivery, and the senders without a 2xx, since the gateway could go on (ms). */
  readonly deliveryGapMs: number
  readonly acknowledgeGapMs: number
  /** From the last request to the end of the last delivery and retry (ms). */
  readonly settledMs: number
  /** How long each part of the round took (ms). */
  readonly parts: Readonly<Record<string, number>>
  /** The longest time (ms) for which the harness itself was blocked. Its measured times may be wrong by so much. */
  readonly harnessStoodMs: number
}

/** The time limits until a round is under way, and until all waiting work has ended. */
const steadyMs = 30_000
const recoveryMs = 45_000
const settleMs = 90_000
/** If other programs share the machine, all limits are longer. Only a round that fails takes so long. */
const patience = ({ slack }: World, ms: number): number => ms * Math.min(4, Math.max(1, slack))
/** For so long, deliveries that a dead process had already written may still arrive. */
const stragglersMs = 300
/** How long the load goes on after the repair has worked. */
const aftermathMs = 750

export const hold = async (world: World, fault: Fault): Promise<Outcome> => {
  const outcome = await carryOut(world, fault, new Findings())
  const ends = world.cluster.takeEnds()
  for (const end of ends) outcome.findings.broke("a process does not end by itself", end)
  return { ...outcome, worldIsSound: outcome.worldIsSound && ends.length === 0 }
}

/** Runs the load, causes the fault, waits for the recovery and for the end of all work, and then compares all records. */
const carryOut = async (world: World, fault: Fault, findings: Findings): Promise<Outcome> => {
  const { cluster, load, operations, routes, target } = world
  const connections = routes.flatMap((route) => route.connections)
  const keys = connections.map(({ key }) => key)
  const beganAt = now()
  const parts: Record<string, number> = {}
  let partBeganAt = beganAt
  const delays = monitorEventLoopDelay()
  delays.enable()
  const partIsOver = (name: string): void => {
    parts[name] = Math.round(now() - partBeganAt)
    partBeganAt = now()
  }
  try {
    target.take()
    load.start()
    operations?.start()
    await everyKeyArrives(target, keys, beganAt, patience(world, steadyMs))
    await sleep(aftermathMs)
    partIsOver("load")

    const course = await fault.inflict(world)
    partIsOver("fault")
    const undisturbed = connections.filter(({ key }) => !course.disturbed.includes(key))
    await everyKeyArrives(
      target,
      undisturbed.map(({ key }) => key),
      course.recoverableAt + stragglersMs,
      patience(world, recoveryMs)
    )
    partIsOver("recovery")
    const mended: Mended = (await course.mend?.()) ?? {}
    const mendedAt = now()
    await everyKeyArrives(target, keys, mendedAt, patience(world, recoveryMs))
    partIsOver("mend")
    await sleep(aftermathMs)

    const loadEndedAt = now()
    await load.stop()
    await operations?.stop()
    const settled = await settle(world, findings)
    await waitUntil("the target is idle", () => target.isIdle(400), {
      patienceMs: patience(world, recoveryMs)
    })

    const settledMs = now() - loadEndedAt
    partIsOver("settle")

    const arrivals = target.take()
    const records = await Oracle.readRecords(cluster.postgres, beganAt - 5)
    Oracle.checkSenders(findings, load.sent, records)
    Oracle.checkRouting(findings, routes, records)
    Oracle.checkEvents(findings, routes, records, { clocksAgree: course.clocksJumped !== true })
    Oracle.checkDeliveries(findings, routes, records, arrivals)
    if (course.clocksJumped !== true) Oracle.checkPace(findings, routes, records)
    const walked = course.clocksJumped === true ? arrivals : Oracle.readInTime(arrivals, records)
    const ordered = Oracle.checkOrder(findings, routes, records, walked, load.sent)
    await Oracle.checkCounts(findings, cluster.postgres)
    const bulk =
      operations === null
        ? 0
        : await Operators.check(findings, cluster.postgres, operations, { since: beganAt - 5, paused: course.paused })
    const repetition = checkDuplicates(
      findings,
      course,
      mended,
      Oracle.duplicatesOf(arrivals),
      patience(world, unrecordedMs)
    )
    if (fault.ingressStaysUp) checkIngress(findings, load.sent)
    const deliveryGapMs = checkGaps(findings, course, undisturbed, arrivals, loadEndedAt, world.slack)
    partIsOver("books")
    return {
      fault,
      findings,
      worldIsSound: settled && fault.usesUpWorld !== true,
      history: historyOf({
        routes,
        records,
        arrivals,
        walked,
        sent: load.sent,
        beganAt,
        mayRepeat: course.crashes.length > 0 || mended.thawed !== undefined
      }),
      figures: {
        acknowledged: load.acknowledged,
        refused: load.sent.length - load.acknowledged,
        lost: findings.count("an acknowledged request is stored"),
        deliveries: arrivals.length,
        ordered,
        retries: arrivals.filter(({ attempt }) => attempt > 1).length,
        bulk,
        ...repetition,
        deliveryGapMs,
        acknowledgeGapMs: longestGap(
          load.sent.flatMap(({ answeredAt, requestId }) => (requestId === null ? [] : [answeredAt ?? 0])),
          course.recoverableAt,
          loadEndedAt
        ),
        settledMs,
        parts,
        harnessStoodMs: Math.round(delays.max / 1_000_000)
      }
    }
  } catch (error) {
    const what = error instanceof NotReached ? "deliveries go on in time" : "the harness could do its part"
    findings.broke(what, error instanceof Error ? (error.stack ?? error.message) : String(error))
    await load.stop().catch(() => {})
    await operations?.stop()
    return { fault, findings, figures: null, history: null, worldIsSound: false }
  } finally {
    delays.disable()
  }
}

/** Completes when every one of these destinations has had a delivery since. */
export const everyKeyArrives = async (
  target: Target,
  keys: ReadonlyArray<string>,
  since: number,
  patienceMs: number
): Promise<void> => {
  const missing = (): ReadonlyArray<string> => {
    const seen = new Set<string>()
    for (let index = target.arrivals.length - 1; index >= 0; index--) {
      const arrival = target.arrivals[index]!
      if (arrival.at < since) break
      seen.add(arrival.key)
    }
    return keys.filter((key) => !seen.has(key))
  }
  try {
    await waitUntil("every destination has a delivery", () => missing().length === 0, { patienceMs })
  } catch (error) {
    throw new NotReached(`no delivery for ${missing().join(", ")} since ${Oracle.time(since)}`, { cause: error })
  }
}

const settle = async (world: World, findings: Findings): Promise<boolean> => {
  const { cluster } = world
  try {
    await waitUntil(
      "everything has come to an end",
      async () => (await Operators.areOver(cluster.postgres)) && (await Oracle.isSettled(cluster.postgres)),
      {
        patienceMs: patience(world, settleMs),
        everyMs: 100
      }
    )
    return true
  } catch {
    findings.broke("what is accepted comes to an end", `waiting: ${await Oracle.describeWaiting(cluster.postgres)}`)
    return false
  }
}

/** The longest time for which an attempt can be over but not recorded yet, if no other programs share the machine. */
const unrecordedMs = 2_000

/**
 * A repeated delivery is allowed if the first one was under way, or not recorded yet, at the time of a crash. Otherwise two processes delivered it at
 * the same time, or one process forgot what it had done. A process that was frozen and continues may repeat only the delivery that it was about to
 * write, because other processes have taken over the rest.
 */
export const checkDuplicates = (
  findings: Findings,
  course: Course,
  { thawed }: Mended,
  duplicates: ReadonlyArray<Oracle.Duplicate>,
  maxUnrecordedMs = unrecordedMs
): Pick<Figures, "repeated" | "unexplained"> => {
  let repeated = 0
  /** The process was frozen at one point of its program, so at most one delivery was between the check of the lease and the write to the socket. */
  let finished = false
  const woken = ({ at, port }: Arrival): boolean =>
    thawed !== undefined && at > thawed.at && thawed.ports?.has(port) !== false
  const about = (arrival: Arrival): string =>
    `${Oracle.time(arrival.at)} (answered ${arrival.answered}${woken(arrival) ? ", by the one that was frozen" : ""})`
  const crashed = course.crashes.map(({ at }) => `; memory was lost at ${Oracle.time(at)}`).join("")
  for (const { copy, first } of duplicates) {
    const who = `${first.eventId} attempt ${first.attempt} at ${first.key}: ${about(first)}, again ${about(copy)}`
    const explained = course.crashes.some(
      ({ at, ports }) =>
        // A busy target may read late what the process had written. So the sender's port is better evidence than the time of arrival.
        (first.at <= at + stragglersMs || ports?.has(first.port) === true) &&
        first.endedAt >= at - maxUnrecordedMs &&
        copy.at > at
    )
    if (woken(copy) && !woken(first) && !finished && copy.at <= thawed!.at + stragglersMs) {
      finished = true
      repeated++
    } else if (woken(first) || woken(copy)) {
      const went = thawed === undefined ? "" : `; it went on at ${Oracle.time(thawed.at)}`
      findings.broke("who lost a shard delivers nothing from it", who + went)
    } else if (explained) repeated++
    else findings.broke("nothing is delivered twice without a crash", who + crashed)
  }
  return { repeated, unexplained: duplicates.length - repeated }
}

const checkIngress = (findings: Findings, sent: ReadonlyArray<Sent>): void => {
  for (const one of sent) {
    if (one.requestId === null) {
      findings.broke(
        "ingress does not depend on runners",
        `request ${one.n} at ${Oracle.time(one.sentAt)}: ${one.status} ${one.failure}`
      )
    }
  }
}
