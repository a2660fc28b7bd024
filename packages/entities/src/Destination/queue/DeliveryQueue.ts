import { type Call, Calls } from "../../limits/Calls.ts"
import type { Ending } from "../../limits/ConcurrencyLimit.ts"
import { type DeliveryItem, withoutBody } from "./DeliveryItem.ts"
import { DeliveryWindow, type WindowMemory } from "./DeliveryWindow.ts"
import { Intake } from "./Intake.ts"
import { Prefetcher } from "./Prefetcher.ts"
import type { Prefetched } from "./PrefetchRead.ts"
import type { AttemptResult, QueueHost, QueueReads } from "./QueueHost.ts"
import { type QueueConfiguration, QueueSettings } from "./QueueSettings.ts"
import { Starter } from "./Starter.ts"
import { leaseRetryMs, StartLimits } from "./StartLimits.ts"

/** After an unexpected error the queue tries again after this time (ms): it may fail again. */
const brokenPauseMs = 1_000

/**
 * The delivery queue of one destination: a bounded window over its rows in SQL (DeliveryWindow.ts), with one queue per
 * connection. It is synchronous and has no I/O: it decides which event starts when, and the host carries that out.
 *
 *     offer ──► Intake ──► connection queue (waiting ─► ready) ──► Starter [StartLimits] ──► deliver ──► ended ──► recorded
 *     SQL ──► Prefetcher ──▲                                                                                        │
 *                          └──────────────────────────────────── retry ─────────────────────────────────────────────┘
 *
 * Connection queues take turns, so connections share a destination fairly. The calls of workflows (Calls.ts) take turns with them
 * and go the same way, but they are not recorded here. Everything in the queue can be lost at any time.
 */
export class DeliveryQueue {
  readonly #host: QueueHost
  readonly #settings = new QueueSettings()
  readonly #window: DeliveryWindow
  readonly #calls: Calls
  readonly #intake: Intake
  readonly #prefetcher: Prefetcher
  readonly #limits: StartLimits
  readonly #starter: Starter
  #drained: (() => void) | null = null
  #ticking = false
  #again = false
  #nextAt: number | null = null

