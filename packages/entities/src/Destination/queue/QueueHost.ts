import type { DeliveryItem } from "./DeliveryItem.ts"
import type { LineReads } from "./OrderingKeys.ts"
import type { FairSemaphore } from "@tidegate/runtime/FairSemaphore"
import type { SharedBytes } from "@tidegate/runtime/SharedBytes"

/** What a lane's connection (and the destination behind it) allows right now. */
export type ConnectionQueueState = "open" | "paused" | "cancelled"

/** What the queue is told about one connection. */
export interface ConnectionQueueRules {
  readonly state: ConnectionQueueState
  /** Whatever was created up to then (Unix ms) is cancelled, even on a lane that is open again. */
  readonly cancelBefore: number
  /** How events of one key are kept in order; "none": they were, and what is in line still is. Left out: they never were. */
  readonly order?: "block" | "skip" | "none"
}

/** A target that may be away. */
export interface TargetAvailability {
  /** Since when it is (Unix ms); null: it is there. */
  readonly awaySince: number | null
  /** How long an event that is due waits for it (ms), before its attempt is made all the same. */
  readonly patience: number
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
  readonly permits: FairSemaphore
  readonly windowBytes: SharedBytes
  /**
   * Makes one attempt and records it; answers with `ended` (the exchange is over) and then `recorded`, or with `abandoned`
   * or `lost`. Throws only when it will not answer.
   */
  readonly deliver: (item: DeliveryItem, startedAt: number) => void
  /** Whether the process writes down that it has this delivery in hand: see `InHand.ts`. */
  readonly isWrittenDown: (item: DeliveryItem) => boolean
  /** Does so, then calls back: when it may begin, or that it may not. */
  readonly takeInHand: (item: DeliveryItem, done: (taken: boolean) => void) => void
  /** A delivery that was to start does not. */
  readonly letGo: (item: DeliveryItem) => void
  /** Durably marks the start of a paced delivery, then calls back. */
  readonly mark: (item: DeliveryItem, startedAt: number, done: (marked: boolean) => void) => void
  /** Reads due rows that are not in memory; answers with `refilled`. */
  readonly refill: () => void
  /** An event of a connection it was not told about: have it told (`configure`). */
  readonly unknown: (connectionId: string) => void
  /** Rows of cancelled lanes were met: have them cancelled in SQL. */
  readonly cancel: (connectionId: string) => void
  /** The time returned by `nextAt` changed, or the queue became idle. */
  readonly changed: () => void
  /** Something threw that must not: to be told to the operators. The queue goes on. */
  readonly brokeDown: (cause: unknown) => void
}
