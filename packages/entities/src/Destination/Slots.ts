/**
 * The deliveries one process has on the wire, and the memory its windows hold: ceilings shared by all destinations. A
 * destination that finds no slot is told when one is free, in turn; a window that finds no room leaves its events in SQL.
 */
export class Slots {
  readonly #most: number
  readonly #mostBytes: number
  readonly #queue = new Set<() => void>()
  #taken = 0
  #bytes = 0

  constructor(most: number, mostBytes: number) {
    this.#most = most
    this.#mostBytes = mostBytes
  }

  get taken(): number {
    return this.#taken
  }

  /** Takes a slot; when there is none, `retry` (one function per destination) is called once when one is free. */
  take(retry: () => void): boolean {
    if (this.#taken >= this.#most) {
      this.#queue.add(retry)
      return false
    }
    this.#taken++
    return true
  }

  release(): void {
    this.#taken--
    // First come, first served: a destination that tries again goes to the end.
    for (const retry of this.#queue) {
      if (this.#taken >= this.#most) return
      this.#queue.delete(retry)
      retry()
    }
  }

  /** Whether windows may grow by `bytes`. */
  hasRoom(bytes: number): boolean {
    return this.#bytes + bytes <= this.#mostBytes
  }

  hold(bytes: number): void {
    this.#bytes += bytes
  }

  letGo(bytes: number): void {
    this.#bytes -= bytes
  }
}
