import { expect } from "@effect/vitest"
import type { Pacer } from "@tidegate/coordination/limits/Pacer"
import { type DeliveryItem, horizonMs, newItem } from "../src/Destination/queue/DeliveryItem.ts"
import { DeliveryQueue } from "../src/Destination/queue/DeliveryQueue.ts"
import type { Ending } from "../src/limits/ConcurrencyLimit.ts"
import type { KeyReads } from "../src/Destination/queue/OrderingKeys.ts"
import type {
  ConnectionQueueRules,
  ConnectionQueueState,
  KeysRead,
  TargetAvailability
} from "../src/Destination/queue/QueueHost.ts"
import { FairSemaphore, type KeyPermits } from "@tidegate/runtime/FairSemaphore"
import { type ByteShare, SharedBytes } from "@tidegate/runtime/SharedBytes"

/** An event's row as SQL has it. */
export interface Row {
  readonly id: string
  readonly lane: string
  readonly createdAt: number
  /** Of a row in line: its key, and its place for as long as it has it. */
  readonly key: string | null
  place: number | null
  dueAt: number
  attempts: number
  state: "PENDING" | "DONE" | "CANCELLED"
}

interface Mark {
  readonly item: DeliveryItem
  readonly done: (marked: boolean) => void
}

interface Attempt {
  readonly item: DeliveryItem
  readonly startedAt: number
}

type Refill =
  | { readonly step: "asked" }
  | {
      readonly step: "read"
      readonly wanted: ReadonlyArray<string>
      readonly behind: ReadonlySet<string>
      readonly keys: ReadonlyArray<FoundKeys>
    }
  | {
      readonly step: "fetched"
      readonly items: ReadonlyArray<DeliveryItem>
      readonly behind: ReadonlySet<string>
      readonly keys: ReadonlyArray<KeysRead>
    }

interface FoundKeys {
  readonly connectionId: string
  readonly keys: ReadonlyArray<{
    readonly key: string
    readonly ids: ReadonlyArray<string>
    readonly noted: ReadonlyMap<string, DeliveryItem>
    readonly more: boolean
  }>
  readonly scannedTo: string | null | undefined
}

export const maxBytes = 64 * 1024 * 1024
const refillRows = 1_000
const minRefill = 64
const maxPerKey = 128

/**
 * A queue in a world that a test runs: the clock, the network and SQL do one step at a time, when they are told to. What
 * must never happen is checked as it would happen: an event twice on the wire, an attempt made twice, a start that
 * nothing allows.
 */
export class QueueWorld {
  now = 1_790_000_000_000
  lease = true
  permits: FairSemaphore
  windowBytes = new SharedBytes(maxBytes)
  /** What another destination has of them. */
  readonly others: KeyPermits
  readonly otherBytes: ByteShare
  readonly rows = new Map<string, Row>()
  readonly starts: Array<{ readonly id: string; readonly lane: string; readonly at: number }> = []
  /** What the host was asked for and has not done. */
  readonly marks: Array<Mark> = []
  readonly takes: Array<Mark> = []
  /** Deliveries that the host was told to have in hand, until they are over. */
  readonly inHand = new Set<string>()
  readonly wire: Array<Attempt> = []
  /** Events with an ordering key whose content was not read. */
  noted = 0
  readonly recording: Array<Attempt & { readonly successful: boolean }> = []
  refill: Refill | null = null
  readonly cancels = new Set<string>()
  refills = 0
  /** The next so many deliveries throw, and what the queue told of them. */
  breaks = 0
  readonly breakdowns: Array<unknown> = []
  queue: DeliveryQueue
  stopped = false
  readonly #lanes = new Map<string, ConnectionQueueRules>()
  readonly isWrittenDown: (eventId: string) => boolean
  #destination: ConnectionQueueRules = { state: "open", cancelBefore: 0 }
  #pacer: Pacer | null = null
  #maxConcurrency: number | null = null
  #targetAvailability: TargetAvailability | null = null
  readonly #attempted = new Set<string>()

