import { readdirSync } from "node:fs"
import { getPriority, setPriority } from "node:os"

/** False after a refusal: raising a priority needs a right that not every user has. */
let mayComeBack = true

export interface Priority {
  /** Normal priority, for fast calls: the same as the gateway's, because it waits for them. */
  readonly goFirst: () => void
  /** Low priority, for slow calls: all other work comes first. */
  readonly giveWay: () => void
  /** The priority is low and cannot be raised again. */
  readonly isStuck: () => boolean
}

/** Linux sets the priority of each thread. Garbage collector threads left at low priority would delay the thread that waits for them. */
const threadsOf = (pid: number): ReadonlyArray<number> => {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number)
  } catch {
    // Not Linux, already ended, or never started (no id).
    return pid === 0 ? [] : [pid]
  }
}

const isRefusal = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "EACCES" || error.code === "EPERM")

/**
 * Controls the priority of a child, which inherits the gateway's. On a busy machine a low-priority process gets a tenth of a core, however
 * little it asks for, and fast calls must not wait for that. `niceness`: the low priority; it is set from the start if it can be raised again.
 */
export const makePriority = (pid: number, niceness: number): Priority => {
  const first = getPriority()
  const last = Math.max(first, niceness)
  let current = first

  const set = (wanted: number): void => {
    if (wanted === current) return
    for (const thread of threadsOf(pid)) {
      try {
        setPriority(thread, wanted)
      } catch (error) {
        if (!isRefusal(error)) continue
        if (wanted < current) mayComeBack = false
        return
      }
    }
    current = wanted
  }
  if (mayComeBack) set(last)
  return {
    goFirst: () => set(first),
    giveWay: () => set(last),
    isStuck: () => current > first && !mayComeBack
  }
}
