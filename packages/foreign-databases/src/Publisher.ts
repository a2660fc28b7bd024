import type { BrokerProtocol, BrokerProtocols, BrokerRefusal } from "@tidegate/connectors/Brokers"
import type { SessionFailure } from "@tidegate/connectors/Failure"
import type { Guard } from "@tidegate/egress/Egress"

/** How a message ended: what the broker calls it, or why it has not taken it. */
export type Published = string | BrokerRefusal | SessionFailure

/** A connection that is signed in. */
export interface Publisher<in M> {
  readonly isOpen: () => boolean
  /**
   * `done` is called once, and never inside this call. The returned function stops waiting: the message may be published nevertheless.
   * `mayStart`: whether it may be sent still, for a publisher that holds messages back.
   */
  readonly publish: (message: M, done: (result: Published) => void, mayStart: () => boolean) => () => void
  readonly close: () => void
}

export interface Protocol<P extends BrokerProtocol> {
  /** `signedIn` is called once, and never inside this call: null if the connection can be used. */
  readonly connect: (
    guard: Guard,
    place: BrokerProtocols[P]["place"],
    signedIn: (failure: BrokerRefusal | SessionFailure | null) => void
  ) => Publisher<BrokerProtocols[P]["message"]>
}
