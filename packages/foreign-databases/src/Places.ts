import { Effect, Exit, type Scope } from "effect"

/** A connection that waits for its next use. */
export interface Idle {
  /** From now on it is not used any more. */
  readonly leave: () => void
  readonly close: Effect.Effect<void>
}

/** What one destination has of them. Kept by `Places`. */
export interface Share {
  taken: number
}

interface Waiting<C> {
  readonly share: Share
  /** What it has got: a place, or a connection that somebody else of its share needs no more. */
  got: "nothing" | "place" | C
  go: () => void
}

/**
 * The connections that a process may have to other people's servers. One that waits for its next use keeps its place until
 * somebody else needs it.
 *
 * One destination may have as many as are left over after it, as with deliveries on the wire: servers that answer nobody hold what
 * they have for long, and one part is always left for whoever comes.
 */
export class Places<C extends Idle> {
  readonly #most: number
  #taken = 0
  /** The longest wait comes first. */
  readonly #idle = new Set<C>()
  readonly #waiting = new Set<Waiting<C>>()

  constructor(most: number) {
    this.#most = most
  }

  share(): Share {
    return { taken: 0 }
  }

  /** In use again, or closed. */
  busy(connection: C): void {
    this.#idle.delete(connection)
  }

  /**
   * A place, for as long as the scope lives; or a connection of this share that was given back meanwhile, which has its own: then a scope
   * that ends with a failure closes it.
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

  /** It waits for its next use, or goes to whoever waits in its share; or is to be closed, because others wait for its place. */
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

  /** Places that nobody uses; those of idle connections are had by closing them. */
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

  /** First come, first served, as far as one may have more. */
  #settle(): void {
    for (const waiting of this.#waiting) {
      if (!mayTake(waiting.share, this.#free)) continue
      if (this.#taken === this.#most) return this.#evict()
      waiting.share.taken++
      this.#taken++
      this.#give(waiting, "place")
    }
  }

  /** Its place is given away when it is closed. */
  #evict(): void {
    const [longest] = this.#idle
    if (longest === undefined) return
    this.#idle.delete(longest)
    longest.leave()
    Effect.runFork(longest.close)
  }
}

/** The first place, as long as there is one; more, while as many are left. */
const mayTake = ({ taken }: Share, free: number): boolean => free > 0 && (taken === 0 || taken < free)
