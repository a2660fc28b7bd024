import type { Cluster, ProcessName, Topology } from "./Cluster.ts"
import { portsOf } from "../support/Peers.ts"
import type { Behaviour, Target } from "./Target.ts"
import type { Route } from "./Routes.ts"
import { now, sleep, waitUntil } from "../support/Waiting.ts"

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
const takeOverMs = 5_000
/** From the kill: on a busy machine Node, the migrations' check and joining the cluster take seconds before the take-over. */
const restartMs = 15_000
/** Nothing stands in the way of these destinations. */
const unimpededMs = 1_500

const holdMs = 4_000

const quiet = { crashes: [], disturbed: [] } as const

/** The ports that these processes deliver from. */
const deliveringPorts = ({ cluster, target }: Stage, names: ReadonlyArray<ProcessName>): Crash["ports"] => {
  let all: Crash["ports"] = new Set()
  for (const name of names) {
    const ports = portsOf(cluster.pid(name), target.port)
    all = all === null || ports === null ? null : all.union(ports)
  }
  return all
}

/** SIGKILL. They stand still before, so that no delivery leaves by a port that was not read. */
const crash = async (stage: Stage, ...names: ReadonlyArray<ProcessName>): Promise<Crash> => {
  const at = now()
  for (const name of names) stage.cluster.freeze(name)
  const ports = deliveringPorts(stage, names)
  await stage.cluster.kill(...names)
  return { at, ports }
}

const startAgain = (cluster: Cluster, name: ProcessName) => async (): Promise<Mended> => {
  await cluster.start(name)
  return {}
}

const nothing: Fault = {
  name: "nothing",
  topology: "cluster",
  ingressStaysUp: true,
  inflict: async () => {
    const at = now()
    await sleep(holdMs)
    return { recoverableAt: at, limitMs: unimpededMs, ...quiet }
  }
}

const killRunner = (name: ProcessName): Fault => ({
  name: `SIGKILL ${name}`,
  topology: "cluster",
  ingressStaysUp: true,
  inflict: async (stage) => {
    const crashed = await crash(stage, name)
    return {
      recoverableAt: crashed.at,
      limitMs: takeOverMs,
      crashes: [crashed],
      disturbed: [],
      mend: startAgain(stage.cluster, name)
    }
  }
})

const stopRunner = (name: ProcessName): Fault => ({
  name: `SIGTERM ${name}`,
  topology: "cluster",
  ingressStaysUp: true,
  inflict: async ({ cluster }) => {
    const at = now()
    await cluster.stop(name)
    return {
      recoverableAt: at,
      limitMs: takeOverMs,
      ...quiet,
      mend: startAgain(cluster, name)
    }
  }
})

const rollingRestart: Fault = {
  name: "rolling restart of the runners",
  topology: "cluster",
  ingressStaysUp: true,
  inflict: async ({ cluster }) => {
    const at = now()
    for (const name of ["runner-1", "runner-2"] as const) {
      await cluster.stop(name)
      await cluster.start(name)
    }
    return { recoverableAt: at, limitMs: takeOverMs, ...quiet }
  }
}

/** Frozen beyond the lease: the others take over, and it must not go on where it was. */
const freezeRunner = (name: ProcessName, frozenMs: number): Fault => ({
  name: `SIGSTOP ${name} for ${frozenMs / 1000} s`,
  topology: "cluster",
  ingressStaysUp: true,
  inflict: async (stage) => {
    const { cluster, target } = stage
    const at = now()
    const pid = cluster.pid(name)
    cluster.freeze(name)
    return {
      recoverableAt: at,
      limitMs: takeOverMs,
      crashes: [{ at, ports: deliveringPorts(stage, [name]) }],
      disturbed: [],
      mend: async () => {
        await sleep(Math.max(0, at + frozenMs - now()))
        let ports = portsOf(pid, target.port)
        cluster.thaw(name)
        const thawedAt = now()
        // Whatever it does wrong, it does in its first seconds.
        while (now() < thawedAt + 3_000) {
          await sleep(250)
          ports = ports === null ? null : ports.union(portsOf(pid, target.port) ?? new Set())
        }
        return { thawed: { at: thawedAt, ports } }
      }
    }
  }
})

