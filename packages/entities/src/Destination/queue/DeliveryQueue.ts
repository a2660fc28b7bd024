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

/** So many lines are read at least, when some are. */
const minLines = 64
/** Attempts of one destination that are over but not yet recorded. */
const maxUnrecorded = 1_000
/** Deliveries begun in one go: the event loop is everybody's, and a limit may be raised by a thousand at once. */
const maxStarts = 100
/** How far ahead of its time a retry may wait in memory (ms); what is later is found by the sweep. */
export const horizonMs = 30_000
/** Without a lease, look again after (ms). */
const leaseRetryMs = 100
/** Between a refill that could not use what it read, and the next (ms). */
const refillPauseMs = 50
/** Between two looks through all lines of a connection (ms): they find what no hint has told, and what comes due in line. */
const roundPauseMs = 2_000
/** After something broke down, look again after (ms): it may well break down again. */
const brokenPauseMs = 1_000

/**
 * The delivery queue of one destination, over a bounded window of its rows in SQL (DeliveryWindow.ts), in lanes by connection. Synchronous
 * and free of I/O: it decides what starts when, and the host does it.
 *
 *     offer/refilled ─► lane (waiting ─► ready) ─► [pacer, limit, permits, lease] ─► deliver ─► ended ─► recorded
 *
 * Lanes take turns, so connections share a destination fairly; and so do the calls of workflows (Calls.ts), which go the same way but
 * that nothing of them is recorded here. Everything in it can be lost at any time.
 */
export class DeliveryQueue {
  readonly #host: QueueHost
  readonly #permits: KeyPermits
  readonly #window: DeliveryWindow
  readonly #calls: Calls
  /** What is on the wire, by event. */
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
  /** What the refill under way reads: what is due, or lines alone; and these. */
  #readsDue = false
  /** Whether it goes on looking through lines. */
  #mayLook = false
  #lineReads: ReadonlyMap<string, LineReads> = new Map()
  #linesAt = 0
  /** What the refill under way reads may be from before something was taken out. */
  #stale = false
  #cancelAt = 0
  /** Nothing starts before (Unix ms); 0: its target has not said so. */
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

  /** Deliveries on the wire, and how many there may be. */
  get onWire(): number {
    return this.#onWire
  }

  get limit(): number {
    return this.#limit.value
  }

  /** Until when nothing starts, because the target takes no more (Unix ms); 0: it does. */
  get heldUntil(): number {
    return this.#heldUntil
  }

  /** Nothing starts before (Unix ms); 0: what was said before holds no more. */
  hold(until: number): void {
    this.#heldUntil = until
    this.tick()
  }

  /** Deliveries on the wire or not yet recorded. */
  get underWay(): number {
    return this.#onWire + this.#unrecorded
  }

