import { metrics } from "@tidegate/telemetry/Metrics"
import { ConcurrencyLimit, type Departure, type Ending } from "./ConcurrencyLimit.ts"
import { type DeliveryItem, weightOf } from "./DeliveryItem.ts"
import { Lane } from "./Lane.ts"
import type { LineEnding, LineReads } from "./Lines.ts"
import type { Pacer } from "./Pacer.ts"
import type { Share, Slots } from "./Slots.ts"

/** What a lane's connection (and the destination behind it) allows right now. */
export type LaneState = "open" | "paused" | "cancelled"

/** What the queue is told about one connection. */
export interface LaneRules {
  readonly state: LaneState
  /** Whatever was created up to then (Unix ms) is cancelled, even on a lane that is open again. */
  readonly cancelBefore: number
  /** How events of one key are kept in order; "none": they were, and what is in line still is. Left out: they never were. */
  readonly order?: "block" | "skip" | "none"
}

/** What became of an attempt once it is recorded. */
export type AttemptResult =
  | { readonly kind: "finished" }
  | { readonly kind: "retry"; readonly item: DeliveryItem }
  | { readonly kind: "superseded" }

/** What a refill reads: what is due, and lines by connection. */
export interface QueueReads {
  readonly due: boolean
  readonly lines: ReadonlyMap<string, LineReads>
}

/** What was read of a connection's lines: of each the first events that may go one after the other, and whether it has more. */
export interface LinesRead {
  readonly connectionId: string
  readonly lines: ReadonlyArray<{
    readonly key: string
    readonly items: ReadonlyArray<DeliveryItem>
    readonly more: boolean
  }>
  /** How far all lines were looked through, null: to the end; left out: they were not. */
  readonly lookedTo?: string | null | undefined
}

/** The world of a queue: clock, network, SQL. All calls return at once. */
export interface QueueHost {
  readonly now: () => number
  /** Whether this process still holds the shard's lease; when not, nothing starts. */
  readonly mayDeliver: () => boolean
  readonly slots: Slots
  /**
   * Makes one attempt and records it; answers with `ended` (the exchange is over) and then `recorded`, or with `abandoned`
   * or `lost`. Throws only when it will not answer.
   */
  readonly deliver: (item: DeliveryItem, startedAt: number) => void
  /** Durably marks the start of a paced delivery, then calls back. */
  readonly mark: (item: DeliveryItem, startedAt: number, done: (marked: boolean) => void) => void
  /** Reads due rows that are not in memory; answers with `refilled`. */
  readonly refill: () => void
  /** An event of a connection it was not told about: have it told (`configure`). */
  readonly unknown: () => void
  /** Rows of cancelled lanes were met: have them cancelled in SQL. */
  readonly cancel: (connectionId: string) => void
  /** The time returned by `nextAt` changed, or the queue became idle. */
  readonly changed: () => void
  /** Something threw that must not: to be told to the operators. The queue goes on. */
  readonly brokeDown: (cause: unknown) => void
}

/** How many events a window holds at the most; what comes on top waits in SQL. */
const windowSize = 1_000
/** So many lines are read at least, when some are. */
const leastLines = 64
/** So few events in memory are always allowed, whatever the other destinations hold. */
const leastInMemory = 16
/** Attempts of one destination that are over but not yet recorded. */
const mostUnrecorded = 1_000
/** Deliveries begun in one go: the event loop is everybody's, and a limit may be raised by a thousand at once. */
const mostStarts = 100
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
 * The delivery queue of one destination: a bounded window over its rows in SQL, in lanes by connection. Synchronous and
 * free of I/O: it decides what starts when, and the host does it.
 *
 *     offer/refilled ─► lane (waiting ─► ready) ─► [pacer, limit, slots, lease] ─► deliver ─► ended ─► recorded
 *
 * Lanes take turns, so connections share a destination fairly. Everything in it can be lost at any time: the rows are in
 * SQL, and `known` and `finished` keep a row that is read again from being delivered again.
 */
