/** The shared limits, and how much of them is taken. */
interface Shared {
  readonly most: number
  readonly maxBytes: number
  taken: number
  bytes: number
  /** Destinations that got no permit, in the order of their tries. */
  readonly waiting: Set<Share>
}

/**
 * A fair semaphore for all destinations of a process: it limits the deliveries under way, and the memory of the windows.
 *
 * One destination may take as many permits, and bytes, as are left over after it. Alone it gets half; `n` destinations that want
 * more get one part in `n + 1` each. So one part is always left for a new one, and slow targets, which hold permits for long,
 * cannot take those of quick ones.
 */
export class Slots {
  readonly #shared: Shared

  constructor(most: number, maxBytes: number) {
    this.#shared = { most, maxBytes, taken: 0, bytes: 0, waiting: new Set() }
  }

  get taken(): number {
    return this.#shared.taken
  }

  /** The part of one destination. When it got no permit, `retry` is called once when it may get one. */
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

  /** Takes a permit. */
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

  /** No longer waits for a permit. */
  withdraw(): void {
    this.#shared.waiting.delete(this)
  }

  release(): void {
    const shared = this.#shared
    const before = shared.taken
    this.#taken--
    shared.taken--
    // First come, first served: a destination that tries again goes to the end. The permits that were free before do not help
    // those that wait.
    for (const share of shared.waiting) {
      if (shared.taken >= before) return
      if (!share.#mayTake()) continue
      shared.waiting.delete(share)
      share.#retry()
    }
  }

  /** A destination's first permit is given while one is free; further ones while at least as many are free. */
  #mayTake(): boolean {
    const free = this.#shared.most - this.#shared.taken
    return free > 0 && (this.#taken === 0 || this.#taken < free)
  }

  /** Whether it holds no memory. */
  get isEmpty(): boolean {
    return this.#bytes === 0
  }

  /** Whether it has no permit either: then it can be replaced by a new one. */
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