/** Frozen for less than the lease: nobody takes over, and it goes on where it was. */
const pauseRunner = (name: ProcessName, frozenMs: number): Fault => ({
  name: `SIGSTOP ${name} for ${frozenMs / 1000} s`,
  topology: "cluster",
  ingressStaysUp: true,
  inflict: async ({ cluster }) => {
    const at = now()
    cluster.freeze(name)
    await sleep(frozenMs)
    cluster.thaw(name)
    return { recoverableAt: at, limitMs: takeOverMs, ...quiet }
  }
})

const killBothRunners: Fault = {
  name: "SIGKILL both runners, start them again",
  topology: "cluster",
  ingressStaysUp: true,
  inflict: async (stage) => {
    const crashed = await crash(stage, "runner-1", "runner-2")
    await stage.cluster.startAll()
    return { recoverableAt: crashed.at, limitMs: restartMs, crashes: [crashed], disturbed: [] }
  }
}

const onlyIngress: Fault = {
  name: "only ingress for 6 s",
  topology: "cluster",
  ingressStaysUp: true,
  inflict: async (stage) => {
    const crashed = await crash(stage, "runner-1", "runner-2")
    await sleep(6_000)
    const startedAt = now()
    await stage.cluster.startAll()
    return { recoverableAt: startedAt, limitMs: restartMs, crashes: [crashed], disturbed: [] }
  }
}

/** What came meanwhile goes out in its order, although whoever knew it is gone. */
const pauseAndKill: Fault = {
  name: "all connections paused for 4 s, SIGKILL runner-1 amid it",
  topology: "cluster",
  ingressStaysUp: true,
  inflict: async (stage) => {
    const { cluster, routes } = stage
    const all = routes.flatMap(({ connections }) => connections)
    const switchAll = (to: "pause" | "unpause") =>
      Promise.all(all.map(({ id }) => cluster.api("PUT", `/connections/${id}/${to}`)))
    await switchAll("pause")
    await sleep(holdMs / 2)
    const crashed = await crash(stage, "runner-1")
    await sleep(holdMs / 2)
    await switchAll("unpause")
    return {
      recoverableAt: now(),
      limitMs: takeOverMs,
      crashes: [crashed],
      disturbed: [],
      paused: true,
      mend: startAgain(cluster, "runner-1")
    }
  }
}

const killEdge: Fault = {
  name: "SIGKILL edge",
  topology: "cluster",
  ingressStaysUp: false,
  inflict: async ({ cluster }) => {
    await cluster.kill("edge")
    await cluster.startAll()
    return { recoverableAt: now(), limitMs: unimpededMs, ...quiet }
  }
}

const killPostgres = (topology: Topology): Fault => ({
  name: topology === "single" ? "SIGKILL the embedded PostgreSQL" : "SIGKILL PostgreSQL",
  topology,
  ingressStaysUp: false,
  inflict: async ({ cluster }) => {
    cluster.postgres.kill()
    return { recoverableAt: await cluster.postgres.back(), limitMs: takeOverMs, ...quiet }
  }
})

const postgresDown = (topology: Topology, downMs: number): Fault => ({
  name: `${topology === "single" ? "the embedded PostgreSQL" : "PostgreSQL"} down for ${downMs / 1000} s`,
  topology,
  ingressStaysUp: false,
  inflict: async ({ cluster }) => {
    await cluster.keepPostgresDown(downMs)
    return { recoverableAt: await cluster.postgres.back(), limitMs: takeOverMs, ...quiet }
  }
})

/** As when a disk does not answer: no connection breaks, and nothing goes on. */
const freezePostgres: Fault = {
  name: "PostgreSQL stands still for 5 s",
  topology: "cluster",
  ingressStaysUp: false,
  inflict: async ({ cluster }) => {
    const thaw = cluster.postgres.freeze()
    await sleep(5_000)
    thaw()
    return { recoverableAt: now(), limitMs: takeOverMs, ...quiet }
  }
}

/** PostgreSQL waits before each write of its log to the disk, with the lock held that all commits need: so a slow disk behaves. */
const slowDisk: Fault = {
  name: "each flush of the log takes 0.1 s longer, for 8 s",
  topology: "cluster",
  ingressStaysUp: true,
  inflict: async ({ cluster }) => {
    const at = now()
    await cluster.postgres.slowDown(true)
    await sleep(8_000)
    await cluster.postgres.slowDown(false)
    return { recoverableAt: at, limitMs: takeOverMs, ...quiet }
  }
}