export class DeliveryQueue {
  readonly #host: QueueHost
  readonly #lanes = new Map<string, Lane>()
  readonly #share: Share
  /** Every event in memory (in a lane, on the wire, or being recorded), with its connection. */
  readonly #known = new Map<string, string>()
  /** What is on the wire, by event. */
  readonly #departures = new Map<string, Departure>()
  #rules: ReadonlyMap<string, LaneRules> = new Map()
  #destinationState: LaneState = "open"
  #destinationCancelBefore = 0
  #pacer: Pacer | null = null
  /** Attempts recorded, by event: two generations, so that a late copy of an event is recognised. */
  #finished = new Map<string, number>()
  #finishedBefore = new Map<string, number>()
  #turn = 0
  #inWindow = 0
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
  #cancelAt = 0
  #stopped = false
  #ticking = false
  #nextAt: number | null = null
  #again = false

  constructor(host: QueueHost) {
    this.#host = host
    this.#share = host.slots.share(() => this.tick())
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

  /** Deliveries on the wire or not yet recorded. */
  get underWay(): number {
    return this.#onWire + this.#unrecorded
  }

  /** Takes over what the destination and its connections allow. What no longer may wait in memory leaves it. */
  configure(options: {
    readonly state: LaneState
    readonly cancelBefore: number
    readonly lanes: ReadonlyMap<string, LaneRules>
    readonly pacer: Pacer | null
    /** Deliveries on the wire at the most; null: as many as the target takes. */
    readonly maxConcurrency: number | null
  }): void {
    this.#destinationState = options.state
    this.#destinationCancelBefore = options.cancelBefore
    this.#rules = options.lanes
    this.#pacer = options.pacer
    if (options.maxConcurrency !== this.#maxConcurrency) {
      this.#maxConcurrency = options.maxConcurrency
      this.#limit = new ConcurrencyLimit(options.maxConcurrency)
    }
    for (const lane of this.#lanes.values()) {
      if (this.#stateOf(lane.connectionId) === "open") lane.behind = true
      else this.#evict(lane)
    }
    this.wake()
  }

  /** Events just committed. What does not fit stays in SQL. */
  offer(items: ReadonlyArray<DeliveryItem>, more: boolean): void {
    const now = this.#host.now()
    for (const item of items) {
      const lane = this.#lane(item.connectionId)
      if (item.orderingKey !== null) this.#hint(lane, item, now)
      else if (lane.behind || !this.#insert(lane, item, now)) this.#turnAway(lane)
    }
    if (more) this.#lookAround(now)
    this.tick()
  }

  /** One that is kept in order is read with its line: a hint does not tell who stands before it. */
  #hint(lane: Lane, item: DeliveryItem, now: number): void {
    if (!this.#rules.has(item.connectionId)) this.#host.unknown()
    if (item.dueAt <= now + horizonMs && this.#stateOf(lane.connectionId) === "open") lane.lines.want(item.orderingKey!)
  }

  /** Something may be due that is not in memory. */
  wake(): void {
    this.#lookAround(this.#host.now())
    this.tick()
  }

  #lookAround(now: number): void {
    this.#look = true
    const mayCancel = now >= this.#cancelAt
    for (const [connectionId, { order }] of this.#rules) {
      if (order === undefined) continue
      const state = this.#stateOf(connectionId)
      if (state === "open") this.#lane(connectionId).lines.lookThrough(now, roundPauseMs)
      // Nobody reads its lines to meet what is left in them.
      else if (state === "cancelled" && mayCancel) this.#host.cancel(connectionId)
    }
    if (mayCancel) this.#cancelAt = now + roundPauseMs
  }

  /** What the refill that was asked for is to read; from here on it counts as read. */
  takeReads(): QueueReads {
    const mayLook = this.#mayLook
    const lanes = [...this.#lanes.values()].filter(
      ({ connectionId, lines }) =>
        (lines.isWanting || (mayLook && lines.isLooking)) && this.#stateOf(connectionId) === "open"
    )
    const most = Math.ceil(Math.max(leastLines, this.room) / lanes.length)
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
    const now = this.#host.now()
    const before = this.#inWindow
    let refused = false
    if (this.#readsDue) for (const lane of this.#lanes.values()) lane.behind = lane.missed
    for (const item of items) {
      const lane = this.#lane(item.connectionId)
      if (this.#stateOf(item.connectionId) === "cancelled") this.#host.cancel(item.connectionId)
      else if (!this.#insert(lane, item, now)) {
        lane.behind = true
        refused = true
      }
    }
    for (const connectionId of behind) this.#lane(connectionId).behind = true
    for (const read of lines) if (!this.#takeLines(read, now)) refused = true
    let looked = this.#readsDue
    for (const { after } of this.#lineReads.values()) looked ||= after !== null
    if (refused || (looked && this.#inWindow <= before)) this.#refillAt = now + refillPauseMs
    if (refused) this.#linesAt = now + refillPauseMs
    this.tick()
  }

  /** Puts what was read of lines behind each other; answers whether there was room for all of it. */
  #takeLines({ connectionId, lines, lookedTo }: LinesRead, now: number): boolean {
    const lane = this.#lane(connectionId)
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
    for (const connectionId of this.#lineReads.keys()) this.#lane(connectionId).lines.forgetWanted()
    this.#nextAt = this.#host.now() + leaseRetryMs
    this.#host.changed()
  }

  /** Whether an event is in memory: waiting, on the wire, or being recorded. */
  isKnown(eventId: string): boolean {
    return this.#known.has(eventId)
  }

  /** How many events of each connection are in memory. */
  knownByConnection(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const connectionId of this.#known.values()) counts.set(connectionId, (counts.get(connectionId) ?? 0) + 1)
    return counts
  }

  /** Whether an event in this state is already here, or has gone on since. */
  #has(eventId: string, attempts: number): boolean {
    if (this.#known.has(eventId)) return true
    const recorded = this.#finished.get(eventId) ?? this.#finishedBefore.get(eventId)
    return recorded !== undefined && attempts < recorded
  }

  /** Room for a refill, in events. */
  get room(): number {
    return this.#hasRoom(0) ? windowSize - this.#inWindow : 0
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
    this.#drop(item)
    this.#over(item, "unknown")
    this.#look = true
    this.tick()
  }

  /** The attempt broke down and left no record: the event is still in SQL, and is looked for after a pause. */
  lost(item: DeliveryItem): void {
    this.#arrived(item, "unsent")
    this.#drop(item)
    this.#over(item, "unknown")
    this.#turnAway(this.#lane(item.connectionId))
    this.#refillAt = this.#linesAt = this.#host.now() + brokenPauseMs
    this.tick()
  }

  /** Off the wire: its slot is free. */
  #arrived({ eventId }: DeliveryItem, how: Ending): void {
    this.#onWire--
    const departure = this.#departures.get(eventId)
    this.#departures.delete(eventId)
    if (departure !== undefined) this.#limit.ended(how, departure, this.#host.now())
    this.#share.release()
  }

  /** The attempt is durable. */
  recorded(item: DeliveryItem, result: AttemptResult): void {
    this.#unrecorded--
    this.#drop(item)
    // Superseded: only a row that has gone on is delivered again, never this attempt a second time.
    this.#remember(item.eventId, result.kind === "finished" ? Number.POSITIVE_INFINITY : item.attempts + 1)
    if (result.kind === "superseded") this.#look = true
    const isKept =
      result.kind === "retry" && item.place !== null && this.#rules.get(item.connectionId)?.order !== "skip"
    this.#over(item, result.kind === "superseded" ? "unknown" : isKept ? "kept" : "over")
    if (result.kind === "retry") {
      const lane = this.#lane(item.connectionId)
      const retried = isKept ? result.item : { ...result.item, place: null }
      if (!this.#insert(lane, retried, this.#host.now())) this.#turnAway(lane)
      if (isKept) lane.lines.leave(item.orderingKey!)
    }
    this.tick()
  }

  /** What was under way is not any more: of its line, the next one may go. */
  #over(item: DeliveryItem, how: LineEnding): void {
    if (item.orderingKey === null) return
    for (const dropped of this.#lane(item.connectionId).end(item, how, this.#host.now())) {
      this.#inWindow--
      this.#drop(dropped)
    }
  }

  /** Starts nothing more. */
  stop(): void {
    this.#stopped = true
    for (const lane of this.#lanes.values()) this.#evict(lane)
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
  }

  #start(now: number): number | null {
    let next = Number.POSITIVE_INFINITY
    let ready = 0
    const open: Array<Lane> = []
    for (const [id, lane] of this.#lanes) {
      if (lane.size === 0 && !lane.behind && lane.lines.isEmpty && this.#rules.get(id)?.order === undefined) {
        this.#lanes.delete(id)
        continue
      }
      if (this.#stateOf(id) !== "open") continue
      lane.ripen(now)
      if (lane.nextDue !== null) next = Math.min(next, lane.nextDue)
      if (lane.readyCount > 0) {
        open.push(lane)
        ready += lane.readyCount
      }
    }
    for (let started = 0; ready > 0; started++) {
      if (started === mostStarts) {
        next = now
        break
      }
      if (!this.#host.mayDeliver()) {
        next = Math.min(next, now + leaseRetryMs)
        break
      }
      const pacedUntil = this.#pacer?.nextAt(now) ?? now
      if (pacedUntil > now) {
        next = Math.min(next, pacedUntil)
        break
      }
      if (this.#onWire >= this.#limit.value || this.#unrecorded >= mostUnrecorded) break
      if (!this.#share.take()) break
      let item: DeliveryItem | undefined
      try {
        item = this.#nextItem(open)
      } finally {
        if (item === undefined) this.#share.release()
      }
      if (item === undefined) break
      ready--
      this.#startOne(item, now)
    }
    const dueAt = this.#look ? now : this.#runsShort() ? Math.max(now, this.#refillAt) : Number.POSITIVE_INFINITY
    const refillAt = Math.min(dueAt, this.#linesDue(now))
    if (!this.#refilling && refillAt <= now) {
      this.#mayLook = this.#look || now >= this.#refillAt
      this.#look = false
      this.#refilling = true
      this.#readsDue = dueAt <= now
      if (this.#readsDue) for (const lane of this.#lanes.values()) lane.missed = false
      this.#host.refill()
    } else if (!this.#refilling) next = Math.min(next, refillAt)
    const idle = next === Number.POSITIVE_INFINITY && this.#known.size === 0 && !this.#refilling && !this.#look
    return idle ? null : next
  }

  #startOne(item: DeliveryItem, now: number): void {
    this.#onWire++
    this.#inWindow--
    if (this.#pacer === null) return this.#deliver(item, now)
    const pacer = this.#pacer
    metrics.pacerSeconds.observe(Math.max(0, now - item.dueAt) / 1_000)
    pacer.take(now)
    this.#host.mark(item, now, (marked) => {
      const startedAt = this.#host.now()
      // Without the mark, a take-over would not know of this slot: it waits for the database to answer again. A new rate
      // may have come meanwhile, which does not know of it either.
      if (marked && pacer === this.#pacer && this.#mayStillStart(item)) {
        this.#deliver(item, startedAt)
        // Counted from when it is under way: preparing it may have taken longer than the pacer keeps between windows.
        pacer.start(this.#host.now())
      } else {
        pacer.release()
        this.#onWire--
        this.#share.release()
        this.#drop(item)
        this.#over(item, "unknown")
        this.#look = true
      }
      this.tick()
    })
  }

  #deliver(item: DeliveryItem, startedAt: number): void {
    this.#departures.set(item.eventId, this.#limit.begun(startedAt, this.#onWire))
    try {
      this.#host.deliver(item, startedAt)
    } catch (cause) {
      this.#host.brokeDown(cause)
      this.lost(item)
    }
  }

  /** Whether what has been let through may still go, after a wait in which everything may have changed. */
  #mayStillStart(item: DeliveryItem): boolean {
    if (this.#stopped || !this.#host.mayDeliver() || this.#stateOf(item.connectionId) !== "open") return false
    if (!this.#isCancelled(item)) return true
    this.#host.cancel(item.connectionId)
    return false
  }

  /** The next item in turn that may still be delivered; lanes take turns. */
  #nextItem(open: Array<Lane>): DeliveryItem | undefined {
    while (open.length > 0) {
      this.#turn = (this.#turn + 1) % open.length
      const lane = open[this.#turn]!
      const item = lane.shift()
      if (lane.readyCount === 0) open.splice(this.#turn, 1)
      if (item === undefined) continue
      if (!this.#isCancelled(item)) return item
      this.#inWindow--
      this.#drop(item)
      this.#over(item, "over")
      this.#host.cancel(item.connectionId)
    }
    return undefined
  }

  #insert(lane: Lane, item: DeliveryItem, now: number): boolean {
    if (this.#has(item.eventId, item.attempts)) return true
    if (!this.#rules.has(item.connectionId)) this.#host.unknown()
    const weight = weightOf(item)
    if (this.#stopped || this.#stateOf(lane.connectionId) !== "open") return false
    if (item.dueAt > now + horizonMs) return true
    if (!this.#makeRoom(lane, weight)) return false
    this.#known.set(item.eventId, item.connectionId)
    this.#share.hold(weight)
    this.#inWindow++
    lane.add(item, now)
    return true
  }

  #hasRoom(weight: number): boolean {
    if (this.#inWindow >= windowSize) return false
    return this.#known.size < leastInMemory || this.#share.hasRoom(weight)
  }

  /** A full window makes room at the expense of its longest lane, so that no backlog keeps the other lanes out. */
  #makeRoom(lane: Lane, weight: number): boolean {
    while (!this.#hasRoom(weight)) {
      let longest = lane
      for (const other of this.#lanes.values()) if (other.size > longest.size) longest = other
      if (longest.size <= lane.size + 1) return false
      this.#inWindow--
      const item = longest.takeLast()!
      this.#drop(item)
      // One that waits for its turn is not found by the clock: its line is read again.
      if (item.place === null || item.attempts > 0) this.#turnAway(longest)
    }
    return true
  }

  /** Something of this lane stays in SQL. A refill under way may have read before it was there. */
  #turnAway(lane: Lane): void {
    lane.behind = true
    lane.missed = true
  }

  #drop(item: DeliveryItem): void {
    this.#known.delete(item.eventId)
    this.#share.letGo(weightOf(item))
  }

  #evict(lane: Lane): void {
    for (const item of lane.clear()) {
      this.#inWindow--
      this.#drop(item)
    }
    // Its rows stay in SQL; an opened lane is read again.
    lane.behind = false
  }

  #remember(eventId: string, attempts: number): void {
    if (this.#finished.size >= 4_096) {
      this.#finishedBefore = this.#finished
      this.#finished = new Map()
    }
    this.#finished.set(eventId, attempts)
  }

  #lane(connectionId: string): Lane {
    let lane = this.#lanes.get(connectionId)
    if (lane === undefined) {
      lane = new Lane(connectionId)
      this.#lanes.set(connectionId, lane)
    }
    return lane
  }

  #stateOf(connectionId: string): LaneState {
    if (this.#destinationState !== "open") return this.#destinationState
    return this.#rules.get(connectionId)?.state ?? "paused"
  }

  #isCancelled(item: DeliveryItem): boolean {
    const before = Math.max(this.#destinationCancelBefore, this.#rules.get(item.connectionId)?.cancelBefore ?? 0)
    return item.createdAt <= before
  }

  /** Whether rows in SQL should be read: the window is half empty, or a lane that has some has none in it. */
  #runsShort(): boolean {
    for (const lane of this.#lanes.values()) if (lane.behind && this.#hasUseFor(lane)) return true
    return false
  }

  #hasUseFor(lane: Lane): boolean {
    return this.#stateOf(lane.connectionId) === "open" && (lane.size === 0 || this.#inWindow * 2 <= windowSize)
  }

  /** When lines should be read. One that is known to have something is not kept waiting by what is looked for in vain. */
  #linesDue(now: number): number {
    let at = Number.POSITIVE_INFINITY
    for (const lane of this.#lanes.values()) {
      const { isLooking, isWanting } = lane.lines
      if (!(isLooking || isWanting) || !this.#hasUseFor(lane)) continue
      at = Math.min(at, Math.max(now, isWanting ? this.#linesAt : this.#refillAt))
    }
    return at
  }
}
