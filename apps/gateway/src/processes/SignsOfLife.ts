/** Milliseconds between two looks at a process. */
export const lookEveryMs = 5_000
/** A process that has not answered for so many looks, 30 seconds, is frozen. Others have taken over its work after 4 seconds. */
const mostMissed = 6

/**
 * Whether a process still answers its supervisor. Looks are counted, and no clock is read: when the whole machine has stood still, a single
 * look was missed.
 */
export class SignsOfLife {
  readonly #ask: () => void
  #isAsked = false
  #missed = 0

  /** `ask` sends the question. Only one is under way, so nothing piles up before a process that does not read. */
  constructor(ask: () => void) {
    this.#ask = ask
  }

  /** Call it every `lookEveryMs`. */
  look(): void {
    if (this.#isAsked) {
      this.#missed++
      return
    }
    this.#isAsked = true
    this.#ask()
  }

  /** The process has answered. */
  answered(): void {
    this.#isAsked = false
    this.#missed = 0
  }

  /** A question has gone unanswered for a whole look: others should get the work. */
  get isSilent(): boolean {
    return this.#missed > 0
  }

  /** It has not answered for 30 seconds. */
  get isFrozen(): boolean {
    return this.#missed >= mostMissed
  }
}