const terminateBackends: Fault = {
  name: "pg_terminate_backend in a loop for 5 s",
  topology: "cluster",
  ingressStaysUp: false,
  inflict: async ({ cluster }) => {
    await cluster.terminateBackends(5_000)
    return { recoverableAt: now(), limitMs: takeOverMs, ...quiet }
  }
}

const terminateAndKill: Fault = {
  name: "pg_terminate_backend for 3 s, SIGKILL runner-1 amid it",
  topology: "cluster",
  ingressStaysUp: false,
  inflict: async (stage) => {
    const terminating = stage.cluster.terminateBackends(3_000)
    await sleep(1_000)
    const crashed = await crash(stage, "runner-1")
    await terminating
    return {
      recoverableAt: now(),
      limitMs: takeOverMs,
      crashes: [crashed],
      disturbed: [],
      mend: startAgain(stage.cluster, "runner-1")
    }
  }
}

/** Some of the destinations misbehave; the others must not notice. */
const badTarget = (behaviour: Behaviour): Fault => ({
  name: `targets that ${wrongs[behaviour]} for ${holdMs / 1000} s`,
  topology: "cluster",
  ingressStaysUp: true,
  inflict: async ({ target }) => {
    const at = now()
    const disturbed = ["plain-1", "steady-1", "flaky-4", "paced-1"]
    for (const key of disturbed) target.behave(key, behaviour)
    await sleep(holdMs)
    return {
      recoverableAt: at,
      limitMs: unimpededMs,
      crashes: [],
      disturbed,
      mend: () => {
        target.heal()
        return Promise.resolve({})
      }
    }
  }
})

const wrongs: Record<Behaviour, string> = {
  answer: "answer",
  fail: "fail",
  hang: "hang",
  reset: "reset",
  half: "send half an answer",
  endless: "never end their answer"
}

/** Everything fails with retries piling up, and then a runner dies. */
const killWhileFailing: Fault = {
  name: "SIGKILL runner-2 while all targets fail",
  topology: "cluster",
  ingressStaysUp: true,
  inflict: async (stage) => {
    const { cluster, target } = stage
    const failing = ["steady-1", "steady-2", "steady-3", "flaky-1", "flaky-2", "flaky-3", "flaky-4", "delayed-1"]
    for (const key of failing) target.behave(key, "fail")
    await sleep(2_500)
    const crashed = await crash(stage, "runner-2")
    await sleep(1_000)
    target.heal()
    return {
      recoverableAt: crashed.at,
      limitMs: takeOverMs,
      crashes: [crashed],
      disturbed: [],
      mend: startAgain(cluster, "runner-2")
    }
  }
}

const killAll: Fault = {
  name: "SIGKILL the only process",
  topology: "single",
  ingressStaysUp: false,
  inflict: async (stage) => {
    const crashed = await crash(stage, "all")
    await stage.cluster.startAll()
    return { recoverableAt: crashed.at, limitMs: restartMs, crashes: [crashed], disturbed: [] }
  }
}

const killAllAgainAndAgain: Fault = {
  name: "SIGKILL the only process three times",
  topology: "single",
  ingressStaysUp: false,
  inflict: async (stage) => {
    const { cluster, target } = stage
    const crashes: Array<Crash> = []
    for (let time = 0; time < 3; time++) {
      crashes.push(await crash(stage, "all"))
      await cluster.startAll()
      const seen = target.arrivals.length
      await waitUntil("deliveries go on", () => target.arrivals.length > seen + 20, { patienceMs: restartMs })
    }
    return { recoverableAt: crashes.at(-1)!.at, limitMs: restartMs, crashes, disturbed: [] }
  }
}

const stopAll: Fault = {
  name: "SIGTERM the only process",
  topology: "single",
  ingressStaysUp: false,
  inflict: async ({ cluster }) => {
    await cluster.stop("all")
    const startedAt = now()
    await cluster.startAll()
    return { recoverableAt: startedAt, limitMs: restartMs, ...quiet }
  }
}

const freezeAll: Fault = {
  name: "SIGSTOP the only process for 6 s",
  topology: "single",
  ingressStaysUp: false,
  inflict: async ({ cluster }) => {
    cluster.freeze("all")
    await sleep(6_000)
    cluster.thaw("all")
    return { recoverableAt: now(), limitMs: takeOverMs, ...quiet }
  }
}

