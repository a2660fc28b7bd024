import type { Pacer } from "@tidegate/coordination/limits/Pacer"
import { metrics } from "@tidegate/telemetry/Metrics"
import { Call, type CallGroup, type Calls } from "../../limits/Calls.ts"
import { ConnectionQueue } from "./ConnectionQueue.ts"
import type { DeliveryItem } from "./DeliveryItem.ts"
import type { DeliveryWindow } from "./DeliveryWindow.ts"
import type { Intake } from "./Intake.ts"
import type { Prefetcher } from "./Prefetcher.ts"
import type { QueueHost } from "./QueueHost.ts"
import type { QueueSettings } from "./QueueSettings.ts"
import type { StartLimits } from "./StartLimits.ts"

/** Deliveries started in one go. All destinations share the event loop, and a limit may be raised by a thousand at once. */
const maxStarts = 100

export interface StarterParts {
  readonly host: QueueHost
  readonly settings: QueueSettings
  readonly window: DeliveryWindow
  readonly intake: Intake
  readonly prefetcher: Prefetcher
  readonly calls: Calls
  readonly limits: StartLimits
  /** Something has changed after a wait: the queue looks again. */
  readonly tick: () => void
  /** A delivery has failed before it began, and reports nothing. */
  readonly lost: (item: DeliveryItem) => void
}

/** Chooses what starts next, and starts it. Connection queues and the groups of calls take turns. */
export class Starter {
  readonly #parts: StarterParts
  #turn = 0

  constructor(parts: StarterParts) {
    this.#parts = parts
  }

  /** Starts what may start now. Returns when to look again (Unix ms); Infinity: when something changes. */
  start(now: number): number {
    const { calls, limits, settings, window } = this.#parts
    let next = Number.POSITIVE_INFINITY
    let ready = 0
    const { awaySince, patience } = settings
    limits.endHold(now)
    // No event has waited for its full patience before the target was away for that long.
    const waitsUntil = awaySince === null ? now : awaySince + patience
    let open: Array<ConnectionQueue | CallGroup> = []
    for (const [id, queue] of window.queues) {
      if (queue.isUnused && settings.connections.get(id)?.order === undefined) {
        window.queues.delete(id)
        continue
      }
      if (!settings.isOpenFor(id)) continue
      queue.ripen(now - patience)
      if (queue.nextDue !== null) next = Math.min(next, Math.max(queue.nextDue + patience, waitsUntil))
      if (queue.readyCount > 0 && waitsUntil > now) next = Math.min(next, waitsUntil)
      else if (queue.readyCount > 0) {
        open.push(queue)
        ready += queue.readyCount
      }
    }
    for (const group of calls.groups) {
      open.push(group)
      ready += group.readyCount
    }
    for (let started = 0; ready > 0; started++) {
      if (started === maxStarts) return now
      const blockedUntil = limits.blockedUntil(now)
      if (blockedUntil > now) return Math.min(next, blockedUntil)
      if (limits.delaysCalls(calls)) {
        open = open.filter((one) => one instanceof ConnectionQueue)
        ready = open.reduce((sum, { readyCount }) => sum + readyCount, 0)
        if (ready === 0) break
      }
      if (!limits.takePermit()) break
      let item: DeliveryItem | Call | undefined
      try {
        item = this.#nextItem(open)
      } finally {
        if (item === undefined) limits.releasePermit()
      }
      if (item === undefined) break
      ready--
      if (item instanceof Call) this.#makeCall(item, now)
      else this.#prepare(item, now)
    }
    return next
  }

  /** The next item that may still be delivered. */
  #nextItem(open: Array<ConnectionQueue | CallGroup>): DeliveryItem | Call | undefined {
    const { host, settings, window } = this.#parts
    while (open.length > 0) {
      this.#turn = (this.#turn + 1) % open.length
      const queue = open[this.#turn]!
      const item = queue.shift()
      if (queue.readyCount === 0) open.splice(this.#turn, 1)
      if (item === undefined) continue
      if (item instanceof Call || !settings.isCancelled(item)) return item
      window.begin()
      window.drop(item)
      window.over(item, "over", host.now())
      host.cancel(item.connectionId)
    }
    return undefined
  }

  #makeCall(call: Call, now: number): void {
    const { host, limits } = this.#parts
    limits.begin(now)
    limits.callDeparts(call, now)
    call.start(now)
    limits.pacer?.start(host.now())
  }

  /** Starts an event. If it has to be recorded as work in hand, that comes first. */
  #prepare(item: DeliveryItem, now: number): void {
    const { host, limits, tick, window } = this.#parts
    const { pacer } = limits
    window.begin()
    if (pacer !== null) metrics.pacerSeconds.observe(Math.max(0, now - item.dueAt) / 1_000)
    limits.begin(now)
    if (!host.mustBeRecorded(item)) return this.#mark(item, now, pacer)
    host.takeInHand(item, (taken) => {
      if (taken && this.#mayStillStart(item, pacer)) this.#mark(item, host.now(), pacer)
      else this.#turnBack(item, pacer)
      tick()
    })
  }

  /** Delivers an event. With a rate limit its start is stored first. */
  #mark(item: DeliveryItem, now: number, pacer: Pacer | null): void {
    if (pacer === null) return this.#deliver(item, now)
    const { host, tick } = this.#parts
    host.mark(item, now, (marked) => {
      const startedAt = host.now()
      // Without the stored mark, the next owner would not know about this start, so the event waits until the database answers
      // again. A new rate that came meanwhile does not know about the start either.
      if (marked && this.#mayStillStart(item, pacer)) {
        this.#deliver(item, startedAt)
        // Counted from the real start: preparing the call may have taken longer than the margin between rate windows.
        pacer.start(host.now())
      } else this.#turnBack(item, pacer)
      tick()
    })
  }

  #deliver(item: DeliveryItem, startedAt: number): void {
    const { host, limits, lost } = this.#parts
    limits.departs(item.eventId, startedAt)
    try {
      host.deliver(item, startedAt)
    } catch (cause) {
      host.brokeDown(cause)
      host.letGo(item)
      lost(item)
    }
  }

  /** Whether an event may still start after a wait in which everything may have changed. */
  #mayStillStart(item: DeliveryItem, pacer: Pacer | null): boolean {
    const { host, intake, limits, settings } = this.#parts
    if (pacer !== limits.pacer) return false
    if (intake.isStopped || !host.mayDeliver() || !settings.isOpenFor(item.connectionId)) return false
    if (limits.heldUntil !== 0) return false
    if (!settings.isCancelled(item)) return true
    host.cancel(item.connectionId)
    return false
  }

  /** An event that was about to start does not: it is in SQL. */
  #turnBack(item: DeliveryItem, pacer: Pacer | null): void {
    const { host, limits, prefetcher, window } = this.#parts
    pacer?.release()
    host.letGo(item)
    limits.giveUp()
    window.drop(item)
    window.over(item, "unknown", host.now())
    prefetcher.want()
  }
}
