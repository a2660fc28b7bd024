/** Milliseconds between two checks of a process. */
export const lookEveryMs = 5_000
/** After so many checks without an answer (30 seconds), a process counts as frozen. Other processes have taken over its work after 4 seconds. */
const maxMissed = 6

/**
 * Whether a process still answers its supervisor. This counts checks and reads no clock: if the whole machine was suspended, only one check is
 * missed.
 */
export class SignsOfLife {
  readonly #ask: () => void
  #isAsked = false
  #missed = 0

  /** `ask` sends the question. Only one question is under way at a time, so none pile up in front of a process that does not read. */
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

  /** True after a question was not answered until the next check. Other processes should then get new connections. */
  get isSilent(): boolean {
    return this.#missed > 0
  }

  /** It has not answered for 30 seconds. */
  get isFrozen(): boolean {
    return this.#missed >= maxMissed
  }
}