/** It runs on, but finds its database no more: others take over, and what it has begun it can only finish, not record. */
const partition = (isSilent: boolean): Fault => ({
  name: isSilent
    ? "packets between runner-1 and PostgreSQL are lost for 8 s"
    : "runner-1 is refused by PostgreSQL for 8 s",
  topology: "link",
  ingressStaysUp: true,
  inflict: async (stage) => {
    const { cluster, target } = stage
    const link = cluster.part("link")
    const at = now()
    let ports = deliveringPorts(stage, ["runner-1"])
    if (isSilent) link.silence()
    else await link.cut()
    while (now() < at + 8_000) {
      await sleep(250)
      ports = ports === null ? null : ports.union(portsOf(cluster.pid("runner-1"), target.port) ?? new Set())
    }
    if (isSilent) link.speak()
    else await link.mend()
    return { recoverableAt: at, limitMs: takeOverMs, crashes: [{ at, ports }], disturbed: [] }
  }
})

/**
 * The moments by which retries are due are those of the process that wrote them. So those that it writes while it is ahead are due late by as much
 * once its clock is right again.
 */
const clockJump = (seconds: number): Fault => ({
  name: `the clock of runner-1 jumps ${seconds > 0 ? "ahead" : "back"} by ${Math.abs(seconds)} s, and back to right after 6 s`,
  topology: "clock",
  ingressStaysUp: true,
  inflict: async ({ cluster }) => {
    const clock = cluster.part("clock")
    const at = now()
    await clock.jump(seconds)
    await sleep(6_000)
    await clock.jump(0)
    return { recoverableAt: at, limitMs: takeOverMs + Math.abs(seconds) * 1_000, ...quiet, clocksJumped: true }
  }
})

/** What processes share by it goes on in each process alone. */
const redisAway: Fault = {
  name: "Redis away for 6 s",
  topology: "redis",
  ingressStaysUp: true,
  inflict: async ({ cluster }) => {
    const redis = cluster.part("redis")
    const at = now()
    await redis.stop()
    await sleep(6_000)
    await redis.start()
    return { recoverableAt: at, limitMs: takeOverMs, ...quiet }
  }
}

const diskFull: Fault = {
  name: "the disk of PostgreSQL full for 6 s",
  topology: "disk",
  ingressStaysUp: false,
  inflict: async ({ cluster }) => {
    const disk = cluster.part("disk")
    disk.fill()
    await sleep(6_000)
    disk.relieve()
    return { recoverableAt: await cluster.postgres.back(), limitMs: takeOverMs, ...quiet }
  }
}

const promotion: Fault = {
  name: "a synchronous standby is promoted",
  topology: "standby",
  ingressStaysUp: false,
  usesUpWorld: true,
  inflict: async ({ cluster }) => {
    await cluster.part("promote")()
    return { recoverableAt: now(), limitMs: takeOverMs, ...quiet }
  }
}

const upgrade: Fault = {
  name: "rolling upgrade from the previous version",
  topology: "previous",
  ingressStaysUp: false,
  usesUpWorld: true,
  inflict: async ({ cluster }) => {
    const at = now()
    for (const name of ["runner-1", "runner-2", "edge"] as const) await cluster.update(name)
    return { recoverableAt: at, limitMs: restartMs, ...quiet }
  }
}

/** The rounds of the full form, in order. */
export const allFaults: ReadonlyArray<Fault> = [
  nothing,
  killRunner("runner-1"),
  killRunner("runner-2"),
  stopRunner("runner-1"),
  rollingRestart,
  freezeRunner("runner-1", 8_000),
  freezeRunner("runner-2", 6_000),
  pauseRunner("runner-1", 2_000),
  killPostgres("cluster"),
  postgresDown("cluster", 6_000),
  freezePostgres,
  slowDisk,
  terminateBackends,
  terminateAndKill,
  onlyIngress,
  pauseAndKill,
  killBothRunners,
  killEdge,
  badTarget("hang"),
  badTarget("reset"),
  badTarget("half"),
  badTarget("endless"),
  killWhileFailing,
  killAll,
  killAllAgainAndAgain,
  stopAll,
  freezeAll,
  killPostgres("single"),
  postgresDown("single", 6_000),
  partition(false),
  partition(true),
  clockJump(20),
  clockJump(-20),
  redisAway,
  diskFull,
  promotion,
  upgrade
]

/** A few of them, for every run of the test suites. */
export const shortForm: ReadonlyArray<Fault> = [
  killRunner("runner-1"),
  freezeRunner("runner-2", 6_000),
  killPostgres("cluster")
]
