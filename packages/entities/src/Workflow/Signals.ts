import { Effect } from "effect"
import type { Occurrence } from "@tidegate/workflows/RunState"

/** An occurrence for a run in hand: a call that it began has ended, or something has happened outside. */
export interface Signal {
  readonly occurrence: Occurrence
  readonly endsEffect: boolean
  /** Called once it is handled, with whether it has changed the run, and that is stored. */
  readonly taken?: (isStored: boolean) => void
}

/**
 * The occurrences for one run in hand, in their order. Every run has one, and most runs never use it, so it is a list and not a
 * queue of fibers. Only the run's own fiber takes.
 */
export class Signals {
  readonly #waiting: Array<Signal> = []
  #taker: ((signal: Signal) => void) | null = null

  /** How many wait to be taken. */
  get size(): number {
    return this.#waiting.length
  }

  /** A fiber that waits for it goes on at once. */
  offer(signal: Signal): void {
    const taker = this.#taker
    this.#taker = null
    if (taker === null) this.#waiting.push(signal)
    else taker(signal)
  }

  /** Takes the first one, or waits for it. */
  readonly take: Effect.Effect<Signal> = Effect.suspend(() => {
    const first = this.#waiting.shift()
    if (first !== undefined) return Effect.succeed(first)
    return Effect.callback<Signal>((resume) => {
      this.#taker = (signal) => resume(Effect.succeed(signal))
      return Effect.sync(() => {
        this.#taker = null
      })
    })
  })
}
