import { Effect } from "effect"

/** Whether the interrupted command normally ends by an interruption. */
let endsByInterrupt = false

/** Marks an effect that runs until the user stops it: being stopped is its success. */
export const untilStopped = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    endsByInterrupt = true
    return effect
  })

export const interruptedCode = (): number => (endsByInterrupt ? 0 : 130)
