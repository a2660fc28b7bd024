import type { BrokerRefusal } from "@tidegate/connectors/Brokers"
import type { SessionFailure } from "@tidegate/connectors/Failure"
import type { Received, Settled, SubscriptionPlaces, SubscriptionProtocol } from "@tidegate/connectors/Subscriptions"
import type { Guard } from "@tidegate/egress/Egress"

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
  readonly subscribe: (guard: Guard, place: SubscriptionPlaces[P], events: ConsumerEvents) => Consumer
}
