import type { BrokerRefusal } from "@tidegate/connectors/Brokers"
import type { SessionFailure } from "@tidegate/connectors/Failure"
import type { Received, Settled, SubscriptionPlaces, SubscriptionProtocol } from "@tidegate/connectors/Subscriptions"
import type { Egress } from "@tidegate/egress/Egress"

/** Headers of a message that are read, and the longest value of one, in characters. Others are left out. */
export const mostHeaders = 50
export const longestValue = 1_024

/** The names by which a message says what its body is, where the protocol has no place of its own for it. */
export const typeNames: ReadonlyArray<string> = ["content_type", "content-type"]
export const encodingNames: ReadonlyArray<string> = ["content_encoding", "content-encoding"]

/** A subscription that is connected. Its messages wait in it, bounded in number and bytes, until they are taken. */
export interface Consumer {
  /** The messages that wait; empty: none. */
  readonly taken: () => ReadonlyArray<Received>
  readonly settle: (settled: Settled) => void
  readonly close: () => void
}

export interface ConsumerEvents {
  /** The subscription is there. */
  readonly subscribed: () => void
  /** There is something to take. */
  readonly arrived: () => void
  /** Called once, however it ends. */
  readonly ended: (failure: BrokerRefusal | SessionFailure) => void
}

export interface Subscribing<P extends SubscriptionProtocol> {
  readonly subscribe: (egress: Egress["Service"], place: SubscriptionPlaces[P], events: ConsumerEvents) => Consumer
}
