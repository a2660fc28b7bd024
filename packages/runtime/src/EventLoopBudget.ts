import { Effect } from "effect"

/**
 * Long work on untrusted input is split into steps, because a process has one event loop that also refreshes leases and answers senders. All
 * long work together gets a few milliseconds of each event-loop iteration (the event-loop budget), and no step starts after that. Waiting
 * work continues in the order in which it came. Rare or short work need not use the budget.
 */

/** Milliseconds of one event-loop iteration. A longer step has an iteration to itself. */
const sliceMs = 8

/** When the budget of this iteration ends, on the monotonic clock; null while no work has asked for it. */
let end: number | null = null
const waiting: Array<() => void> = []
/** How many of the waiting callbacks have started. */
let begun = 0
let isScheduled = false

const schedule = (): void => {
  if (isScheduled) return
  isScheduled = true
  setImmediate(begin)
}

/** A new iteration: waiting callbacks run until its budget is spent. */
const begin = (): void => {
  isScheduled = false
  end = null
  const now = performance.now()
  while (begun < waiting.length && !isBudgetSpent(now)) {
    const next = waiting[begun]!
    begun++
    next()
  }
  // Compacted only at times: copying a long queue for each callback would be slow, and finished callbacks must not be kept for long.
  if (begun === waiting.length || begun > 1_000) {
    waiting.splice(0, begun)
    begun = 0
  }
  if (waiting.length > 0) schedule()
}

/**
 * Whether long work has spent the budget of this event-loop iteration; if so, continue with `inLaterTurn`. `since`: when the caller's work
 * started (`performance.now()`), which is then counted. Without `since` this only checks, and costs nothing while there is no long work.
 */
export const isBudgetSpent = (since?: number): boolean => {
  if (end === null) {
    if (since === undefined) return false
    end = since + sliceMs
    schedule()
  }
  return performance.now() >= end
}

/** Runs `go` in a later event-loop iteration, after those that already wait. `go` must not throw. */
export const inLaterTurn = (go: () => void): void => {
  waiting.push(go)
  schedule()
}

/** Waits for a later event-loop iteration, even if the budget of this one is not spent. */
export const laterTurn: Effect.Effect<void> = Effect.callback<void>((resume) => {
  let isOn = true
  inLaterTurn(() => {
    if (isOn) resume(Effect.void)
  })
  return Effect.sync(() => {
    isOn = false
  })
})

/** Call it between two steps of long work that started at `since`: waits for the next event-loop iteration if the budget is spent. */
export const yieldIfSpent = (since: number): Effect.Effect<void> =>
  Effect.suspend(() => (isBudgetSpent(since) ? laterTurn : Effect.void))

/** Runs long work to its end. It yields between its steps, each of a few milliseconds, and takes as many event-loop iterations as it needs. */
export const inSlices = <A>(work: Iterator<void, A, void>): Effect.Effect<A> =>
  Effect.suspend(() => {
    if (isBudgetSpent()) return Effect.andThen(laterTurn, inSlices(work))
    const since = performance.now()
    for (;;) {
      const part = work.next()
      if (part.done === true) {
        return isBudgetSpent(since) ? Effect.as(laterTurn, part.value) : Effect.succeed(part.value)
      }
      if (isBudgetSpent(since)) return Effect.andThen(laterTurn, inSlices(work))
    }
  })

/**
 * Milliseconds of processor time that this thread has used. Unlike elapsed time it does not grow while other processes use the machine.
 * Only the difference of two readings in one event-loop iteration is the caller's own work.
 */
export const cpuMillis = (): number => {
  const { system, user } = process.threadCpuUsage()
  return (system + user) / 1_000
}
