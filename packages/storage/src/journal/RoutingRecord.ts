import type { StoredHead, Values } from "@tidegate/model/Message"

/** The rows that the journal stores for the results of routing jobs. */

/** The result of a transformation; `body`: null if it did not change the body. */
export interface TransformedData extends StoredHead {
  readonly id: string
  /** The headers as decoded values. */
  readonly values: Values
  readonly body: Uint8Array | null
  readonly bodySize: number
}

/** One execution of a transformation. */
export interface ExecutionRecord {
  readonly id: string
  readonly transformationId: string
  readonly codeHash: string
  readonly errorCode: string | null
  readonly errorMessage: string | null
  readonly logLevel: string
  readonly failed: boolean
  /** JSON array of {type, message}. */
  readonly logs: string
  /** Microseconds. */
  readonly duration: number
  readonly memoryBytes: number
}

/** The decision about one routing job. `eventId` and `ignoredId` are derived, so a repeated decision finds them stored. */
export type Fate =
  | { readonly kind: "event"; readonly eventId: string; readonly dueAt: number }
  | { readonly kind: "ignored"; readonly ignoredId: string; readonly cause: string; readonly meta: string }
  /** The connection no longer takes requests. */
  | { readonly kind: "dropped" }

export interface DecidedJob {
  readonly requestId: string
  /** Whether the counts of its request already include it as an event. */
  readonly counted: boolean
  readonly fate: Fate
  /** Null when no transformation ran. */
  readonly execution: ExecutionRecord | null
  /** Null when nothing was transformed. */
  readonly transformed: TransformedData | null
  /** The deduplication window that starts with this request. */
  readonly opens: { readonly key: string; readonly expiresAt: number } | null
}

/**
 * The settings of a decision that was made with settings read before the jobs. The results are stored only if these settings
 * are still current. They are the version of the source, which changes with its connections and their destinations, and the
 * state of the transformation.
 */
export interface Basis {
  readonly sourceId: string
  readonly version: number
  /** Null: the rules name no transformation. */
  readonly transformation: { readonly id: string; readonly mark: string } | null
}

/** The results of routing jobs of one connection, which are stored together or not at all. Times are Unix milliseconds. */
export interface RoutingResults {
  readonly connectionId: string
  readonly destinationId: string
  /** Whether its deliveries go through a tunnel: then their requests count them. */
  readonly isTunnel: boolean
  /** The shard of the destination's actor. */
  readonly shard: number
  readonly now: number
  /** Null: the settings were read after the routing jobs. */
  readonly basis: Basis | null
  /** Whether some of these routing jobs have an ordering position: see `OrderingKeys.ts`. */
  readonly inOrder: boolean
  readonly decided: ReadonlyArray<DecidedJob>
}
