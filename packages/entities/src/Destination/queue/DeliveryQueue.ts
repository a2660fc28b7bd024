import type { Pacer } from "@tidegate/coordination/limits/Pacer"
import type { KeyPermits } from "@tidegate/runtime/FairSemaphore"
import { metrics } from "@tidegate/telemetry/Metrics"
import { Call, type CallLine, Calls } from "../../limits/Calls.ts"
import { ConcurrencyLimit, type Departure, type Ending } from "../../limits/ConcurrencyLimit.ts"
import type { DeliveryItem } from "./DeliveryItem.ts"
import { DeliveryWindow } from "./DeliveryWindow.ts"
import { ConnectionQueue } from "./ConnectionQueue.ts"
import type { LineReads } from "./OrderingKeys.ts"
import type { Turns } from "../../limits/RatePermits.ts"
import type {
  AttemptResult,
  ConnectionQueueRules,
  ConnectionQueueState,
  LinesRead,
  TargetAvailability,
  QueueHost,
  QueueReads
} from "./QueueHost.ts"

/** The smallest number of ordering keys to read at once. */
const minLines = 64
/** Attempts of one destination that have ended but are not recorded yet. */
const maxUnrecorded = 1_000
/** Deliveries started in one go. All destinations share the event loop, and a limit may be raised by a thousand at once. */
const maxStarts = 100
/** How early a retry may wait in memory (ms). The poller finds later ones. */
export const horizonMs = 30_000
/** Without a lease, the queue tries again after this time (ms). */
const leaseRetryMs = 100
/** The pause after a refill whose rows did not fit (ms). */
const refillPauseMs = 50
/**
 * The pause between two scans of all ordering keys of a connection (ms). A scan finds events whose notification was lost, and
 * retries that come due.
 */
const roundPauseMs = 2_000
/** After an unexpected error the queue tries again after this time (ms): it may fail again. */
const brokenPauseMs = 1_000

/**
 * The delivery queue of one destination: a bounded window over its rows in SQL (DeliveryWindow.ts), with one queue per
 * connection. It is synchronous and has no I/O: it decides which event starts when, and the host carries that out.
 *
 *     offer/refilled ─► connection queue (waiting ─► ready) ─► [rate, concurrency limit, permits, lease] ─► deliver ─► ended ─►
 *     recorded
 *
 * Connection queues take turns, so connections share a destination fairly. The calls of workflows (Calls.ts) take turns with them
 * and go the same way, but they are not recorded here. Everything in the queue can be lost at any time.
 */
export class DeliveryQueue {
  readonly #host: QueueHost
  readonly #permits: KeyPermits
  readonly #window: DeliveryWindow
  readonly #calls: Calls
  /** The deliveries under way, by event. */
  readonly #departures = new Map<string, Departure>()
  #rules: ReadonlyMap<string, ConnectionQueueRules> = new Map()
  #destinationState: ConnectionQueueState = "open"
  #destinationCancelBefore = 0
  #pacer: Pacer | null = null
  #turns: Turns | null = null
  #targetAvailability: TargetAvailability | null = null
  #turn = 0
  #onWire = 0
  #unrecorded = 0
  #maxConcurrency: number | null = null
  #limit = new ConcurrencyLimit(null)
  #refilling = false
  #refillAt = 0
  #look = false
  /** What the current refill reads: whether it reads due rows (or ordering keys only), and which ordering keys. */
  #readsDue = false
  /** Whether it continues the scans of all ordering keys. */
  #mayLook = false
  #lineReads: ReadonlyMap<string, LineReads> = new Map()
  #linesAt = 0
  /** The result of the current refill may be older than the removal of some rows. */
  #stale = false
  #cancelAt = 0
  /** Nothing starts before this time (Unix ms); 0: the target has not asked for a pause. */
  #heldUntil = 0
  #stopped = false
  #drained: (() => void) | null = null
  #ticking = false
  #nextAt: number | null = null
  #again = false

  constructor(host: QueueHost) {
    this.#host = host
    this.#permits = host.permits.key(() => this.tick())
    const bytes = host.windowBytes.share()
    this.#window = new DeliveryWindow(bytes)
    this.#calls = new Calls(bytes)
  }

