import { Effect } from "effect"

/** Whether what was interrupted is what one ends by interrupting it. */
let endsByInterrupt = false

/** What goes on until somebody stops it: to be stopped is its success. */
export const untilStopped = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    endsByInterrupt = true
    return effect
  })

export const interruptedCode = (): number => (endsByInterrupt ? 0 : 130)
