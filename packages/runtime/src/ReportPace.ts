import { Effect } from "effect"

/**
 * Exports, searches, counts and series are reports: they may take long, and no event waits for them. They share the event loop and the
 * processors with requests of senders, so they give way while requests arrive. Other long work does not: events wait for it.
 *
 * Reports that begin together would otherwise take each iteration of the event loop, and a request needs several: it is read, committed and
 * answered.
 */

/** All reports together work so long (ms) on the event loop at a time, and then pause for as long as they worked. */
const stepMs = 2
/** A report begins at once and for so long (ms), so that a short one does not wait for the others. */
const firstStepMs = 0.5
/** For this time (ms) after a request arrived, no step begins: most requests are answered within it. */
const answerMs = 5
/**
 * Requests delay a step for at most this time (ms). So a flood of one team leaves a fifth of the event loop to the reports of all teams, and
 * their pages do not gather in memory.
 */
const maxPauseMs = 8
/** For this time (ms) after a request, further ones are expected. */
const arrivalMs = 100

/** When the last request arrived (ms, monotonic clock). */
let arrivedAt = Number.NEGATIVE_INFINITY

/** A sender's request has arrived: reports give way. */
export const requestArrived = (): void => {
  arrivedAt = performance.now()
}

/** How long (ms) a report pauses after it has worked for `workedMs`: as long, at most `atMostMs`, and not at all while no requests arrive. */
const pauseAfter = (workedMs: number, atMostMs: number): number =>
  performance.now() - arrivedAt > arrivalMs ? 0 : Math.min(atMostMs, workedMs)

/** Steps that wait, in the order in which they came. */
const waiting: Array<() => void> = []
/** Whether a step runs, or the pause after one. */
let isOn = false

const inNextStep = (step: () => void): void => {
  waiting.push(step)
  if (isOn) return
  isOn = true
  after(firstStepMs)
}

/** Begins the next step after the pause that follows so much work (ms). */
const after = (workedMs: number): void => {
  const pause = pauseAfter(workedMs, maxPauseMs)
  if (pause > 0) setTimeout(begin, pause, performance.now() + maxPauseMs)
  else setImmediate(begin, 0)
}

/** `latest`: when the step begins even if a request has just arrived. */
const begin = (latest: number): void => {
  const since = performance.now()
  const rest = arrivedAt + answerMs - since
  if (rest > 0 && since < latest) {
    setTimeout(begin, Math.min(rest, latest - since), latest)
    return
  }
  waiting.shift()?.()
  if (waiting.length > 0) after(performance.now() - since)
  else isOn = false
}

/**
 * Runs the part of a report that needs the event loop: in steps of few milliseconds, one of all reports at a time. Short work is done at once.
 */
export const inReportSteps = <A>(work: Iterator<void, A, void>): Effect.Effect<A> =>
  Effect.callback<A>((resume) => {
    let isWanted = true
    const step = (ms: number): void => {
      if (!isWanted) return
      const since = performance.now()
      try {
        for (;;) {
          const part = work.next()
          if (part.done === true) return resume(Effect.succeed(part.value))
          if (performance.now() - since >= ms) return inNextStep(() => step(stepMs))
        }
      } catch (defect) {
        resume(Effect.die(defect))
      }
    }
    step(firstStepMs)
    return Effect.sync(() => {
      isWanted = false
    })
  })

/** For permits of reports (`permitsByKey`): while requests arrive, a permit rests for as long as it was used, at most for `atMostMs`. */
export const restingAsLong = (atMostMs: number) => () => {
  const since = performance.now()
  return (giveBack: () => void): void => {
    const pause = pauseAfter(performance.now() - since, atMostMs)
    // A process that ends need not wait for it.
    if (pause > 0) setTimeout(giveBack, pause).unref()
    else giveBack()
  }
}
