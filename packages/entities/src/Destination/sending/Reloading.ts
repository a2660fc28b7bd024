import { Effect, Fiber, type Scope, Semaphore } from "effect"

/**
 * Loads the settings of an actor: one load at a time, so that what is read later is applied later. Each load waits for the
 * database without limit; a caller that cannot wait sets a deadline.
 */
export const makeReloading = <R>(load: Effect.Effect<void, never, R>, scope: Scope.Scope) => {
  /** The load that has not begun to read yet: further callers wait for the same one. */
  let expected: Fiber.Fiber<void> | null = null
  /** The first load; null: nothing has been read yet, so no change can make it outdated. */
  let first: Fiber.Fiber<void> | null = null

  const loading = Semaphore.makeUnsafe(1).withPermits(1)(
    Effect.suspend(() => {
      expected = null
      return load
    })
  )

  /** Completes once everything later uses the stored settings. */
  const reload: Effect.Effect<void, never, R> = Effect.suspend(() => {
    if (expected !== null) return Fiber.join(expected)
    return Effect.flatMap(Effect.forkIn(loading, scope), (fiber) => {
      expected = fiber
      return Fiber.join(fiber)
    })
  })

  /** Completes once the settings are loaded for the first time. */
  const begin: Effect.Effect<void, never, R> = Effect.suspend(() => {
    if (first !== null) return Fiber.join(first)
    return Effect.flatMap(Effect.forkIn(reload, scope), (fiber) => {
      first = fiber
      return Fiber.join(fiber)
    })
  })

  return {
    begin,
    /** Also loads the settings when they have not been loaded yet. */
    reload: Effect.suspend(() => (first === null ? begin : reload)),
    reloadIfBegun: Effect.suspend(() => (first === null ? Effect.void : reload))
  }
}
