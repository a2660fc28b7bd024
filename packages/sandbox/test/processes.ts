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
