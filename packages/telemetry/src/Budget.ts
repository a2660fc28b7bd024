/** A limit per second; what exceeds it is skipped. */
export class Budget {
  readonly #perSecond: number
  #second = -1
  #left = 0

  constructor(perSecond: number) {
    this.#perSecond = perSecond
  }

  /** Takes one from the budget of the second of `nowMs`. Returns whether there was one. */
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
