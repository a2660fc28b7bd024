import type { StoredHead } from "@tidegate/model/Message"

/** What the journal stores of a request. */

/** An event that a request becomes on one connection. */
export interface RoutedEvent {
  readonly id: string
  readonly connectionId: string
  readonly destinationId: string
  readonly shard: number
  /** Unix ms; later than the request's time when a delay rule says so. */
  readonly dueAt: number
  /** The ordering key of the event; null: it waits for no other event. */
  readonly orderingKey: string | null
}

export interface IgnoredEvent {
  readonly id: string
  readonly connectionId: string
  readonly cause: "FILTERED" | "HANDSHAKE"
  /** JSON. */
  readonly meta: string
}

/** A routing job of a connection with slow rules, and the shard of the connection's actor. */
export interface RoutingJob {
  readonly connectionId: string
  readonly shard: number
  /** Null: its connection has no ordering. Otherwise the ordering key of its event; null: it has none. */
  readonly ordering: { readonly key: string | null } | null
}

/** A run that a request starts, and the shard of the workflow's actor. */
export interface RoutedRun {
  readonly id: string
  readonly workflowId: string
  readonly shard: number
  /** The version of the workflow, which the run uses until its end. */
  readonly version: number
  readonly steps: number
}

/** A workflow with steps that may wait for the request, and the shard of its actor. */
export interface AwaitingWorkflow {
  readonly workflowId: string
  readonly shard: number
}

/** A request to be stored, with the results of its routing. Times are Unix milliseconds. */
export interface RequestRecord extends StoredHead {
  readonly id: string
  readonly teamId: string
  readonly sourceId: string
  /** The version of the source's snapshot that was used for the routing. */
  readonly version: number
  readonly status: "accepted" | "rejected"
  readonly verified: boolean
  readonly rejectionCause: string | null
  /** The encrypted credentials that its sender presented: headers and query have masks in their place. Null: none. */
  readonly presented: string | null
  readonly body: Uint8Array | null
  readonly bodySize: number
  readonly externalId: string | null
  readonly originalIp: string | null
  readonly ingestedAt: number
  readonly events: ReadonlyArray<RoutedEvent>
  readonly ignored: ReadonlyArray<IgnoredEvent>
  readonly pending: ReadonlyArray<RoutingJob>
  readonly runs: ReadonlyArray<RoutedRun>
  /** Absent: no workflow has steps that may wait for it. */
  readonly awaiting?: ReadonlyArray<AwaitingWorkflow>
  /** The number of events that go through a tunnel. */
  readonly cliEvents: number
  /** It follows from a system event, so its rejection is not reported. */
  readonly silent?: boolean
}
