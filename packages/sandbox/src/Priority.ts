import { readdirSync } from "node:fs"
import { getPriority, setPriority } from "node:os"

/** Learned by trying: to come back to the front takes a right that not every user has. */
let mayComeBack = true

export interface Priority {
  /** It works for calls that are quick: as the gateway itself, which waits for them. */
  readonly goFirst: () => void
  /** It works for what takes long: everybody else's work comes first. */
  readonly giveWay: () => void
  /** It has given way, and cannot come back. */
  readonly isStuck: () => boolean
}

/** The system counts it by thread: those of the collector, left behind, would hold up the one that waits for them. */
const threadsOf = (pid: number): ReadonlyArray<number> => {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number)
  } catch {
    // Not Linux, gone, or, without an id, never started.
    return pid === 0 ? [] : [pid]
  }
}

const isRefusal = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "EACCES" || error.code === "EPERM")

/**
 * The priority of a child, that of the gateway when it starts. On a busy machine a process that gives way gets a tenth of a core,
 * however little it asks for: what is quick must not wait for that. `niceness`: how much it gives way; it begins so where it can come back.
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
