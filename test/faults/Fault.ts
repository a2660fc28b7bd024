import { portsOf } from "../support/Peers.ts"
import { now } from "../support/Waiting.ts"
import type { Cluster, ProcessName, Topology } from "./Cluster.ts"
import type { Route } from "./Routes.ts"
import type { Target } from "./Target.ts"

/* What a fault is, and what several kinds of them need. The kinds have files of their own in `kinds`. */

export interface Stage {
  readonly cluster: Cluster
  readonly target: Target
  readonly routes: ReadonlyArray<Route>
}

/** The effect of a fault, and the consequences that are allowed. */
export interface Course {
  /** The time from which the gateway could deliver again: for example, when the process was killed, or the database was back. */
  readonly recoverableAt: number
  /** How long after that time a destination may have no delivery. */
  readonly limitMs: number
  /** The times at which a process lost its memory. Deliveries that were under way or not recorded at such a time may be repeated. */
  readonly crashes: ReadonlyArray<Crash>
  /** Destinations that cannot get deliveries until the fault is repaired. */
  readonly disturbed: ReadonlyArray<string>
  /** Whether connections were paused. Their delivered events cannot be retried while they are paused. */
  readonly paused?: boolean
  /** Whether the clock of a process differed from the others. Then recorded times cannot be compared. */
  readonly clocksJumped?: boolean
  /** Repairs the fault. Called after deliveries go on. */
  readonly mend?: () => Promise<Mended>
}

export interface Crash {
  readonly at: number
  /** The ports that it delivered from; null if unknown. */
  readonly ports: ReadonlySet<number> | null
}

export interface Mended {
  readonly thawed?: Thawed
}

/** A process that was frozen for longer than its lease, and then continued. */
export interface Thawed {
  readonly at: number
  /** The ports it has delivered from, before and since; null if unknown. */
  readonly ports: ReadonlySet<number> | null
}

/** One kind of disaster. */
export interface Fault {
  readonly name: string
  readonly topology: Topology
  /** Whether senders must not notice. */
  readonly ingressStaysUp: boolean
  /** Whether the fault cannot be undone, so that the next round needs new processes and a new database. */
  readonly usesUpWorld?: boolean
  readonly inflict: (stage: Stage) => Promise<Course>
}

/**
 * The time limit for the take-over after a crash: after 4 s of silence a runner loses its shards, and then the others handle the work that it left.
 */
export const takeOverMs = 5_000
/** Counted from the kill. On a busy machine, starting Node, checking the migrations and joining the cluster take seconds before the take-over. */
export const restartMs = 15_000
/** These destinations are not affected by the fault. */
export const unimpededMs = 1_500

export const holdMs = 3_000

export const quiet = { crashes: [], disturbed: [] } as const

/** The ports that these processes deliver from. */
export const deliveringPorts = ({ cluster, target }: Stage, names: ReadonlyArray<ProcessName>): Crash["ports"] => {
  let all: Crash["ports"] = new Set()
  for (const name of names) {
    const ports = portsOf(cluster.pid(name), target.port)
    all = all === null || ports === null ? null : all.union(ports)
  }
  return all
}

/** SIGKILL. The processes are frozen first, so that no delivery uses a port that was not read. */
export const crash = async (stage: Stage, ...names: ReadonlyArray<ProcessName>): Promise<Crash> => {
  const at = now()
  for (const name of names) stage.cluster.freeze(name)
  const ports = deliveringPorts(stage, names)
  await stage.cluster.kill(...names)
  return { at, ports }
}

export const startAgain = (cluster: Cluster, name: ProcessName) => async (): Promise<Mended> => {
  await cluster.start(name)
  return {}
}
