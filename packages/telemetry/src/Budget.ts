/** So many of something a second: what comes on top has to go without. */
export class Budget {
  readonly #perSecond: number
  #second = -1
  #left = 0

  constructor(perSecond: number) {
    this.#perSecond = perSecond
  }

  /** Whether there is one left in the second of `nowMs`. */
  take(nowMs: number): boolean {
    const second = Math.floor(nowMs / 1_000)
    if (second !== this.#second) {
      this.#second = second
      this.#left = this.#perSecond
    }
    if (this.#left <= 0) return false
    this.#left--
    return true
  }
}
