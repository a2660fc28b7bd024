import { Effect, Exit, type Scope } from "effect"

/** An idle connection. */
export interface Idle {
  /** Called when the connection is about to be closed: it must not be used any more. */
  readonly leave: () => void
  readonly close: Effect.Effect<void>
}

/** The permits of one destination. `Places` updates it. */
export interface Share {
  taken: number
}

interface Waiting<C> {
  readonly share: Share
  /** The result of the wait: a permit, or a connection of the same destination that is not needed any more. */
  got: "nothing" | "place" | C
  go: () => void
}

/**
 * A fair semaphore for the connections of a process to external databases. An idle connection keeps its permit until another destination
 * needs it.
 *
 * A destination may take a further connection only while more permits are free than it holds; for its first one, a single free permit is
 * enough. Servers that do not answer hold connections for a long time, so one part is always left for other destinations. The concurrency
 * limits of deliveries work in the same way.
 */
export class Places<C extends Idle> {
  readonly #most: number
  #taken = 0
  /** The longest idle first. */
  readonly #idle = new Set<C>()
  readonly #waiting = new Set<Waiting<C>>()

  constructor(most: number) {
    this.#most = most
  }

  share(): Share {
    return { taken: 0 }
  }

  /** The connection is in use again, or closed. */
  busy(connection: C): void {
    this.#idle.delete(connection)
  }

  /**
   * Waits for a permit, which the scope holds, and returns null. It returns a connection instead if one of this destination was given back
   * meanwhile; that connection has its own permit, and is closed if the scope ends with a failure.
   */
  take(share: Share): Effect.Effect<C | null, never, Scope.Scope> {
    return Effect.uninterruptibleMask((restore) =>
      Effect.suspend(() => {
        const waiting: Waiting<C> = { share, got: "nothing", go: () => undefined }
        const waits = Effect.callback<void>((resume) => {
          waiting.go = () => resume(Effect.void)
          this.#waiting.add(waiting)
          this.#settle()
        })
        return restore(waits).pipe(
          Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : this.#undone(waiting))),
          Effect.andThen(
            Effect.suspend(() => {
              const { got } = waiting
              return typeof got === "object"
                ? Effect.as(
                    Effect.addFinalizer((exit) => (Exit.isSuccess(exit) ? Effect.void : got.close)),
                    got
                  )
                : Effect.as(
                    Effect.addFinalizer(() => Effect.sync(() => this.#release(share))),
                    null
                  )
            })
          )
        )
      })
    )
  }

  /**
   * Gives back a connection. "idle": it is kept for its next use. "handed": it went to a waiting caller of the same destination. "close": the
   * caller must close it, because another destination waits for its permit.
   */
  idle(share: Share, connection: C): "idle" | "handed" | "close" {
    const free = this.#free + 1
    for (const waiting of this.#waiting) {
      if (waiting.share !== share && mayTake(waiting.share, free)) return "close"
    }
    for (const waiting of this.#waiting) {
      if (waiting.share !== share) continue
      this.#give(waiting, connection)
      return "handed"
    }
    this.#idle.add(connection)
    return "idle"
  }

  /** Free permits, including those of idle connections, which can be closed. */
  get #free(): number {
    return this.#most - this.#taken + this.#idle.size
  }

  #give(waiting: Waiting<C>, got: "place" | C): void {
    this.#waiting.delete(waiting)
    waiting.got = got
    waiting.go()
  }

  #undone(waiting: Waiting<C>): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#waiting.delete(waiting)
      if (waiting.got === "place") this.#release(waiting.share)
      return typeof waiting.got === "object" ? waiting.got.close : Effect.void
    })
  }

  #release(share: Share): void {
    share.taken--
    this.#taken--
    this.#settle()
  }

  /** First come, first served, among those that may take one more. */
  #settle(): void {
    for (const waiting of this.#waiting) {
      if (!mayTake(waiting.share, this.#free)) continue
      if (this.#taken === this.#most) return this.#evict()
      waiting.share.taken++
      this.#taken++
      this.#give(waiting, "place")
    }
  }

  /** Closes the longest idle connection; its permit is given away once it is closed. */
  #evict(): void {
    const [longest] = this.#idle
    if (longest === undefined) return
    this.#idle.delete(longest)
    longest.leave()
    Effect.runFork(longest.close)
  }
}

/** The first permit requires a free one; a further one requires more free permits than the destination holds. */
const mayTake = ({ taken }: Share, free: number): boolean => free > 0 && (taken === 0 || taken < free)
