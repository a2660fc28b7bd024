import type { ByteShare } from "@tidegate/runtime/SharedBytes"
import { type PendingRequest, weightOf } from "./PendingRequest.ts"

/** The requests that a connection was handed and has not done with, within its share of what all may hold. */
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

  /** The team of those that wait. */
  get teamId(): string | undefined {
    const [first] = this.#waiting.values()
    return first?.teamId
  }

  /** False when there is no room for it. */
  add(request: PendingRequest): boolean {
    if (this.#waiting.has(request.id)) return true
    const weight = weightOf(request)
    if (!this.#bytes.hasRoom(weight)) return false
    this.#bytes.hold(weight)
    this.#held.add(request)
    this.#waiting.set(request.id, request)
    return true
  }

  /** The next ones, in the order in which they came; they are held until they are done with. */
  take(most: number): Array<PendingRequest> {
    const taken: Array<PendingRequest> = []
    for (const [id, request] of this.#waiting) {
      if (taken.length === most) break
      this.#waiting.delete(id)
      taken.push(request)
    }
    return taken
  }

  readonly done = (request: PendingRequest): void => {
    if (this.#held.delete(request)) this.#bytes.release(weightOf(request))
  }

  /** It is worked off by its row. */
  drop(id: string): void {
    const request = this.#waiting.get(id)
    if (request === undefined) return
    this.#waiting.delete(id)
    this.done(request)
  }

  /** Gives up those that wait: they are in SQL. */
  empty(): void {
    for (const id of this.#waiting.keys()) this.drop(id)
  }

  /** Gives up everything. */
  close(): void {
    this.empty()
    this.#held.forEach(this.done)
  }
}
