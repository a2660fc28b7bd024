/** A delivery that takes this long (ms) is recorded as under way. Quicker ones end before anyone could read the record. */
const slowMs = 1_000

/**
 * When the deliveries of a destination have started that are not recorded yet. A new rate limiter has to count them, and those
 * that take long are recorded as under way.
 */
export class StartedDeliveries {
  /** By event. */
  readonly #startedAt = new Map<string, number>()
  /** Those of them that were recorded as under way. */
  readonly #recorded = new Map<string, number>()
  /** Starts since the last reload began; null: there is no reload. */
  #meanwhile: Array<number> | null = null

  started(eventId: string, at: number): void {
    this.#startedAt.set(eventId, at)
    this.#meanwhile?.push(at)
  }

  /** A call of a step has started. */
  stepStarted(at: number): void {
    this.#meanwhile?.push(at)
  }

  /** The delivery is recorded, or is not made. */
  delete(eventId: string): void {
    this.#startedAt.delete(eventId)
  }

  /** A reload begins. `underWay`: deliveries under way count as started meanwhile, because nothing else counts them. */
  collect(underWay: boolean): void {
    this.#meanwhile = underWay ? [...this.#startedAt.values()] : []
  }

  stopCollecting(): void {
    this.#meanwhile = null
  }

  /** Starts during the reload, oldest first. */
  get meanwhile(): ReadonlyArray<number> {
    return (this.#meanwhile ?? []).toSorted((a, b) => a - b)
  }

  /** The deliveries that take long and were not returned before, with their starts. */
  takeSlow(now: number): ReadonlyArray<readonly [eventId: string, at: number]> {
    for (const [id, at] of this.#recorded) if (this.#startedAt.get(id) !== at) this.#recorded.delete(id)
    const until = now - slowMs
    const slow = [...this.#startedAt].filter(([id, at]) => at <= until && this.#recorded.get(id) !== at)
    for (const [id, at] of slow) this.#recorded.set(id, at)
    return slow
  }
}