  constructor(
    lanes: ReadonlyArray<string>,
    options: {
      readonly permits?: number
      readonly pacer?: Pacer
      readonly maxConcurrency?: number
      readonly targetAvailability?: TargetAvailability
      readonly order?: "block" | "skip"
      /** Which deliveries are written down before they begin; none. */
      readonly writtenDown?: (eventId: string) => boolean
    } = {}
  ) {
    this.isWrittenDown = options.writtenDown ?? (() => false)
    this.permits = new FairSemaphore({ permits: options.permits ?? 5_000 })
    this.others = this.permits.key(() => {})
    this.otherBytes = this.windowBytes.share()
    const { order } = options
    for (const lane of lanes) {
      this.#lanes.set(lane, { state: "open", cancelBefore: 0, ...(order === undefined ? {} : { order }) })
    }
    this.#pacer = options.pacer ?? null
    this.#maxConcurrency = options.maxConcurrency ?? null
    this.#targetAvailability = options.targetAvailability ?? null
    this.queue = this.#start()
  }

  #start(): DeliveryQueue {
    const queue: DeliveryQueue = new DeliveryQueue({
      now: () => this.now,
      mayDeliver: () => this.lease,
      permits: this.permits,
      windowBytes: this.windowBytes,
      deliver: (item, startedAt) => this.#deliver(item, startedAt),
      mustBeRecorded: ({ eventId }) => this.isWrittenDown(eventId),
      takeInHand: (item, done) => {
        this.inHand.add(item.eventId)
        this.takes.push({ item, done })
      },
      letGo: ({ eventId }) => void this.inHand.delete(eventId),
      mark: (item, _startedAt, done) => void this.marks.push({ item, done }),
      prefetch: () => {
        expect(this.refill, "one refill at a time").toBeNull()
        this.refills++
        this.refill = { step: "asked" }
      },
      unknown: () => expect.fail("every lane is known"),
      cancel: (lane) => void this.cancels.add(lane),
      changed: () => {},
      brokeDown: (cause) => void this.breakdowns.push(cause)
    })
    this.queue = queue
    this.configure()
    this.refillNow()
    return queue
  }

  /** Another process goes on with what is in SQL. Of what was being recorded, every other one is. */
  takeOver(): void {
    for (const [index, { item, successful }] of this.recording.entries()) {
      const row = this.rows.get(item.eventId)!
      if (index % 2 === 0 && row.state === "PENDING") this.#write(row, successful, 1_000)
    }
    this.stopped = true
    this.queue.stop()
    this.wire.length = 0
    this.recording.length = 0
    // A pacer of its own would know nothing of these.
    for (; this.marks.length > 0; this.marks.pop()) this.#pacer?.release()
    for (; this.takes.length > 0; this.takes.pop()) this.#pacer?.release()
    this.inHand.clear()
    this.refill = null
    this.#attempted.clear()
    this.permits = new FairSemaphore({ permits: 5_000 })
    this.windowBytes = new SharedBytes(maxBytes)
    this.stopped = false
    this.queue = this.#start()
  }

  #write(row: Row, successful: boolean, retryIn: number): Row["state"] {
    row.attempts++
    if (successful) row.state = "DONE"
    else if (row.state === "PENDING") {
      row.dueAt = this.now + retryIn
      if (this.#lanes.get(row.lane)!.order === "skip") row.place = null
    }
    return row.state
  }

  /** What strict order allows: nothing of its key under way, nothing before it that it has to wait for. */
  #checkOrder(item: DeliveryItem): void {
    const row = this.rows.get(item.eventId)!
    if (row.key === null) return
    const isOfKey = (other: Row) => other.lane === row.lane && other.key === row.key && other !== row
    for (const { item: other } of [...this.wire, ...this.recording]) {
      expect(isOfKey(this.rows.get(other.eventId)!), "one at a time").toBe(false)
    }
    const { place } = row
    if (place === null) return
    for (const other of this.rows.values()) {
      const isBefore = other.state === "PENDING" && other.place !== null && other.place < place && isOfKey(other)
      if (isBefore) expect.fail(`${row.id} started before ${other.id}`)
    }
  }

  #deliver(item: DeliveryItem, startedAt: number): void {
    if (this.breaks > 0) {
      this.breaks--
      throw new Error("the host broke down")
    }
    this.#checkOrder(item)
    expect(startedAt).toBe(this.now)
    expect(this.lease, "nothing starts without the lease").toBe(true)
    expect(this.stopped, "nothing starts after the end").toBe(false)
    expect(this.stateOf(item.connectionId)).toBe("open")
    const before = Math.max(this.#destination.cancelBefore, this.#lanes.get(item.connectionId)!.cancelBefore)
    expect(item.createdAt, "nothing starts that is cancelled").toBeGreaterThan(before)
    expect(item.dueAt, "nothing starts before it is due").toBeLessThanOrEqual(this.now)
    expect(
      this.wire.some((attempt) => attempt.item.eventId === item.eventId),
      "an event is on the wire once"
    ).toBe(false)
    const attempt = `${item.eventId}/${item.attempts}`
    expect(this.#attempted.has(attempt), "an attempt is made once").toBe(false)
    this.#attempted.add(attempt)
    this.wire.push({ item, startedAt })
    this.starts.push({ id: item.eventId, lane: item.connectionId, at: startedAt })
  }

  stateOf(lane: string): ConnectionQueueState {
    return this.#destination.state === "open" ? this.#lanes.get(lane)!.state : this.#destination.state
  }

  /** Commits events of a lane. They are offered by the caller, or not. */
  commit(
    lane: string,
    count: number,
    options: { readonly dueIn?: number; readonly bytes?: number; readonly key?: string } = {}
  ): Array<Row> {
    return Array.from({ length: count }, () => {
      const row: Row = {
        id: `evt_${this.rows.size}`,
        lane,
        createdAt: this.now,
        key: options.key ?? null,
        place: options.key === undefined ? null : this.rows.size,
        dueAt: this.now + (options.dueIn ?? 0),
        attempts: 0,
        state: "PENDING"
      }
      this.rows.set(row.id, row)
      return row
    })
  }

  itemOf({ attempts, createdAt, dueAt, id, key, lane, place }: Row): DeliveryItem {
    const item = newItem(
      { id, connectionId: lane, dueAt, orderingKey: key },
      { teamId: "tm_1", sourceId: "src_1" },
      createdAt,
      payload
    )
    return { ...item, attempts, place }
  }

  /** Commits and offers. */
  send(lane: string, count: number, options: { readonly dueIn?: number; readonly key?: string } = {}): Array<Row> {
    const rows = this.commit(lane, count, options)
    this.queue.offer(
      rows.map((row) => this.itemOf(row)),
      false
    )
    return rows
  }

  /** What a reload tells the queue. */
  configure(): void {
    this.queue.configure({
      ...this.#destination,
      connections: new Map(this.#lanes),
      pacer: this.#pacer,
      maxConcurrency: this.#maxConcurrency,
      targetAvailability: this.#targetAvailability
    })
  }

  setConnectionQueue(lane: string, state: ConnectionQueueState): void {
    this.#lanes.set(lane, this.#next(this.#lanes.get(lane)!, state))
    this.#cancelRows()
    this.configure()
  }

  setDestination(state: ConnectionQueueState): void {
    this.#destination = this.#next(this.#destination, state)
    this.#cancelRows()
    this.configure()
  }

  setPacer(pacer: Pacer | null): void {
    this.#pacer = pacer
    this.configure()
  }

  setMaxConcurrency(maxConcurrency: number | null): void {
    this.#maxConcurrency = maxConcurrency
    this.configure()
  }

  #next(rules: ConnectionQueueRules, state: ConnectionQueueState): ConnectionQueueRules {
    const turned = (rules.state === "cancelled") !== (state === "cancelled")
    return { ...rules, state, cancelBefore: turned ? this.now : rules.cancelBefore }
  }

  /** What is cancelled by a change reads so from then on. */
  #cancelRows(): void {
    for (const row of this.rows.values()) {
      const { cancelBefore } = this.#lanes.get(row.lane)!
      const before = Math.max(this.#destination.cancelBefore, cancelBefore)
      if (row.state === "PENDING" && (row.createdAt <= before || this.stateOf(row.lane) === "cancelled")) {
        row.state = "CANCELLED"
      }
    }
  }

  /** What it begins later in the same moment, it begins now. */
  go(): void {
    for (let ticks = 0; this.queue.nextAt !== null && this.queue.nextAt <= this.now; ticks++) {
      expect(ticks, "it begins and begins").toBeLessThan(1_000)
      this.queue.tick()
    }
  }

  // The steps of the world.

  marked(index = 0, marked = true): void {
    const [mark] = this.marks.splice(index, 1)
    mark?.done(marked)
  }

  taken(index = 0, taken = true): void {
    const [take] = this.takes.splice(index, 1)
    take?.done(taken)
  }

  /** What was on the wire was not begun after all: it may be again. */
  forget(items: ReadonlyArray<DeliveryItem>): void {
    for (const { attempts, eventId } of items) this.#attempted.delete(`${eventId}/${attempts}`)
  }

  end(index = 0, successful = true, how: Ending = "answered"): void {
    const [attempt] = this.wire.splice(index, 1)
    if (attempt === undefined) return
    this.recording.push({ ...attempt, successful })
    this.queue.ended(attempt.item, how)
  }

  record(index = 0, retryIn = 1_000): void {
    const [attempt] = this.recording.splice(index, 1)
    if (attempt === undefined) return
    const { item, successful } = attempt
    const row = this.rows.get(item.eventId)!
    if (row.attempts !== item.attempts || row.state === "DONE") {
      return this.queue.recorded(item, { kind: "superseded" })
    }
    if (this.#write(row, successful, retryIn) !== "PENDING") return this.queue.recorded(item, { kind: "finished" })
    this.queue.recorded(item, { kind: "retry", item: this.itemOf(row) })
  }

  /** The next step of a refill: it reads the queue's rows, then the events, then answers. */
  stepRefill(): void {
    const refill = this.refill
    if (refill === null) return
    if (refill.step === "asked") this.refill = this.#read()
    else if (refill.step === "read") {
      const items = refill.wanted
        .map((id) => this.rows.get(id)!)
        .filter((row) => row.state === "PENDING")
        .map((row) => this.itemOf(row))
      const keys = refill.keys.map(({ keys, ...rest }) => ({
        ...rest,
        keys: keys.map(({ ids, key, more, noted }) => {
          const items = ids.flatMap((id) => {
            const row = this.rows.get(id)!
            return noted.get(id) ?? (row.state === "PENDING" ? [this.itemOf(row)] : [])
          })
          return { key, items, more }
        })
      }))
      this.refill = { step: "fetched", items, behind: refill.behind, keys }
    } else {
      this.refill = null
      this.queue.prefetched(refill)
    }
  }

  failRefill(): void {
    if (this.refill === null) return
    this.refill = null
    this.queue.prefetchFailed()
  }

  refillNow(): void {
    for (let i = 0; i < 3; i++) this.stepRefill()
  }

  #read(): Refill {
    const reads = this.queue.takeReads()
    const { behind, wanted } = reads.due ? this.#readDue() : { behind: new Set<string>(), wanted: [] }
    const keys = [...reads.keys].map(([lane, read]) => this.#readKeys(lane, read))
    return { step: "read", wanted, behind, keys }
  }

  /** As `PrefetchRead.ts` does. */
  #readKeys(lane: string, { after, keys, max, perKey }: KeyReads): FoundKeys {
    const rowsOf = new Map<string, Array<Row>>()
    for (const row of this.rows.values()) {
      if (row.lane !== lane || row.state !== "PENDING" || row.place === null) continue
      const events = rowsOf.get(row.key!)
      if (events === undefined) rowsOf.set(row.key!, [row])
      else events.push(row)
    }
    const perRead = Math.min(maxPerKey, perKey)
    const found = new Map(keys.map((key) => [key, (rowsOf.get(key) ?? []).slice(0, perRead)]))
    const page =
      after === null
        ? null
        : [...rowsOf.keys()]
            .filter((key) => key > after)
            .sort()
            .slice(0, max)
    for (const key of page ?? []) if (!found.has(key)) found.set(key, rowsOf.get(key)!.slice(0, 1))
    const read = [...found].flatMap(([key, rows]) => {
      const end = rows.findIndex((row) => row.attempts > 0 || row.dueAt > this.now + horizonMs)
      const free = end === -1 ? rows : rows.slice(0, end)
      const more = !keys.includes(key) || rows.length === perRead || free.length < rows.length
      return free.length === 0 ? [] : [{ key, ids: free.map(({ id }) => id), noted: this.#takeNoted(free), more }]
    })
    return {
      connectionId: lane,
      keys: read,
      scannedTo: page === null ? undefined : page.length < max ? null : page.at(-1)!
    }
  }

  /** The noted events among these: they have not changed since they were stored. */
  #takeNoted(rows: ReadonlyArray<Row>): ReadonlyMap<string, DeliveryItem> {
    const noted = new Map<string, DeliveryItem>()
    for (const row of rows) {
      const item = this.queue.memory.takeNoted(row.id)
      if (item === undefined) continue
      const stored = this.itemOf(row)
      expect({ ...item, place: stored.place, payload: stored.payload }).toStrictEqual(stored)
      noted.set(row.id, { ...item, place: stored.place })
      this.noted++
    }
    return noted
  }

  #readDue(): { readonly wanted: ReadonlyArray<string>; readonly behind: ReadonlySet<string> } {
    const perLane = Math.max(50, Math.ceil(refillRows / this.#lanes.size))
    const known = this.queue.memory.knownByConnection()
    const wanted: Array<string> = []
    const unknown: Array<{ rank: number; id: string; lane: string }> = []
    const behind = new Set<string>()
    const room = Math.max(minRefill, this.queue.memory.room)
    for (const lane of this.#lanes.keys()) {
      const due = [...this.rows.values()]
        .filter((row) => row.lane === lane && row.state === "PENDING" && row.dueAt <= this.now + horizonMs)
        .filter((row) => row.place === null || row.attempts > 0)
        .sort((a, b) => a.dueAt - b.dueAt)
        .slice(0, perLane + (known.get(lane) ?? 0))
      if (due.length === perLane + (known.get(lane) ?? 0)) behind.add(lane)
      for (const [rank, row] of due.entries())
        if (!this.queue.memory.isKnown(row.id)) unknown.push({ rank, id: row.id, lane })
    }
    unknown.sort((a, b) => a.rank - b.rank)
    for (const { id, lane } of unknown) {
      if (wanted.length < room) wanted.push(id)
      else behind.add(lane)
    }
    return { wanted, behind }
  }

  /** Events in the window: in memory and not under way. */
  get inWindow(): number {
    let known = 0
    for (const id of this.rows.keys()) if (this.queue.memory.isKnown(id)) known++
    return known - this.queue.underWay
  }

  get pending(): number {
    let pending = 0
    for (const row of this.rows.values()) if (row.state === "PENDING") pending++
    return pending
  }

  /** Lets the world do all it was asked for, and time pass, until the queue is idle; every delivery succeeds. */
  settle(maxSteps = 200_000): void {
    for (let step = 0; step < maxSteps; step++) {
      if (this.takes.length > 0) this.taken()
      else if (this.marks.length > 0) this.marked()
      else if (this.wire.length > 0) this.end()
      else if (this.recording.length > 0) this.record()
      else if (this.refill !== null) this.stepRefill()
      else if (this.queue.nextAt === null) return
      else {
        expect(Number.isFinite(this.queue.nextAt), "waits for something that nobody does").toBe(true)
        this.now = Math.max(this.now, this.queue.nextAt)
        this.queue.tick()
      }
    }
    expect.fail("the queue does not come to rest")
  }
}

const payload: DeliveryItem["payload"] = {
  requestId: "req_1",
  dataId: null,
  method: "POST",
  path: "/",
  query: "",
  headers: {},
  presented: null,
  body: new Uint8Array(100),
  verified: false,
  originalIp: null
}
