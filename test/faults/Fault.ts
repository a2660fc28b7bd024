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

/** What a fault did, and what may follow from it. */
export interface Course {
  /** From here on the gateway had all it needs to deliver: when the process was killed, the database was back, … */
  readonly recoverableAt: number
  /** How long after that a destination may be without a delivery. */
  readonly limitMs: number
  /** When memory was lost: what was on the wire or not recorded at such a moment may be delivered again. */
  readonly crashes: ReadonlyArray<Crash>
  /** Destinations that cannot be delivered to until the fault is mended. */
  readonly disturbed: ReadonlyArray<string>
  /** Whether connections were paused: what they have delivered cannot be retried meanwhile. */
  readonly paused?: boolean
  /** Whether a process had another time than the others: then recorded times say nothing. */
  readonly clocksJumped?: boolean
  /** Takes the fault back, once deliveries go on. */
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

/** A process that stood still for longer than its lease, and went on. */
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
  /** Whether what it did cannot be taken back, so that the next round needs a world of its own. */
  readonly usesUpWorld?: boolean
  readonly inflict: (stage: Stage) => Promise<Course>
}

/** The take-over after a crash: a runner that is silent for 4 s has lost its shards, and the others go through what it left. */
export const takeOverMs = 5_000
/** From the kill: on a busy machine Node, the migrations' check and joining the cluster take seconds before the take-over. */
export const restartMs = 15_000
/** Nothing stands in the way of these destinations. */
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

/** SIGKILL. They stand still before, so that no delivery leaves by a port that was not read. */
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
