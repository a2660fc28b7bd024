import { portsOf } from "../../support/Peers.ts"
import { now, sleep } from "../../support/Waiting.ts"
import type { ProcessName } from "../Cluster.ts"
import { crash, deliveringPorts, type Fault, quiet, restartMs, startAgain, takeOverMs } from "../Fault.ts"

export const killRunner = (name: ProcessName): Fault => ({
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

export const stopRunner = (name: ProcessName): Fault => ({
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

export const rollingRestart: Fault = {
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

/** Frozen for longer than the lease: the others take over, and the process must not continue its old work. */
export const freezeRunner = (name: ProcessName, frozenMs: number): Fault => ({
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
        // If it does something wrong, it does so in the first seconds.
        while (now() < thawedAt + 3_000) {
          await sleep(250)
          ports = ports === null ? null : ports.union(portsOf(pid, target.port) ?? new Set())
        }
        return { thawed: { at: thawedAt, ports } }
      }
    }
  }
})

/** Frozen for less than the lease: nobody takes over, and the process continues its work. */
export const pauseRunner = (name: ProcessName, frozenMs: number): Fault => ({
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

/**
 * The same for the active process of a host, whose standby receives all requests. Afterwards the standby is the active one, so the next round needs new
 * processes.
 */
export const toActive = (fault: Fault): Fault => ({
  ...fault,
  name: `${fault.name}, which commits for a standby`,
  topology: "host",
  usesUpWorld: true
})

export const killBothRunners: Fault = {
  name: "SIGKILL both runners, start them again",
  topology: "cluster",
  ingressStaysUp: true,
  inflict: async (stage) => {
    const crashed = await crash(stage, "runner-1", "runner-2")
    await stage.cluster.startAll()
    return { recoverableAt: crashed.at, limitMs: restartMs, crashes: [crashed], disturbed: [] }
  }
}

export const onlyIngress: Fault = {
  name: "only ingress for 4 s",
  topology: "cluster",
  ingressStaysUp: true,
  inflict: async (stage) => {
    const crashed = await crash(stage, "runner-1", "runner-2")
    await sleep(4_000)
    const startedAt = now()
    await stage.cluster.startAll()
    return { recoverableAt: startedAt, limitMs: restartMs, crashes: [crashed], disturbed: [] }
  }
}
