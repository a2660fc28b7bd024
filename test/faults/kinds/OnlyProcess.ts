import { now, sleep, waitUntil } from "../../support/Waiting.ts"
import { type Crash, crash, type Fault, quiet, restartMs, takeOverMs } from "../Fault.ts"

export const killAll: Fault = {
  name: "SIGKILL the only process",
  topology: "single",
  ingressStaysUp: false,
  inflict: async (stage) => {
    const crashed = await crash(stage, "all")
    await stage.cluster.startAll()
    return { recoverableAt: crashed.at, limitMs: restartMs, crashes: [crashed], disturbed: [] }
  }
}

export const killAllAgainAndAgain: Fault = {
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

export const stopAll: Fault = {
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

export const freezeAll: Fault = {
  name: "SIGSTOP the only process for 5 s",
  topology: "single",
  ingressStaysUp: false,
  inflict: async ({ cluster }) => {
    cluster.freeze("all")
    await sleep(5_000)
    cluster.thaw("all")
    return { recoverableAt: now(), limitMs: takeOverMs, ...quiet }
  }
}
