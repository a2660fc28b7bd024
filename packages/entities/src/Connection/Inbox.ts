import type { ByteShare } from "@tidegate/runtime/SharedBytes"
import { type PendingRequest, weightOf } from "./PendingRequest.ts"

/** The requests that were handed to a connection and are not done, within the limit for all connections of the process. */
export class Inbox {
  readonly #bytes: ByteShare
  readonly #waiting = new Map<string, PendingRequest>()
  readonly #held = new Set<PendingRequest>()

  constructor(bytes: ByteShare) {
    this.#bytes = bytes
  }

  get size(): number {
    return this.#waiting.size
  }

  /** The team of the requests that wait. */
  get teamId(): string | undefined {
    const [first] = this.#waiting.values()
    return first?.teamId
  }

  /** False when the limit of memory is reached. */
  add(request: PendingRequest): boolean {
    if (this.#waiting.has(request.id)) return true
    const weight = weightOf(request)
    if (!this.#bytes.hasRoom(weight)) return false
    this.#bytes.hold(weight)
    this.#held.add(request)
    this.#waiting.set(request.id, request)
    return true
  }

  /** The next requests in the order of their arrival. They count as held until `done`. */
  take(max: number): Array<PendingRequest> {
    const taken: Array<PendingRequest> = []
    for (const [id, request] of this.#waiting) {
      if (taken.length === max) break
      this.#waiting.delete(id)
      taken.push(request)
    }
    return taken
  }

  readonly done = (request: PendingRequest): void => {
    if (this.#held.delete(request)) this.#bytes.release(weightOf(request))
  }

  /** The request is worked off from its row in SQL instead. */
  drop(id: string): void {
    const request = this.#waiting.get(id)
    if (request === undefined) return
    this.#waiting.delete(id)
    this.done(request)
  }

  /** Drops the requests that wait: they are in SQL. */
  empty(): void {
    for (const id of this.#waiting.keys()) this.drop(id)
  }

  /** Drops everything. */
  close(): void {
    this.empty()
    this.#held.forEach(this.done)
  }
}
