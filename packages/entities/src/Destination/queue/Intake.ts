import type { ConnectionQueue } from "./ConnectionQueue.ts"
import { type DeliveryItem, horizonMs } from "./DeliveryItem.ts"
import type { DeliveryWindow } from "./DeliveryWindow.ts"
import type { KeysRead, QueueHost } from "./QueueHost.ts"
import type { QueueSettings } from "./QueueSettings.ts"

/** Decides which events enter memory. All others stay in SQL. */
export class Intake {
  readonly #host: QueueHost
  readonly #settings: QueueSettings
  readonly #window: DeliveryWindow
  #isStopped = false

  constructor(host: QueueHost, settings: QueueSettings, window: DeliveryWindow) {
    this.#host = host
    this.#settings = settings
    this.#window = window
  }

  get isStopped(): boolean {
    return this.#isStopped
  }

  /** Takes no more events; those that wait leave memory. */
  stop(): void {
    this.#isStopped = true
    for (const queue of this.#window.queues.values()) this.#window.evict(queue)
    this.#window.forgetNoted(null)
  }

  /** Takes events that were just committed. */
  offer(items: ReadonlyArray<DeliveryItem>, now: number): void {
    for (const item of items) {
      const queue = this.#window.queueOf(item.connectionId)
      if (item.orderingKey !== null) this.#wantKey(queue, item, now)
      else if (queue.behind || !this.insert(queue, item, now)) this.#window.turnAway(queue)
    }
  }

  /**
   * The turn of an event with an ordering key is read from SQL with the others of its key: a notification does not say which ones come
   * before it.
   */
  #wantKey({ connectionId, keys }: ConnectionQueue, item: DeliveryItem, now: number): void {
    if (!this.#settings.connections.has(connectionId)) this.#host.unknown(connectionId)
    if (item.dueAt > now + horizonMs || !this.#settings.isOpenFor(connectionId)) return
    keys.want(item.orderingKey!)
    if (!this.#isStopped && item.attempts === 0 && !keys.isBlocked(item.orderingKey!)) this.#window.note(item)
  }

  /** Adds an event to its connection queue. False: it stays in SQL. */
  insert(queue: ConnectionQueue, item: DeliveryItem, now: number): boolean {
    if (this.#window.has(item)) return true
    if (!this.#settings.connections.has(item.connectionId)) this.#host.unknown(item.connectionId)
    if (this.#isStopped || !this.#settings.isOpenFor(queue.connectionId)) return false
    return (
      item.dueAt > now + horizonMs ||
      (item.isBodiless !== true && this.#window.add(queue, item, now - this.#settings.patience))
    )
  }

  /** Adds an event that was read from SQL; returns whether it fits. */
  insertRead(item: DeliveryItem, now: number): boolean {
    const queue = this.#window.queueOf(item.connectionId)
    if (this.#settings.stateOf(item.connectionId) === "cancelled") this.#host.cancel(item.connectionId)
    else if (!this.insert(queue, item, now)) {
      queue.behind = true
      return false
    }
    return true
  }

  /**
   * Adds events that were read by ordering key; returns whether the first ones fit. Those that do not fit are noted, so that the next read need
   * not read their content again.
   */
  insertByKey({ connectionId, keys, scannedTo }: KeysRead, now: number): boolean {
    const queue = this.#window.queueOf(connectionId)
    if (scannedTo !== undefined) queue.keys.scannedTo(scannedTo)
    let fits = true
    for (const { items, key, more } of keys) {
      // The key has come into memory in another way since: the next read of it continues after the events that are there.
      const isNew = !queue.keys.has(key)
      let taken = 0
      if (isNew) {
        for (const item of items) {
          if (this.#settings.stateOf(connectionId) === "cancelled") this.#host.cancel(connectionId)
          else if (!this.insert(queue, item, now)) {
            fits &&= taken > 0 || !this.#settings.isOpenFor(connectionId)
            break
          }
          taken++
        }
      }
      if (!this.#isStopped && this.#settings.isOpenFor(connectionId) && !queue.keys.isBlocked(key)) {
        for (const item of items.slice(taken)) this.#window.note(item)
      }
      if (more || taken < items.length) queue.keys.want(key)
    }
    return fits
  }

  /** A failed attempt is repeated when it is due. `isKept`: its ordering key waits for it. */
  retry(item: DeliveryItem, isKept: boolean): void {
    const queue = this.#window.queueOf(item.connectionId)
    const retried = isKept ? item : { ...item, place: null }
    if (!this.insert(queue, retried, this.#host.now())) this.#window.turnAway(queue)
    if (isKept) queue.keys.leave(item.orderingKey!)
  }
}
