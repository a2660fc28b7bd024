import { Effect } from "effect"
import { yieldIfSpent } from "@tidegate/runtime/EventLoopBudget"
import type { DecidedJob } from "@tidegate/storage/journal/RoutingRecord"
import type { DedupeWindow } from "@tidegate/storage/delivery/RoutingJobs"
import { type Decided, type Decider, eventIdOf, ignored, nothing, unaskedMs } from "./Decide.ts"
import { parseLarge, type PendingRequest } from "./PendingRequest.ts"

/** Requests with the same deduplication key, oldest first. A request without a key is a group of its own. */
export interface Group {
  readonly key: string | null
  readonly requests: ReadonlyArray<PendingRequest>
}

export const groupByKey = Effect.fnUntraced(function* (
  { deduplication }: Decider,
  requests: ReadonlyArray<PendingRequest>
): Effect.fn.Return<ReadonlyArray<Group>> {
  if (deduplication === null) return requests.map((request) => ({ key: null, requests: [request] }))
  const groups: Array<Group> = []
  const byKey = new Map<string, Array<PendingRequest>>()
  let since = performance.now()
  for (const request of requests) {
    // A replay is never a duplicate.
    if (!request.isReplay) yield* parseLarge(request)
    const key = request.isReplay ? null : deduplication.key(request.input)
    if (performance.now() - since > unaskedMs) {
      yield* yieldIfSpent(since)
      since = performance.now()
    }
    const known = key === null ? undefined : byKey.get(key)
    if (known !== undefined) {
      known.push(request)
      continue
    }
    const own = [request]
    if (key !== null) byKey.set(key, own)
    groups.push({ key, requests: own })
  }
  return groups
})

/**
 * Decisions about the requests of one key, made one after the other: `next`, `take`, `next`, … Only a request that becomes an event opens a
 * deduplication window. If its transformation fails or a filter stops it, the next request of the key may become an event, because
 * nothing was delivered yet.
 */
export class GroupDecisions {
  /** Decisions about the first requests of the group. */
  readonly decided: Array<DecidedJob> = []
  readonly group: Group
  readonly #decider: Decider
  #window: DedupeWindow | undefined
  #isOver = false

  /** `stored`: the window that an earlier request of the key has opened. */
  constructor(decider: Decider, group: Group, stored: DedupeWindow | undefined) {
    this.#decider = decider
    this.group = group
    this.#window = stored
  }

  /** The next request to decide about. Duplicates are decided here. Null: there is none. */
  next(): PendingRequest | null {
    const { requests } = this.group
    while (!this.#isOver && this.decided.length < requests.length) {
      const request = requests[this.decided.length]!
      const window = this.#window
      if (window === undefined || request.ingestedAt >= window.expires_at) return request
      const meta = [{ key: window.key, first_request_id: window.request_id }]
      const fate = ignored(eventIdOf(this.#decider, request), "DEDUPLICATED", meta)
      this.decided.push({ requestId: request.id, counted: request.counted, fate, ...nothing })
    }
    return null
  }

  /** The decision about that request. */
  take(decided: Decided): void {
    if (decided === null) {
      // Later requests of the key wait too: whether they are duplicates depends on this one.
      this.#isOver = true
      return
    }
    const { key, requests } = this.group
    const { counted, id: requestId, ingestedAt } = requests[this.decided.length]!
    if (decided.fate.kind !== "event" || key === null) {
      this.decided.push({ requestId, counted, ...decided })
      return
    }
    const expiresAt = ingestedAt + this.#decider.windowMs
    this.#window = { key, request_id: requestId, expires_at: expiresAt }
    this.decided.push({ requestId, counted, ...decided, opens: { key, expiresAt } })
  }
}
