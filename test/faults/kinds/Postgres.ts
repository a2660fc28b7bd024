import { now, sleep } from "../../support/Waiting.ts"
import type { Topology } from "../Cluster.ts"
import { crash, type Fault, quiet, startAgain, takeOverMs } from "../Fault.ts"

export const killPostgres = (topology: Topology): Fault => ({
  name: topology === "single" ? "SIGKILL the embedded PostgreSQL" : "SIGKILL PostgreSQL",
  topology,
  ingressStaysUp: false,
  inflict: async ({ cluster }) => {
    cluster.postgres.kill()
    return { recoverableAt: await cluster.postgres.back(), limitMs: takeOverMs, ...quiet }
  }
})

export const postgresDown = (topology: Topology, downMs: number): Fault => ({
  name: `${topology === "single" ? "the embedded PostgreSQL" : "PostgreSQL"} down for ${downMs / 1000} s`,
  topology,
  ingressStaysUp: false,
  inflict: async ({ cluster }) => {
    await cluster.keepPostgresDown(downMs)
    return { recoverableAt: await cluster.postgres.back(), limitMs: takeOverMs, ...quiet }
  }
})

/** Behaves like a disk that does not answer: no connection breaks, and no statement proceeds. */
export const freezePostgres: Fault = {
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

/** PostgreSQL waits before each write of its log, and holds the lock that all commits need. A slow disk has the same effect. */
export const slowDisk: Fault = {
  name: "each flush of the log takes 0.1 s longer, for 5 s",
  topology: "cluster",
  ingressStaysUp: true,
  inflict: async ({ cluster }) => {
    const at = now()
    await cluster.postgres.slowDown(true)
    await sleep(5_000)
    await cluster.postgres.slowDown(false)
    return { recoverableAt: at, limitMs: takeOverMs, ...quiet }
  }
}

export const terminateBackends: Fault = {
  name: "pg_terminate_backend in a loop for 3 s",
  topology: "cluster",
  ingressStaysUp: false,
  inflict: async ({ cluster }) => {
    await cluster.terminateBackends(3_000)
    return { recoverableAt: now(), limitMs: takeOverMs, ...quiet }
  }
}

export const terminateAndKill: Fault = {
  name: "pg_terminate_backend for 3 s, SIGKILL runner-1 amid it",
  topology: "cluster",
  ingressStaysUp: false,
  inflict: async (stage) => {
    const [crashed] = await Promise.all([
      sleep(1_000).then(() => crash(stage, "runner-1")),
      stage.cluster.terminateBackends(3_000)
    ])
    return {
      recoverableAt: now(),
      limitMs: takeOverMs,
      crashes: [crashed],
      disturbed: [],
      mend: startAgain(stage.cluster, "runner-1")
    }
  }
}