  /** When `tick` has to be called next (Unix ms); Infinity: when something ends; null: idle. */
  get nextAt(): number | null {
    return this.#nextAt
  }

  /** Deliveries under way, and how many there may be. */
  get onWire(): number {
    return this.#onWire
  }

  get limit(): number {
    return this.#limit.value
  }

  /** Until when nothing starts, because the target accepts nothing (Unix ms); 0: it accepts deliveries. */
  get heldUntil(): number {
    return this.#heldUntil
  }

  /** Starts nothing before this time (Unix ms); 0: removes an earlier pause. */
  hold(until: number): void {
    this.#heldUntil = until
    this.tick()
  }

  /** Deliveries that are under way or not yet recorded. */
  get underWay(): number {
    return this.#onWire + this.#unrecorded
  }

  /** Applies the settings of the destination and its connections. Events that may no longer wait leave memory. */
  configure(options: {
    readonly state: ConnectionQueueState
    readonly cancelBefore: number
    readonly lanes: ReadonlyMap<string, ConnectionQueueRules>
    readonly pacer: Pacer | null
    /** The rate permits for calls of workflow steps, which have no events that would show their starts. */
    readonly turns?: Turns | null
    /** The largest number of concurrent deliveries; null: found out by the concurrency limit. */
    readonly maxConcurrency: number | null
    /** For a target that may be unavailable. */
    readonly targetAvailability?: TargetAvailability | null
  }): void {
    this.#destinationState = options.state
    this.#destinationCancelBefore = options.cancelBefore
    this.#rules = options.lanes
    this.#pacer = options.pacer
    this.#turns = options.turns ?? null
    this.#targetAvailability = options.targetAvailability ?? null
    if (options.maxConcurrency !== this.#maxConcurrency) {
      this.#maxConcurrency = options.maxConcurrency
      this.#limit = new ConcurrencyLimit(options.maxConcurrency)
    }
    for (const lane of this.#window.lanes.values()) {
      if (this.#stateOf(lane.connectionId) === "open") lane.behind = true
      else this.#window.evict(lane)
    }
    this.wake()
  }

  /** Takes events that were just committed. Those that do not fit stay in SQL. */
  offer(items: ReadonlyArray<DeliveryItem>, more: boolean): void {
    const now = this.#host.now()
    for (const item of items) {
      const lane = this.#window.lane(item.connectionId)
      if (item.orderingKey !== null) this.#hint(lane, item, now)
      else if (lane.behind || !this.#insert(lane, item, now)) this.#window.turnAway(lane)
    }
    if (more) this.#lookAround(now)
    this.tick()
  }

  /** Adds a call to the queue. False: the queue is full, or the destination sends nothing now. */
  call(call: Call): boolean {
    if (this.#stopped || this.#destinationState !== "open" || !this.#calls.add(call)) return false
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
    this.#onWire--
    if (call.departure !== null) this.#limit.ended(how, call.departure, this.#host.now())
    this.#permits.release()
    this.tick()
  }

  /**
   * An event with an ordering key is read from SQL with the others of its key: a notification does not say which ones come before
   * it.
   */
  #hint(lane: ConnectionQueue, item: DeliveryItem, now: number): void {
    if (!this.#rules.has(item.connectionId)) this.#host.unknown(item.connectionId)
    if (item.dueAt <= now + horizonMs && this.#stateOf(lane.connectionId) === "open") lane.lines.want(item.orderingKey!)
  }

  /** Something may be due that is not in memory. */
  wake(): void {
    this.#lookAround(this.#host.now())
    this.tick()
  }

  /** Rows were removed from SQL whose events may wait in memory: all waiting events leave memory, and SQL is read again. */
  reread(): void {
    this.#stale = this.#refilling
    for (const lane of this.#window.lanes.values()) {
      this.#window.evict(lane)
      this.#window.turnAway(lane)
    }
    this.wake()
  }

  #lookAround(now: number): void {
    this.#look = true
    const mayCancel = now >= this.#cancelAt
    for (const [connectionId, { order }] of this.#rules) {
      if (order === undefined) continue
      const state = this.#stateOf(connectionId)
      if (state === "open") this.#window.lane(connectionId).lines.lookThrough(now, roundPauseMs)
      // Nothing else would find the events that remain in it: a cancelled connection's rows are not read.
      else if (state === "cancelled" && mayCancel) this.#host.cancel(connectionId)
    }
    if (mayCancel) this.#cancelAt = now + roundPauseMs
  }

  /** What the requested refill shall read; from here on it counts as read. */
  takeReads(): QueueReads {
    const mayLook = this.#mayLook
    const lanes = [...this.#window.lanes.values()].filter(
      ({ connectionId, lines }) =>
        (lines.isWanting || (mayLook && lines.isLooking)) && this.#stateOf(connectionId) === "open"
    )
    const most = Math.ceil(Math.max(minLines, this.room) / lanes.length)
    this.#lineReads = new Map(lanes.map((lane) => [lane.connectionId, lane.lines.takeReads(most, mayLook)]))
    return { due: this.#readsDue, lines: this.#lineReads }
  }

  /**
   * The result of `refill`: the items read, the connections that have more due rows than were read, and the events read by
   * ordering key.
   */
  refilled(
    items: ReadonlyArray<DeliveryItem>,
    behind: ReadonlySet<string>,
    lines: ReadonlyArray<LinesRead> = []
  ): void {
    this.#refilling = false
    if (this.#stale) {
      this.#stale = false
      for (const connectionId of this.#lineReads.keys()) this.#window.lane(connectionId).lines.forgetWanted()
      return this.wake()
    }
    const now = this.#host.now()
    const before = this.#window.waiting
    let refused = false
    if (this.#readsDue) for (const lane of this.#window.lanes.values()) lane.behind = lane.missed
    for (const item of items) {
      const lane = this.#window.lane(item.connectionId)
      if (this.#stateOf(item.connectionId) === "cancelled") this.#host.cancel(item.connectionId)
      else if (!this.#insert(lane, item, now)) {
        lane.behind = true
        refused = true
      }
    }
    for (const connectionId of behind) this.#window.lane(connectionId).behind = true
    for (const read of lines) if (!this.#takeLines(read, now)) refused = true
    let looked = this.#readsDue
    for (const { after } of this.#lineReads.values()) looked ||= after !== null
    if (refused || (looked && this.#window.waiting <= before)) this.#refillAt = now + refillPauseMs
    if (refused) this.#linesAt = now + refillPauseMs
    this.tick()
  }

  /** Takes events that were read by ordering key; returns whether all of them fit. */
  #takeLines({ connectionId, lines, lookedTo }: LinesRead, now: number): boolean {
    const lane = this.#window.lane(connectionId)
    if (lookedTo !== undefined) lane.lines.lookedTo(lookedTo)
    let fits = true
    for (const { items, key, more } of lines) {
      // The key has come into memory in another way since: the next read of it continues after the events that are there.
      const isNew = !lane.lines.has(key)
      let taken = 0
      if (isNew) {
        for (const item of items) {
          if (this.#stateOf(connectionId) === "cancelled") this.#host.cancel(connectionId)
          else if (!this.#insert(lane, item, now)) {
            fits &&= this.#stateOf(connectionId) !== "open"
            break
          }
          taken++
        }
      }
      if (more || taken < items.length) lane.lines.want(key)
    }
    return fits
  }

  /** SQL could not be read: the next tick after `leaseRetryMs` tries again. */
  refillFailed(): void {
    this.#refilling = false
    this.#look = true
    for (const connectionId of this.#lineReads.keys()) this.#window.lane(connectionId).lines.forgetWanted()
    this.#nextAt = this.#host.now() + leaseRetryMs
    this.#host.changed()
  }

  /** Whether an event is in memory: waiting, under way, or being recorded. */
  isKnown(eventId: string): boolean {
    return this.#window.isKnown(eventId)
  }

  /** How many events of each connection are in memory. */
  knownByConnection(): ReadonlyMap<string, number> {
    return this.#window.knownByConnection()
  }

  /** How many events a refill may add. */
  get room(): number {
    return this.#window.room
  }

  /** The exchange with the target has ended. */
  ended(item: DeliveryItem, how: Ending): void {
    this.#unrecorded++
    this.#arrived(item, how)
    this.tick()
  }

  /** The exchange never began. */
  abandoned(item: DeliveryItem): void {
    this.#arrived(item, "unsent")
    this.#window.drop(item)
    this.#window.over(item, "unknown", this.#host.now())
    this.#look = true
    this.tick()
  }

  /**
   * The client that had it is gone: the event is the first again. Nothing starts meanwhile, because the target is unavailable.
   */
  returned(item: DeliveryItem): void {
    // Only SQL knows which event of an ordering key is first.
    if (item.orderingKey !== null || this.#stopped || this.#stateOf(item.connectionId) !== "open") {
      return this.abandoned(item)
    }
    this.#arrived(item, "unsent")
    this.#window.putBack(item)
    this.tick()
  }

  /** The attempt failed unexpectedly and could not be recorded: the event is still in SQL, and is read after a pause. */
  lost(item: DeliveryItem): void {
    this.#arrived(item, "unsent")
    this.#window.drop(item)
    this.#window.over(item, "unknown", this.#host.now())
    this.#window.turnAway(this.#window.lane(item.connectionId))
    this.#refillAt = this.#linesAt = this.#host.now() + brokenPauseMs
    this.tick()
  }

  /** It is no longer under way: its permit is free. */
  #arrived({ eventId }: DeliveryItem, how: Ending): void {
    this.#onWire--
    const departure = this.#departures.get(eventId)
    this.#departures.delete(eventId)
    if (departure !== undefined) this.#limit.ended(how, departure, this.#host.now())
    this.#permits.release()
  }

  /** The attempt is committed. */
  recorded(item: DeliveryItem, result: AttemptResult): void {
    this.#unrecorded--
    this.#window.drop(item)
    // Superseded: only a row with a later attempt is delivered again, never this attempt a second time.
    this.#window.remember(item.eventId, result.kind === "finished" ? Number.POSITIVE_INFINITY : item.attempts + 1)
    if (result.kind === "superseded") this.#look = true
    const isKept =
      result.kind === "retry" && item.place !== null && this.#rules.get(item.connectionId)?.order !== "skip"
    this.#window.over(item, result.kind === "superseded" ? "unknown" : isKept ? "kept" : "over", this.#host.now())
    if (result.kind === "retry") {
      const lane = this.#window.lane(item.connectionId)
      const retried = isKept ? result.item : { ...result.item, place: null }
      if (!this.#insert(lane, retried, this.#host.now())) this.#window.turnAway(lane)
      if (isKept) lane.lines.leave(item.orderingKey!)
    }
    this.tick()
  }

  /** Starts nothing more. `drained` is called once nothing is under way any more. */
  stop(drained: () => void = () => {}): void {
    this.#stopped = true
    this.#drained = drained
    for (const lane of this.#window.lanes.values()) this.#window.evict(lane)
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
        next = this.#stopped ? null : this.#start(this.#host.now())
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

  #start(now: number): number | null {
    let next = Number.POSITIVE_INFINITY
    let ready = 0
    const awaySince = this.#targetAvailability?.awaySince ?? null
    const patience = this.#patience
    if (this.#heldUntil !== 0 && this.#heldUntil <= now) {
      this.#heldUntil = 0
      this.#limit.restart()
    }
    // No event has waited for its full patience before the target was away for that long.
    const waitsUntil = awaySince === null ? now : awaySince + patience
    let open: Array<ConnectionQueue | CallLine> = []
    for (const [id, lane] of this.#window.lanes) {
      if (lane.size === 0 && !lane.behind && lane.lines.isEmpty && this.#rules.get(id)?.order === undefined) {
        this.#window.lanes.delete(id)
        continue
      }
      if (this.#stateOf(id) !== "open") continue
      lane.ripen(now - patience)
      if (lane.nextDue !== null) next = Math.min(next, Math.max(lane.nextDue + patience, waitsUntil))
      if (lane.readyCount > 0 && waitsUntil > now) next = Math.min(next, waitsUntil)
      else if (lane.readyCount > 0) {
        open.push(lane)
        ready += lane.readyCount
      }
    }
    for (const line of this.#calls.lines) {
      open.push(line)
      ready += line.readyCount
    }
    for (let started = 0; ready > 0; started++) {
      if (started === maxStarts) {
        next = now
        break
      }
      if (!this.#host.mayDeliver()) {
        next = Math.min(next, now + leaseRetryMs)
        break
      }
      if (this.#heldUntil !== 0) {
        next = Math.min(next, this.#heldUntil)
        break
      }
      const pacedUntil = this.#pacer?.nextAt(now) ?? now
      if (pacedUntil > now) {
        next = Math.min(next, pacedUntil)
        break
      }
      if (this.#onWire >= this.#limit.value || this.#unrecorded >= maxUnrecorded) break
      if (this.#turns !== null && !this.#calls.isEmpty && !this.#turns.ready()) {
        // Calls wait until rate permits are stored. Events do not: each start is stored on its own.
        open = open.filter((one) => one instanceof ConnectionQueue)
        ready = open.reduce((sum, { readyCount }) => sum + readyCount, 0)
        if (ready === 0) break
      }
      if (!this.#permits.take()) break
      let item: DeliveryItem | Call | undefined
      try {
        item = this.#nextItem(open)
      } finally {
        if (item === undefined) this.#permits.release()
      }
      if (item === undefined) break
      ready--
      if (item instanceof Call) this.#makeCall(item, now)
      else this.#startOne(item, now)
    }
    // While the target is unavailable or has asked for a pause, a queue that has waiting events need not read more.
    const looks = this.#look && ((awaySince === null && this.#heldUntil === 0) || this.#window.isEmpty)
    const dueAt = looks ? now : this.#runsShort() ? Math.max(now, this.#refillAt) : Number.POSITIVE_INFINITY
    const refillAt = Math.min(dueAt, this.#linesDue(now))
    if (!this.#refilling && refillAt <= now) {
      this.#mayLook = this.#look || now >= this.#refillAt
      this.#look &&= !looks
      this.#refilling = true
      this.#readsDue = dueAt <= now
      if (this.#readsDue) for (const lane of this.#window.lanes.values()) lane.missed = false
      this.#host.refill()
    } else if (!this.#refilling) next = Math.min(next, refillAt)
    const isEmpty = this.#window.isEmpty && this.#calls.isEmpty
    const idle = next === Number.POSITIVE_INFINITY && isEmpty && !this.#refilling && !this.#look
    return idle ? null : next
  }

  #startOne(item: DeliveryItem, now: number): void {
    this.#onWire++
    this.#window.begin()
    const pacer = this.#pacer
    if (pacer !== null) {
      metrics.pacerSeconds.observe(Math.max(0, now - item.dueAt) / 1_000)
      pacer.take(now)
    }
    if (!this.#host.isWrittenDown(item)) return this.#mark(item, now, pacer)
    this.#host.takeInHand(item, (taken) => {
      if (taken && this.#mayStillStart(item, pacer)) this.#mark(item, this.#host.now(), pacer)
      else this.#turnBack(item, pacer)
      this.tick()
    })
  }

  /** Delivers an event. With a rate limit its start is stored first. */
  #mark(item: DeliveryItem, now: number, pacer: Pacer | null): void {
    if (pacer === null) return this.#deliver(item, now)
    this.#host.mark(item, now, (marked) => {
      const startedAt = this.#host.now()
      // Without the stored mark, the next owner would not know about this start, so the event waits until the database answers
      // again. A new rate that came meanwhile does not know about the start either.
      if (marked && this.#mayStillStart(item, pacer)) {
        this.#deliver(item, startedAt)
        // Counted from the real start: preparing the call may have taken longer than the margin between rate windows.
        pacer.start(this.#host.now())
      } else this.#turnBack(item, pacer)
      this.tick()
    })
  }

  /** An event that was about to start does not: it is in SQL. */
  #turnBack(item: DeliveryItem, pacer: Pacer | null): void {
    pacer?.release()
    this.#host.letGo(item)
    this.#onWire--
    this.#permits.release()
    this.#window.drop(item)
    this.#window.over(item, "unknown", this.#host.now())
    this.#look = true
  }

  #makeCall(call: Call, now: number): void {
    this.#onWire++
    this.#pacer?.take(now)
    this.#turns?.use()
    call.departure = this.#limit.begun(now, this.#onWire)
    call.start(now)
    this.#pacer?.start(this.#host.now())
  }

  #deliver(item: DeliveryItem, startedAt: number): void {
    this.#departures.set(item.eventId, this.#limit.begun(startedAt, this.#onWire))
    try {
      this.#host.deliver(item, startedAt)
    } catch (cause) {
      this.#host.brokeDown(cause)
      this.#host.letGo(item)
      this.lost(item)
    }
  }

  /** Whether an event may still start after a wait in which everything may have changed. */
  #mayStillStart(item: DeliveryItem, pacer: Pacer | null): boolean {
    if (pacer !== this.#pacer) return false
    if (this.#stopped || !this.#host.mayDeliver() || this.#stateOf(item.connectionId) !== "open") return false
    if (this.#heldUntil !== 0) return false
    if (!this.#isCancelled(item)) return true
    this.#host.cancel(item.connectionId)
    return false
  }

  /** The next item that may still be delivered; connection queues take turns. */
  #nextItem(open: Array<ConnectionQueue | CallLine>): DeliveryItem | Call | undefined {
    while (open.length > 0) {
      this.#turn = (this.#turn + 1) % open.length
      const lane = open[this.#turn]!
      const item = lane.shift()
      if (lane.readyCount === 0) open.splice(this.#turn, 1)
      if (item === undefined) continue
      if (item instanceof Call || !this.#isCancelled(item)) return item
      this.#window.begin()
      this.#window.drop(item)
      this.#window.over(item, "over", this.#host.now())
      this.#host.cancel(item.connectionId)
    }
    return undefined
  }

  /** False: it stays in SQL. */
  #insert(lane: ConnectionQueue, item: DeliveryItem, now: number): boolean {
    if (this.#window.has(item)) return true
    if (!this.#rules.has(item.connectionId)) this.#host.unknown(item.connectionId)
    if (this.#stopped || this.#stateOf(lane.connectionId) !== "open") return false
    return item.dueAt > now + horizonMs || this.#window.add(lane, item, now - this.#patience)
  }

  /** How long a due event waits for its target. */
  get #patience(): number {
    return this.#targetAvailability === null || this.#targetAvailability.awaySince === null
      ? 0
      : this.#targetAvailability.patience
  }

  #stateOf(connectionId: string): ConnectionQueueState {
    if (this.#destinationState !== "open") return this.#destinationState
    return this.#rules.get(connectionId)?.state ?? "paused"
  }

  #isCancelled(item: DeliveryItem): boolean {
    const before = Math.max(this.#destinationCancelBefore, this.#rules.get(item.connectionId)?.cancelBefore ?? 0)
    return item.createdAt <= before
  }

  /** Whether to read rows from SQL: the window is half empty, or a connection queue with rows in SQL is empty in memory. */
  #runsShort(): boolean {
    for (const lane of this.#window.lanes.values()) if (lane.behind && this.#hasUseFor(lane)) return true
    return false
  }

  #hasUseFor(lane: ConnectionQueue): boolean {
    return this.#stateOf(lane.connectionId) === "open" && (lane.size === 0 || this.#window.isHalfEmpty)
  }

  /** When to read events by ordering key. Keys that are known to have rows are not delayed by scans that find nothing. */
  #linesDue(now: number): number {
    let at = Number.POSITIVE_INFINITY
    for (const lane of this.#window.lanes.values()) {
      const { isLooking, isWanting } = lane.lines
      if (!(isLooking || isWanting) || !this.#hasUseFor(lane)) continue
      at = Math.min(at, Math.max(now, isWanting ? this.#linesAt : this.#refillAt))
    }
    return at
  }
}
