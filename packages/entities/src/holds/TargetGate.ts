import { SharedBytes } from "@tidegate/runtime/SharedBytes"
import { Call, Calls } from "../limits/Calls.ts"
import { ConcurrencyLimit, type Ending } from "../limits/ConcurrencyLimit.ts"

/**
 * While calls are on hold, one of them checks this often (ms) whether the hold is still stored, because it may have been lifted.
 */
const lookEveryMs = 5_000

interface Host {
  readonly now: () => number
  /** Calls `then` after `ms`. Returns the function that stops the timer. */
  readonly after: (ms: number, then: () => void) => () => void
}

interface Asked {
  /** The workflow. Calls of one workflow wait in order, and workflows take turns. */
  readonly group: string
  /** When the call began to wait (Unix ms). */
  readonly since: number
  /**
   * Called once. With a call: it may start, and has to be reported with `left` when it ends. With "look": it has to check whether
   * the hold is still stored, and enter again.
   */
  readonly ready: (permit: Call | "look") => void
}

/**
 * Starts the calls of one target: none during a hold, then one, and twice as many after each round trip, as a destination's queue
 * does (`ConcurrencyLimit.restart`). Synchronous. `Calls` bounds the number of waiting calls.
 */
export class TargetGate {
  readonly #host: Host
  readonly #limit = new ConcurrencyLimit(null)
  readonly #calls = new Calls(new SharedBytes(Number.POSITIVE_INFINITY).share())
  /** The callbacks of waiting calls. */
  readonly #waiting = new Map<Call, Asked["ready"]>()
  #heldUntil = 0
  #underWay = 0
  #lookAt = 0
  #stopTimer: (() => void) | null = null

  constructor(host: Host) {
    this.#host = host
  }

  /** The end of the hold (Unix ms); 0: no hold. */
  get heldUntil(): number {
    return this.#heldUntil
  }

  /** Whether the gate has no more effect: its hold has ended, and all calls that waited have ended. */
  get isOver(): boolean {
    return this.#heldUntil === 0 && this.#underWay === 0 && this.#calls.isEmpty
  }

  /** Starts nothing before `until` (Unix ms); 0 lifts the hold. */
  hold(until: number): void {
    this.#heldUntil = until
    this.#tick()
  }

  /** Adds a call, which learns when it may start; null: the queue is full. */
  enter({ group, since, ready }: Asked): Call | null {
    const call: Call = new Call({ group, since, bytes: 0, start: () => this.#answer(call, call) })
    if (!this.#calls.add(call)) return null
    this.#waiting.set(call, ready)
    if (this.#waiting.size === 1) this.#lookAt = this.#host.now() + lookEveryMs
    this.#tick()
    return call
  }

  /** The caller does not wait any more: removes the call from the queue, or gives back its permit if it has one. */
  withdraw(call: Call): void {
    if (!this.#calls.remove(call)) return this.left(call, "unsent")
    this.#waiting.delete(call)
    this.#tick()
  }

  /** A call that had a permit has ended. */
  left(call: Call, how: Ending): void {
    if (call.departure === null) return
    this.#underWay--
    this.#limit.ended(how, call.departure, this.#host.now())
    call.departure = null
    this.#tick()
  }

  #answer(call: Call, permit: Call | "look"): void {
    const ready = this.#waiting.get(call)
    this.#waiting.delete(call)
    ready?.(permit)
  }

  #tick(): void {
    this.#stop()
    const now = this.#host.now()
    if (this.#heldUntil !== 0 && this.#heldUntil <= now) {
      this.#heldUntil = 0
      this.#limit.restart()
    }
    while (this.#heldUntil === 0 && !this.#calls.isEmpty && this.#underWay < this.#limit.value) {
      const call = this.#calls.next()!
      this.#underWay++
      call.departure = this.#limit.begun(now, this.#underWay)
      call.start(now)
    }
    // Calls that wait for others to end need no timer. A callback may have called this method again meanwhile, and have set a
    // timer.
    if (this.#heldUntil === 0 || this.#calls.isEmpty) return
    this.#stop()
    this.#stopTimer = this.#host.after(Math.min(this.#heldUntil, this.#lookAt) - now, () => this.#timeIsUp())
  }

  #stop(): void {
    this.#stopTimer?.()
    this.#stopTimer = null
  }

  #timeIsUp(): void {
    this.#stopTimer = null
    const now = this.#host.now()
    if (this.#heldUntil > now && this.#lookAt <= now) {
      this.#lookAt = now + lookEveryMs
      const [first] = this.#waiting.keys()
      if (first !== undefined) {
        this.#calls.remove(first)
        this.#answer(first, "look")
      }
    }
    this.#tick()
  }
}
