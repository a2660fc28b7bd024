/** What is shared, and how much of it is taken. */
interface Shared {
  readonly most: number
  readonly maxBytes: number
  taken: number
  bytes: number
  /** Those that found no slot, in the order in which they looked. */
  readonly waiting: Set<Share>
}

/**
 * The deliveries one process has on the wire, and the memory its windows hold: ceilings shared by all destinations.
 *
 * One destination may have as many as are left over after it, in slots and in bytes: alone it gets half, `n` that want more get one part
 * in `n + 1` each. So one part is always left for whoever comes, and slow targets, which hold what they have for long, cannot take
 * the slots of quick ones.
 */
export class Slots {
  readonly #shared: Shared

  constructor(most: number, maxBytes: number) {
    this.#shared = { most, maxBytes, taken: 0, bytes: 0, waiting: new Set() }
  }

  get taken(): number {
    return this.#shared.taken
  }

  /** The share of one destination. When it found no slot, `retry` is called once when it may have one. */
  share(retry: () => void): Share {
    return new Share(this.#shared, retry)
  }
}

export class Share {
  readonly #shared: Shared
  readonly #retry: () => void
  #taken = 0
  #bytes = 0

  constructor(shared: Shared, retry: () => void) {
    this.#shared = shared
    this.#retry = retry
  }

  /** Takes a slot. */
  take(): boolean {
    const shared = this.#shared
    if (!this.#mayTake()) {
      shared.waiting.add(this)
      return false
    }
    this.#taken++
    shared.taken++
    return true
  }

  /** Waits for a slot no longer. */
  withdraw(): void {
    this.#shared.waiting.delete(this)
  }

  release(): void {
    const shared = this.#shared
    const before = shared.taken
    this.#taken--
    shared.taken--
    // First come, first served: a destination that tries again goes to the end. Whoever waits could take none of those that were left.
    for (const share of shared.waiting) {
      if (shared.taken >= before) return
      if (!share.#mayTake()) continue
      shared.waiting.delete(share)
      share.#retry()
    }
  }

  /** The first slot, as long as there is one; more, while as many are left. */
  #mayTake(): boolean {
    const free = this.#shared.most - this.#shared.taken
    return free > 0 && (this.#taken === 0 || this.#taken < free)
  }

  /** Whether it holds nothing. */
  get isEmpty(): boolean {
    return this.#bytes === 0
  }

  /** Whether it has no slot either: nothing tells it from a new one. */
  get isIdle(): boolean {
    return this.#bytes === 0 && this.#taken === 0
  }

  /** Whether the window may grow by `bytes`. */
  hasRoom(bytes: number): boolean {
    return this.#bytes + bytes <= this.#shared.maxBytes - this.#shared.bytes
  }

  hold(bytes: number): void {
    this.#bytes += bytes
    this.#shared.bytes += bytes
  }

  letGo(bytes: number): void {
    this.#bytes -= bytes
    this.#shared.bytes -= bytes
  }
}
