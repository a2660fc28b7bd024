/** Moments that a test in the same process can await instead of sleeping; each has just been, whatever came of it. */
export type Moment = "sweep" | "refill" | "reload" | "commit" | "count"

const waiting = new Map<Moment, Array<() => void>>()

/** Said by the program. Nobody listens in production, and then this is one comparison. */
export const passed = (moment: Moment): void => {
  if (waiting.size === 0) return
  const listeners = waiting.get(moment) ?? []
  waiting.delete(moment)
  for (const listener of listeners) listener()
}

/** The next time that the moment comes. To be asked before one looks whether it is still to come. */
export const next = (moment: Moment): Promise<void> =>
  new Promise((resolve) => {
    waiting.set(moment, [...(waiting.get(moment) ?? []), resolve])
  })
