import { Effect, type Fiber } from "effect"

/** How many items one batch has at most, and how long an item waits for others (ms). */
export interface BatchLimits {
  readonly maxCount: number
  readonly maxBytes: number
  readonly maxWaitMs: number
}

/**
 * Collects items until a batch is full or its first item has waited long enough. `send` gets each batch once. A batch has more bytes than its
 * limit only if a single item has.
 */
export class Batcher<Item extends { readonly bytes: number }> {
  readonly #limits: BatchLimits
  readonly #run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  readonly #send: (items: ReadonlyArray<Item>) => void
  #items: Array<Item> = []
  #bytes = 0
  #timer: Fiber.Fiber<void> | null = null

  constructor(
    limits: BatchLimits,
    run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>,
    send: (items: ReadonlyArray<Item>) => void
  ) {
    this.#limits = limits
    this.#run = run
    this.#send = send
  }

  add(item: Item): void {
    const { maxBytes, maxCount, maxWaitMs } = this.#limits
    if (this.#bytes + item.bytes > maxBytes) this.flush()
    this.#items.push(item)
    this.#bytes += item.bytes
    if (this.#items.length >= maxCount || this.#bytes >= maxBytes) return this.flush()
    this.#timer ??= this.#run(
      Effect.andThen(
        Effect.sleep(maxWaitMs),
        Effect.sync(() => this.flush())
      )
    )
  }

  /** Takes back an item that is in no batch yet. */
  remove(item: Item): void {
    const at = this.#items.indexOf(item)
    if (at === -1) return
    this.#items.splice(at, 1)
    this.#bytes -= item.bytes
    if (this.#items.length === 0) this.#stop()
  }

  /** Sends what waits. */
  flush(): void {
    this.#stop()
    const items = this.#items
    if (items.length === 0) return
    this.#items = []
    this.#bytes = 0
    this.#send(items)
  }

  #stop(): void {
    this.#timer?.interruptUnsafe()
    this.#timer = null
  }
}
