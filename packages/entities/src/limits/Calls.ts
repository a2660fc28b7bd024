import type { ByteShare } from "@tidegate/runtime/SharedBytes"
import type { Departure } from "./ConcurrencyLimit.ts"

/** This many calls may always wait, whatever the other destinations hold. */
const minWaiting = 16
/** The largest number of waiting calls of one destination. */
const maxWaiting = 1_000

/** A call of a workflow step. Its run stores it: here it only waits for its turn. */
export class Call {
  /**
   * The group of the call: calls of one group wait behind each other, and groups take turns with each other and with connection
   * queues.
   */
  readonly group: string
  /** Since when it has waited (Unix ms), including the time with earlier owners. */
  readonly since: number
  readonly bytes: number
  /** Makes the call; its end is reported to the queue. */
  readonly start: (startedAt: number) => void
  departure: Departure | null = null

  constructor({ bytes, group, since, start }: Pick<Call, "group" | "since" | "bytes" | "start">) {
    this.group = group
    this.since = since
    this.bytes = bytes
    this.start = start
  }
}

/** The waiting calls of one group, the longest waiting first. */
export class CallGroup {
  readonly #waiting: Array<Call> = []
  readonly #taken: (call: Call) => void

  constructor(taken: (call: Call) => void) {
    this.#taken = taken
  }

  get readyCount(): number {
    return this.#waiting.length
  }

  add(call: Call): void {
    const at = this.#waiting.findLastIndex(({ since }) => since <= call.since)
    this.#waiting.splice(at + 1, 0, call)
  }

  remove(call: Call): boolean {
    const at = this.#waiting.indexOf(call)
    if (at >= 0) this.#waiting.splice(at, 1)
    return at >= 0
  }

  shift(): Call | undefined {
    const call = this.#waiting.shift()
    if (call !== undefined) this.#taken(call)
    return call
  }
}

/** The calls of one destination or action that wait for their turn. */
export class Calls {
  readonly #groups = new Map<string, CallGroup>()
  readonly #bytes: ByteShare
  #waiting = 0

  /** `bytes`: shared with the window of events. */
  constructor(bytes: ByteShare) {
    this.#bytes = bytes
  }

  get isEmpty(): boolean {
    return this.#waiting === 0
  }

  /** Groups that have calls. */
  get groups(): Iterable<CallGroup> {
    return this.#groups.values()
  }

  /** Removes and returns the next call: groups take turns. */
  next(): Call | undefined {
    for (const [id, group] of this.#groups) {
      // The group goes to the end, or is removed when it is empty.
      this.#groups.delete(id)
      this.#groups.set(id, group)
      return group.shift()
    }
    return undefined
  }

  /** False: there is no capacity for it. */
  add(call: Call): boolean {
    const fits = this.#waiting < minWaiting || (this.#waiting < maxWaiting && this.#bytes.hasRoom(call.bytes))
    if (!fits) return false
    let group = this.#groups.get(call.group)
    if (group === undefined) {
      group = new CallGroup((taken) => this.#left(taken))
      this.#groups.set(call.group, group)
    }
    this.#bytes.hold(call.bytes)
    this.#waiting++
    group.add(call)
    return true
  }

  /** Returns whether it was still waiting. */
  remove(call: Call): boolean {
    const waited = this.#groups.get(call.group)?.remove(call) ?? false
    if (waited) this.#left(call)
    return waited
  }

  #left({ bytes, group }: Call): void {
    this.#bytes.release(bytes)
    this.#waiting--
    if (this.#groups.get(group)?.readyCount === 0) this.#groups.delete(group)
  }
}
