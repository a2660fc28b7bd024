import { SharedBytes } from "@tidegate/runtime/SharedBytes"
import { Call, Calls } from "../limits/Calls.ts"
import { ConcurrencyLimit, type Ending } from "../limits/ConcurrencyLimit.ts"

/** While calls are held, one of them looks so often (ms) whether they still are: somebody may have lifted it. */
const lookEveryMs = 5_000

interface Host {
  readonly now: () => number
  /** Calls back after so many ms; answers what stops it. */
  readonly after: (ms: number, then: () => void) => () => void
}

interface Asked {
  /** Whose: calls of one line wait behind each other, and lines take turns. */
  readonly line: string
  /** Since when it waits (Unix ms). */
  readonly since: number
  /** Called once: it has a place, to be given back (`left`); or it is to look whether it still is held, and ask again. */
  readonly told: (place: Call | "look") => void
}

/**
 * Lets the calls of one target begin: none while it takes nothing; then one, and twice as many with each answer's time, as a destination's queue does
 * (`ConcurrencyLimit.restart`). Synchronous; what waits here is bounded by `Calls`, and told by whoever asks.
 */
export class TargetGate {
  readonly #host: Host
  readonly #limit = new ConcurrencyLimit(null)
  readonly #calls = new Calls(new SharedBytes(Number.POSITIVE_INFINITY).share())
  /** What those are told that wait. */
  readonly #told = new Map<Call, Asked["told"]>()
  #heldUntil = 0
  #underWay = 0
  #lookAt = 0
  #stopTimer: (() => void) | null = null

  constructor(host: Host) {
    this.#host = host
  }

  /** Until when nothing begins (Unix ms); 0: it may. */
  get heldUntil(): number {
    return this.#heldUntil
  }

  /** Whether it keeps nobody back any more: its hold is over, and everybody has gone through who waited for that. */
  get isOver(): boolean {
    return this.#heldUntil === 0 && this.#underWay === 0 && this.#calls.isEmpty
  }

  /** Nothing begins before (Unix ms); 0: what was said before holds no more. */
  hold(until: number): void {
    this.#heldUntil = until
    this.#tick()
  }

  /** Takes a call in, to be told when its turn has come; null: there is no room for it. */
  enter({ line, since, told }: Asked): Call | null {
    const call: Call = new Call({ line, since, bytes: 0, start: () => this.#tell(call, call) })
    if (!this.#calls.add(call)) return null
    this.#told.set(call, told)
    if (this.#told.size === 1) this.#lookAt = this.#host.now() + lookEveryMs
    this.#tick()
    return call
  }

  /** Nobody waits for it any more: where it still waits it goes, and else its place is given back. */
  withdraw(call: Call): void {
    if (!this.#calls.remove(call)) return this.left(call, "unsent")
    this.#told.delete(call)
    this.#tick()
  }

  /** A call that had a place is over. */
  left(call: Call, how: Ending): void {
    if (call.departure === null) return
    this.#underWay--
    this.#limit.ended(how, call.departure, this.#host.now())
    call.departure = null
    this.#tick()
  }

  #tell(call: Call, place: Call | "look"): void {
    const told = this.#told.get(call)
    this.#told.delete(call)
    told?.(place)
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
    // Those that wait for others to end need no timer. Whoever was told may have come back here meanwhile, and have set one.
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
      const [first] = this.#told.keys()
      if (first !== undefined) {
        this.#calls.remove(first)
        this.#tell(first, "look")
      }
    }
    this.#tick()
  }
}