  constructor(host: QueueHost) {
    const tick = (): void => this.tick()
    const bytes = host.windowBytes.share()
    const window = new DeliveryWindow(bytes)
    const calls = new Calls(bytes)
    const limits = new StartLimits(host, tick)
    const intake = new Intake(host, this.#settings, window)
    const prefetcher = new Prefetcher(host, this.#settings, window, intake)
    const lost = (item: DeliveryItem): void => this.lost(item)
    const settings = this.#settings
    this.#host = host
    this.#window = window
    this.#calls = calls
    this.#limits = limits
    this.#intake = intake
    this.#prefetcher = prefetcher
    this.#starter = new Starter({ host, settings, window, intake, prefetcher, calls, limits, tick, lost })
  }

  /** When `tick` has to be called next (Unix ms); Infinity: when something ends; null: idle. */
  get nextAt(): number | null {
    return this.#nextAt
  }

  /** Deliveries under way, and how many there may be. */
  get onWire(): number {
    return this.#limits.onWire
  }

  get limit(): number {
    return this.#limits.limit
  }

  /** Until when nothing starts, because the target accepts nothing (Unix ms); 0: it accepts deliveries. */
  get heldUntil(): number {
    return this.#limits.heldUntil
  }

  /** Starts nothing before this time (Unix ms); 0: removes an earlier pause. */
  hold(until: number): void {
    this.#limits.heldUntil = until
    this.tick()
  }

  /** Deliveries that are under way or not yet recorded. */
  get underWay(): number {
    return this.#limits.underWay
  }

  /** Applies the settings of the destination and its connections. Events that may no longer wait leave memory. */
  configure(configuration: QueueConfiguration): void {
    this.#settings.apply(configuration)
    this.#limits.configure(configuration)
    this.#review()
    this.wake()
  }

  /** Consumers have come, or all of them are gone. */
  consumersChanged(): void {
    this.#review()
    this.tick()
  }

  /** Events that may no longer wait leave memory, and those that may again are read. */
  #review(): void {
    for (const queue of this.#window.queues.values()) {
      if (this.#settings.isOpenFor(queue.connectionId)) queue.behind = true
      else this.#window.evict(queue)
    }
  }

  /** Takes events that were just committed. Those that do not fit stay in SQL. */
  offer(items: ReadonlyArray<DeliveryItem>, more: boolean): void {
    const now = this.#host.now()
    this.#intake.offer(items, now)
    if (more) this.#prefetcher.wantAll(now)
    this.tick()
  }

  /** Adds a call to the queue. False: the queue is full, or the destination sends nothing now. */
  call(call: Call): boolean {
    if (this.#intake.isStopped || !this.#settings.isOpen || !this.#calls.add(call)) return false
    this.tick()
    return true
  }

  /** The caller no longer waits for it; returns whether the call was still in the queue. */
  withdraw(call: Call): boolean {
    const waited = this.#calls.remove(call)
    if (waited) this.tick()
    return waited
  }

  /** A call has ended. */
  called(call: Call, how: Ending): void {
    this.#limits.callArrived(call, how)
    this.tick()
  }

  /** Something may be due that is not in memory. */
  wake(): void {
    this.#prefetcher.wantAll(this.#host.now())
    this.tick()
  }

  /** Rows were removed from SQL whose events may wait in memory: all waiting events leave memory, and SQL is read again. */
  reread(): void {
    this.#prefetcher.startOver()
    this.tick()
  }

  /** What the requested prefetch shall read; from here on it counts as read. */
  takeReads(): QueueReads {
    return this.#prefetcher.takeReads()
  }

  /** The result of `prefetch`. */
  prefetched(read: Prefetched): void {
    this.#prefetcher.finished(read)
    this.tick()
  }

  /** SQL could not be read: the next tick after `leaseRetryMs` tries again. */
  prefetchFailed(): void {
    this.#prefetcher.failed()
    this.#nextAt = this.#host.now() + leaseRetryMs
    this.#host.changed()
  }

  /** For a prefetch. */
  get memory(): WindowMemory {
    return this.#window
  }

  /** A consumer has it. Returns the event as it goes on: it takes no permit and little memory until it is settled. */
  handedOut(item: DeliveryItem): DeliveryItem {
    const light = withoutBody(item)
    this.#window.lighten(item, light)
    this.#limits.handedOut(item.eventId)
    this.tick()
    return light
  }

  /** The exchange with the target has ended. */
  ended({ eventId }: DeliveryItem, how: Ending): void {
    this.#limits.awaitsRecord()
    this.#limits.arrived(eventId, how)
    this.tick()
  }

  /** The exchange never began. */
  abandoned(item: DeliveryItem): void {
    this.#leaves(item)
    this.#prefetcher.want()
    this.tick()
  }

  /**
   * The client that had it is gone: the event is the first again. Nothing starts meanwhile, because the target is unavailable.
   */
  returned(item: DeliveryItem): void {
    // Only SQL knows which event of an ordering key is first.
    if (item.orderingKey !== null || this.#intake.isStopped || !this.#settings.isOpenFor(item.connectionId)) {
      return this.abandoned(item)
    }
    this.#limits.arrived(item.eventId, "unsent")
    this.#window.putBack(item)
    this.tick()
  }

  /** The attempt failed unexpectedly and could not be recorded: the event is still in SQL, and is read after a pause. */
  lost(item: DeliveryItem): void {
    this.#leaves(item)
    this.#window.turnAway(this.#window.queueOf(item.connectionId))
    this.#prefetcher.pauseUntil(this.#host.now() + brokenPauseMs)
    this.tick()
  }

  /** An event that was under way leaves memory. SQL knows what has become of it. */
  #leaves(item: DeliveryItem): void {
    this.#limits.arrived(item.eventId, "unsent")
    this.#window.drop(item)
    this.#window.over(item, "unknown", this.#host.now())
  }

  /** The attempt is committed. */
  recorded(item: DeliveryItem, result: AttemptResult): void {
    this.#limits.recorded()
    this.#window.drop(item)
    // Superseded: only a row with a later attempt is delivered again, never this attempt a second time.
    this.#window.remember(item.eventId, result.kind === "finished" ? Number.POSITIVE_INFINITY : item.attempts + 1)
    if (result.kind === "superseded") this.#prefetcher.want()
    const isKept =
      result.kind === "retry" &&
      item.place !== null &&
      this.#settings.connections.get(item.connectionId)?.order !== "skip"
    this.#window.over(item, result.kind === "superseded" ? "unknown" : isKept ? "kept" : "over", this.#host.now())
    if (result.kind === "retry") this.#intake.retry(result.item, isKept)
    this.tick()
  }

  /** Starts nothing more. `drained` is called once nothing is under way any more. */
  stop(drained: () => void = () => {}): void {
    this.#drained = drained
    this.#intake.stop()
    this.tick()
  }

  /**
   * Starts what may start now, and computes when to look again. Never throws: it is called by code that reports another delivery
   * or frees a permit, and that code must not fail for this one.
   */
  tick(): void {
    this.#again = true
    if (this.#ticking) return
    this.#ticking = true
    let next: number | null = null
    try {
      while (this.#again) {
        this.#again = false
        next = this.#intake.isStopped ? null : this.#look(this.#host.now())
      }
    } catch (cause) {
      this.#host.brokeDown(cause)
      next = this.#host.now() + brokenPauseMs
    }
    this.#ticking = false
    const before = this.#nextAt
    this.#nextAt = next
    if (next !== before && (next === null || before === null || next < before)) this.#host.changed()
    if (this.underWay > 0) return
    this.#drained?.()
    this.#drained = null
  }

  /** Starts and prefetches what it may. Returns when to look again, as `nextAt`. */
  #look(now: number): number | null {
    const startsAt = this.#starter.start(now)
    const isTargetReady = this.#settings.awaySince === null && this.#limits.heldUntil === 0
    const next = Math.min(startsAt, this.#prefetcher.next(now, isTargetReady))
    const isIdle =
      next === Number.POSITIVE_INFINITY && this.#window.isEmpty && this.#calls.isEmpty && !this.#prefetcher.isBusy
    // What was noted has been read, or it is over.
    if (isIdle) this.#window.forgetNoted(null)
    return isIdle ? null : next
  }
}
