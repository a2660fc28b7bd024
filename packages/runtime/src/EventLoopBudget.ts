import { Effect } from "effect"

/**
 * Long work on what strangers sent, in parts: everyone in a process shares one event loop, on which leases are refreshed
 * and senders are answered. All long work together has a few milliseconds of each turn of the loop, and no part is begun
 * beyond them; what waits goes on in the order it came. Work that is asked for rarely or is short need not ask.
 */

/** Milliseconds of one turn of the loop. A part that is longer than that has a turn to itself. */
const sliceMs = 8

/** On the monotonic clock; null while nobody has asked in this turn. */
let end: number | null = null
const waiting: Array<() => void> = []
/** How many of those that wait have begun. */
let begun = 0
let isScheduled = false

const schedule = (): void => {
  if (isScheduled) return
  isScheduled = true
  setImmediate(begin)
}

/** A new turn: those that wait go on, until its time is over. */
const begin = (): void => {
  isScheduled = false
  end = null
  const now = performance.now()
  while (begun < waiting.length && !isBudgetSpent(now)) {
    const next = waiting[begun]!
    begun++
    next()
  }
  // Now and then, so that neither a long queue is copied for each that leaves it, nor what has left it is kept.
  if (begun === waiting.length || begun > 1_000) {
    waiting.splice(0, begun)
    begun = 0
  }
  if (waiting.length > 0) schedule()
}

/**
 * Whether long work has used up its part of this turn of the loop: what is left goes on in `inLaterTurn`. Who has worked says
 * `since` when (`performance.now()`), and it is counted; without, this only asks, and costs nothing while nobody works long.
 */
export const isBudgetSpent = (since?: number): boolean => {
  if (end === null) {
    if (since === undefined) return false
    end = since + sliceMs
    schedule()
  }
  return performance.now() >= end
}

/** Goes on in a later turn, behind those that wait already. `go` must not throw. */
export const inLaterTurn = (go: () => void): void => {
  waiting.push(go)
  schedule()
}

/** Waits for a later turn, whatever has been done in this one. */
export const laterTurn: Effect.Effect<void> = Effect.callback<void>((resume) => {
  let isOn = true
  inLaterTurn(() => {
    if (isOn) resume(Effect.void)
  })
  return Effect.sync(() => {
    isOn = false
  })
})

/** Between two parts of long work that went on since then: waits for the next turn when this one is over. */
export const yieldIfSpent = (since: number): Effect.Effect<void> =>
  Effect.suspend(() => (isBudgetSpent(since) ? laterTurn : Effect.void))

/** Long work that yields between its parts, each of a few milliseconds, gone on with in as many turns as it takes. */
export const inSlices = <A>(work: Iterator<void, A, void>): Effect.Effect<A> =>
  Effect.suspend(() => {
    if (isBudgetSpent()) return Effect.andThen(laterTurn, inSlices(work))
    const since = performance.now()
    for (;;) {
      const part = work.next()
      if (part.done === true) return Effect.as(yieldIfSpent(since), part.value)
      if (isBudgetSpent(since)) return Effect.andThen(laterTurn, inSlices(work))
    }
  })

/**
 * Milliseconds of the processor that this thread has used. What is bounded by it takes as long on a machine that is busy with other work:
 * only what is done between two readings in one turn of the loop is one's own.
 */
export const cpuMillis = (): number => {
  const { system, user } = process.threadCpuUsage()
  return (system + user) / 1_000
}
