/** Moments that a test in the same process can await instead of sleeping. Each means that the step has just ended, successfully or not. */
export type Moment = "poll" | "prefetch" | "reload" | "commit" | "count"

const waiting = new Map<Moment, Array<() => void>>()

/** Called by the production code. Without a listening test it costs one comparison. */
export const passed = (moment: Moment): void => {
  if (waiting.size === 0) return
  const listeners = waiting.get(moment) ?? []
  waiting.delete(moment)
  for (const listener of listeners) listener()
}

/** Resolves the next time that the moment occurs. Call it before checking whether the moment is still to come. */
export const next = (moment: Moment): Promise<void> =>
  new Promise((resolve) => {
    waiting.set(moment, [...(waiting.get(moment) ?? []), resolve])
  })
