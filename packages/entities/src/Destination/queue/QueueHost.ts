import type { DeliveryItem } from "./DeliveryItem.ts"
import type { KeyReads } from "./OrderingKeys.ts"
import type { FairSemaphore } from "@tidegate/runtime/FairSemaphore"
import type { SharedBytes } from "@tidegate/runtime/SharedBytes"

/** What a connection and its destination allow now. */
export type ConnectionQueueState = "open" | "paused" | "cancelled"

/** The settings of one connection for the queue. */
export interface ConnectionQueueRules {
  readonly state: ConnectionQueueState
  /** Events created up to this time (Unix ms) are cancelled, even if the connection is open again. */
  readonly cancelBefore: number
  /**
   * How events of one ordering key are ordered. "none": ordering was switched off, but stored events may still have a position.
   * Absent: they never were ordered.
   */
  readonly order?: "block" | "skip" | "none"
}

/** A target that may be unavailable. */
export interface TargetAvailability {
  /** Since when it is unavailable (Unix ms); null: it is available. */
  readonly awaySince: number | null
  /** How long a due event waits for it (ms) before its attempt is made anyway. */
  readonly patience: number
}

/** Consumers that fetch what is delivered. While there is none, all events stay in SQL, as for a paused connection. */
export interface Consumers {
  readonly areThere: boolean
  /** How many events they would take now. */
  readonly demand: number
}

/** The result of recording an attempt. */
export type AttemptResult =
  | { readonly kind: "finished" }
  | { readonly kind: "retry"; readonly item: DeliveryItem }
  | { readonly kind: "superseded" }

/** What a prefetch reads: due rows or not, and the ordering keys of each connection. */
export interface QueueReads {
  readonly due: boolean
  readonly keys: ReadonlyMap<string, KeyReads>
}

/**
 * The events read for a connection by ordering key: for each key the first events that may go one after the other, and whether it
 * has more.
 */
export interface KeysRead {
  readonly connectionId: string
  readonly keys: ReadonlyArray<{
    readonly key: string
    readonly items: ReadonlyArray<DeliveryItem>
    readonly more: boolean
  }>
  /** How far the scan of all keys got; null: to the end; absent: there was no scan. */
  readonly scannedTo?: string | null | undefined
}

/** The environment of a queue: clock, network, SQL. All calls return at once. */
export interface QueueHost {
  readonly now: () => number
  /** Whether this process still holds the shard's lease; when not, nothing starts. */
  readonly mayDeliver: () => boolean
  readonly permits: FairSemaphore
  readonly windowBytes: SharedBytes
  /**
   * Makes one attempt and records it. It reports `ended` (the exchange is over) and then `recorded`, or `abandoned`, or `lost`.
   * It throws only when it will report nothing.
   */
  readonly deliver: (item: DeliveryItem, startedAt: number) => void
  /** Whether this delivery has to be recorded as work in hand: see `InHand.ts`. */
  readonly mustBeRecorded: (item: DeliveryItem) => boolean
  /** Records it, then calls back with whether it may begin. */
  readonly takeInHand: (item: DeliveryItem, done: (taken: boolean) => void) => void
  /** A delivery that was to start does not. */
  readonly letGo: (item: DeliveryItem) => void
  /** Stores the start of a rate-limited delivery, then calls back. */
  readonly mark: (item: DeliveryItem, startedAt: number, done: (marked: boolean) => void) => void
  /** Reads events that are not in memory (`takeReads`); reports `prefetched` or `prefetchFailed`. */
  readonly prefetch: () => void
  /** An event has a connection whose settings the queue does not have: they are to be loaded (`configure`). */
  readonly unknown: (connectionId: string) => void
  /** Rows of cancelled connections were found: they are to be cancelled in SQL. */
  readonly cancel: (connectionId: string) => void
  /** The time returned by `nextAt` changed, or the queue became idle. */
  readonly changed: () => void
  /** An unexpected exception, to be reported to the operators. The queue goes on. */
  readonly brokeDown: (cause: unknown) => void
}
