import { Effect, type Scope, Semaphore } from "effect"

/** A connection that waits for its next use. */
export interface Idle {
  /** From now on it is not used any more. */
  readonly leave: () => void
  readonly close: Effect.Effect<void>
}

/**
 * The connections that a process may have to other people's servers. One that waits for its next use keeps its place until
 * somebody else needs it.
 */
export class Places {
  readonly #free: Semaphore.Semaphore
  /** The longest wait comes first. */
  readonly #idle = new Set<Idle>()
  #waiting = 0

  constructor(most: number) {
    this.#free = Semaphore.makeUnsafe(most)
  }

  /** A place, for as long as the scope lives. */
  readonly take: Effect.Effect<void, never, Scope.Scope> = Effect.suspend(() =>
    Effect.acquireRelease(
      Effect.flatMap(this.#free.takeIfAvailable(1), (isFree) => (isFree ? Effect.void : this.#wait)),
      () => this.#free.release(1),
      { interruptible: true }
    )
  )

  readonly #wait = Effect.suspend(() => {
    this.#waiting++
    const [longest] = this.#idle
    if (longest === undefined) return this.#free.take(1)
    this.#idle.delete(longest)
    longest.leave()
    return Effect.andThen(Effect.forkDetach(longest.close), this.#free.take(1))
  }).pipe(Effect.ensuring(Effect.sync(() => void this.#waiting--)))

  /** It waits for its next use. False: it is to be closed, because others wait for a place. */
  idle(connection: Idle): boolean {
    if (this.#waiting > 0) return false
    this.#idle.add(connection)
    return true
  }

  /** It is in use again, or closed. */
  busy(connection: Idle): void {
    this.#idle.delete(connection)
  }
}
