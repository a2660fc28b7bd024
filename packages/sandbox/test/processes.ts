import { expect } from "@effect/vitest"
import { readFileSync } from "node:fs"

export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return !/^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, "latin1"))
  } catch {
    return false
  }
}

/** Other processes tell nobody that they end. */
export const areGone = async (pids: ReadonlyArray<number>): Promise<void> => {
  await expect.poll(() => pids.filter(isAlive), { timeout: 60_000, interval: 10 }).toEqual([])
}

/** Whether this process may raise the priority of another: `CAP_SYS_NICE`, which a container's root has not. */
export const mayRaisePriority = (): boolean => {
  if (process.platform !== "linux") return false
  const rights = /^CapEff:\s*(\w+)/m.exec(readFileSync("/proc/self/status", "latin1"))?.[1] ?? "0"
  return ((BigInt(`0x${rights}`) >> 23n) & 1n) === 1n
}
