import type { Pacer } from "@tidegate/coordination/limits/Pacer"
import type { KeyPermits } from "@tidegate/runtime/FairSemaphore"
import type { Call, Calls } from "../../limits/Calls.ts"
import { ConcurrencyLimit, type Departure, type Ending } from "../../limits/ConcurrencyLimit.ts"
import type { StepPermits } from "../../limits/RatePermits.ts"
import type { Consumers, QueueHost } from "./QueueHost.ts"

/** Attempts of one destination that have ended but are not recorded yet. */
const maxUnrecorded = 1_000
/** Without a lease, the queue tries again after this time (ms). */
export const leaseRetryMs = 100

interface Limits {
  readonly pacer: Pacer | null
  readonly stepPermits?: StepPermits | null
  readonly maxConcurrency: number | null
  readonly consumers?: Consumers | null
}

/**
 * Decides whether one more delivery or call may start: by the lease, a pause that the target has asked for, the rate limiter, the
 * concurrency limit, and the permits of the process. Counts what is under way.
 */
export class StartLimits {
  readonly #host: QueueHost
  readonly #permits: KeyPermits
  /** The deliveries under way, by event. */
  readonly #departures = new Map<string, Departure>()
  /** Events that consumers have fetched and not settled. They are under way without a permit. */
  readonly #handedOut = new Set<string>()
  #consumers: Consumers | null = null
  #pacer: Pacer | null = null
  #stepPermits: StepPermits | null = null
  #onWire = 0
  #unrecorded = 0
  #maxConcurrency: number | null = null
  #concurrency = new ConcurrencyLimit(null)
  /** Nothing starts before this time (Unix ms); 0: the target has not asked for a pause. */
  heldUntil = 0

  /** `retry` is called when the process has a permit again. */
  constructor(host: QueueHost, retry: () => void) {
    this.#host = host
    this.#permits = host.permits.key(retry)
  }

  configure({ consumers = null, maxConcurrency, pacer, stepPermits = null }: Limits): void {
    this.#consumers = consumers
    this.#pacer = pacer
    this.#stepPermits = stepPermits
    if (maxConcurrency === this.#maxConcurrency) return
    this.#maxConcurrency = maxConcurrency
    this.#concurrency = new ConcurrencyLimit(maxConcurrency)
  }

  get pacer(): Pacer | null {
    return this.#pacer
  }

  /** Deliveries under way, and how many there may be. */
  get onWire(): number {
    return this.#onWire
  }

  get limit(): number {
    return this.#concurrency.value
  }

  /** Deliveries that are under way or not yet recorded. */
  get underWay(): number {
    return this.#onWire + this.#handedOut.size + this.#unrecorded
  }

  /** A pause that is over ends. */
  endHold(now: number): void {
    if (this.heldUntil === 0 || this.heldUntil > now) return
    this.heldUntil = 0
    this.#concurrency.restart()
  }

  /** Until when nothing may start (Unix ms); Infinity: until something ends; `now`: something may start. */
  blockedUntil(now: number): number {
    if (!this.#host.mayDeliver()) return now + leaseRetryMs
    if (this.heldUntil !== 0) return this.heldUntil
    const pacedUntil = this.#pacer?.nextAt(now) ?? now
    if (pacedUntil > now) return pacedUntil
    const isFull = this.#onWire >= this.#concurrency.value || this.#unrecorded >= maxUnrecorded
    const isUnwanted = this.#consumers !== null && this.#onWire >= this.#consumers.demand
    return isFull || isUnwanted ? Number.POSITIVE_INFINITY : now
  }

  /** Whether calls wait until rate permits are stored. Events do not wait for that: each start is stored on its own. */
  delaysCalls(calls: Calls): boolean {
    return this.#stepPermits !== null && !calls.isEmpty && !this.#stepPermits.ready()
  }

  /** Takes a permit of the process. False: there is none now. */
  takePermit(): boolean {
    return this.#permits.take()
  }

  releasePermit(): void {
    this.#permits.release()
  }

  /** A delivery or call that has a permit begins, or is prepared to begin. */
  begin(now: number): void {
    this.#onWire++
    this.#pacer?.take(now)
  }

  /** A delivery that was prepared does not begin. */
  giveUp(): void {
    this.#onWire--
    this.#permits.release()
  }

  departs(eventId: string, startedAt: number): void {
    this.#departures.set(eventId, this.#concurrency.begun(startedAt, this.#onWire))
  }

  /** A consumer has it and takes its time: its permit is free. */
  handedOut(eventId: string): void {
    this.arrived(eventId, "unsent")
    this.#handedOut.add(eventId)
  }

  /** A delivery is no longer under way: its permit is free. */
  arrived(eventId: string, how: Ending): void {
    if (this.#handedOut.delete(eventId)) return
    this.#onWire--
    const departure = this.#departures.get(eventId)
    this.#departures.delete(eventId)
    if (departure !== undefined) this.#concurrency.ended(how, departure, this.#host.now())
    this.#permits.release()
  }

  callDeparts(call: Call, now: number): void {
    this.#stepPermits?.use()
    call.departure = this.#concurrency.begun(now, this.#onWire)
  }

  callArrived({ departure }: Call, how: Ending): void {
    this.#onWire--
    if (departure !== null) this.#concurrency.ended(how, departure, this.#host.now())
    this.#permits.release()
  }

  /** A delivery has ended, and is being recorded. */
  awaitsRecord(): void {
    this.#unrecorded++
  }

  recorded(): void {
    this.#unrecorded--
  }
}