  /** Takes over what the destination and its connections allow. What no longer may wait in memory leaves it. */
  configure(options: {
    readonly state: ConnectionQueueState
    readonly cancelBefore: number
    readonly lanes: ReadonlyMap<string, ConnectionQueueRules>
    readonly pacer: Pacer | null
    /** Those of the pacer that calls may take: nothing else tells of them. */
    readonly turns?: Turns | null
    /** Deliveries on the wire at the most; null: as many as the target takes. */
    readonly maxConcurrency: number | null
    /** Of a target that may be away. */
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

  /** Events just committed. What does not fit stays in SQL. */
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

  /** Takes a call in, to be made when its turn has come. False: it is not, for want of room or because nothing is sent here. */
  call(call: Call): boolean {
    if (this.#stopped || this.#destinationState !== "open" || !this.#calls.add(call)) return false
    this.tick()
    return true
  }

  /** Nobody waits for it any more; answers whether it still waited. */
  withdraw(call: Call): boolean {
    const waited = this.#calls.remove(call)
    if (waited) this.tick()
    return waited
  }

  /** A call is over. */
  called(call: Call, how: Ending): void {
    this.#onWire--
    if (call.departure !== null) this.#limit.ended(how, call.departure, this.#host.now())
    this.#permits.release()
    this.tick()
  }

  /** One that is kept in order is read with its line: a hint does not tell who stands before it. */
  #hint(lane: ConnectionQueue, item: DeliveryItem, now: number): void {
    if (!this.#rules.has(item.connectionId)) this.#host.unknown(item.connectionId)
    if (item.dueAt <= now + horizonMs && this.#stateOf(lane.connectionId) === "open") lane.lines.want(item.orderingKey!)
  }

  /** Something may be due that is not in memory. */
  wake(): void {
    this.#lookAround(this.#host.now())
    this.tick()
  }

  /** Rows were taken out of SQL whose events may wait in memory: all of them leave it, and what is there is read. */
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
      // Nobody reads its lines to meet what is left in them.
      else if (state === "cancelled" && mayCancel) this.#host.cancel(connectionId)
    }
    if (mayCancel) this.#cancelAt = now + roundPauseMs
  }

  /** What the refill that was asked for is to read; from here on it counts as read. */
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
   * The answer to `refill`: the items read, the connections that have more due rows than were read, and what was read of lines.
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

  /** Puts what was read of lines behind each other; answers whether there was room for all of it. */
  #takeLines({ connectionId, lines, lookedTo }: LinesRead, now: number): boolean {
    const lane = this.#window.lane(connectionId)
    if (lookedTo !== undefined) lane.lines.lookedTo(lookedTo)
    let fits = true
    for (const { items, key, more } of lines) {
      // It has come into memory by another way since: what is read of it next stands behind that.
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

  /** SQL could not be read: try again with the next tick after `leaseRetryMs`. */
  refillFailed(): void {
    this.#refilling = false
    this.#look = true
    for (const connectionId of this.#lineReads.keys()) this.#window.lane(connectionId).lines.forgetWanted()
    this.#nextAt = this.#host.now() + leaseRetryMs
    this.#host.changed()
  }

  /** Whether an event is in memory: waiting, on the wire, or being recorded. */
  isKnown(eventId: string): boolean {
    return this.#window.isKnown(eventId)
  }

  /** How many events of each connection are in memory. */
  knownByConnection(): ReadonlyMap<string, number> {
    return this.#window.knownByConnection()
  }

  /** Room for a refill, in events. */
  get room(): number {
    return this.#window.room
  }

  /** The exchange with the target is over. */
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

  /** Nobody was there to take it any more: it is the first again. Nothing starts meanwhile, because its target is away. */
  returned(item: DeliveryItem): void {
    // Of a line, only SQL tells who is first.
    if (item.orderingKey !== null || this.#stopped || this.#stateOf(item.connectionId) !== "open") {
      return this.abandoned(item)
    }
    this.#arrived(item, "unsent")
    this.#window.putBack(item)
    this.tick()
  }

  /** The attempt broke down and left no record: the event is still in SQL, and is looked for after a pause. */
  lost(item: DeliveryItem): void {
    this.#arrived(item, "unsent")
    this.#window.drop(item)
    this.#window.over(item, "unknown", this.#host.now())
    this.#window.turnAway(this.#window.lane(item.connectionId))
    this.#refillAt = this.#linesAt = this.#host.now() + brokenPauseMs
    this.tick()
  }

  /** Off the wire: its slot is free. */
  #arrived({ eventId }: DeliveryItem, how: Ending): void {
    this.#onWire--
    const departure = this.#departures.get(eventId)
    this.#departures.delete(eventId)
    if (departure !== undefined) this.#limit.ended(how, departure, this.#host.now())
    this.#permits.release()
  }

  /** The attempt is durable. */
  recorded(item: DeliveryItem, result: AttemptResult): void {
    this.#unrecorded--
    this.#window.drop(item)
    // Superseded: only a row that has gone on is delivered again, never this attempt a second time.
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
   * Starts whatever may start now, and works out when to look again. Never throws: it is called by those who answer for one
   * delivery, or who give a slot back, and they must not pay for another.
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
    // Nothing has waited for long enough before the target was away for that long.
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
        // They wait until some are noted; events, which are marked one by one, do not.
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
    // Whoever waits with some for a target that is away, or takes nothing, need not know of more.
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

  /** Delivers what has its turn; that of a pacer is written down first. */
  #mark(item: DeliveryItem, now: number, pacer: Pacer | null): void {
    if (pacer === null) return this.#deliver(item, now)
    this.#host.mark(item, now, (marked) => {
      const startedAt = this.#host.now()
      // Without the mark, a take-over would not know of this slot: it waits for the database to answer again. A new rate
      // may have come meanwhile, which does not know of it either.
      if (marked && this.#mayStillStart(item, pacer)) {
        this.#deliver(item, startedAt)
        // Counted from when it is under way: preparing it may have taken longer than the pacer keeps between windows.
        pacer.start(this.#host.now())
      } else this.#turnBack(item, pacer)
      this.tick()
    })
  }

  /** What had its turn does not start: it is in SQL. */
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

  /** Whether what has been let through may still go, after a wait in which everything may have changed. */
  #mayStillStart(item: DeliveryItem, pacer: Pacer | null): boolean {
    if (pacer !== this.#pacer) return false
    if (this.#stopped || !this.#host.mayDeliver() || this.#stateOf(item.connectionId) !== "open") return false
    if (this.#heldUntil !== 0) return false
    if (!this.#isCancelled(item)) return true
    this.#host.cancel(item.connectionId)
    return false
  }

  /** The next item in turn that may still be delivered; lanes take turns. */
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

  /** How long what is due waits for its target. */
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

  /** Whether rows in SQL should be read: the window is half empty, or a lane that has some has none in it. */
  #runsShort(): boolean {
    for (const lane of this.#window.lanes.values()) if (lane.behind && this.#hasUseFor(lane)) return true
    return false
  }

  #hasUseFor(lane: ConnectionQueue): boolean {
    return this.#stateOf(lane.connectionId) === "open" && (lane.size === 0 || this.#window.isHalfEmpty)
  }

  /** When lines should be read. One that is known to have something is not kept waiting by what is looked for in vain. */
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
