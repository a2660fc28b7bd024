import { Effect, Layer } from "effect"
import {
  type Received,
  type SubscriptionPlaces,
  type SubscriptionProtocol,
  Subscriptions
} from "@tidegate/connectors/Subscriptions"
import { Egress } from "@tidegate/egress/Egress"
import { eventually } from "../../../test/support/Waiting.ts"
import { loopbackOnly } from "../../egress/src/Guard.ts"
import * as BrokerSubscriptions from "../src/BrokerSubscriptions.ts"

/** What suites of subscriptions have in common. */

const over = (allow: ReadonlyArray<string>) =>
  BrokerSubscriptions.layer.pipe(Layer.provide(Egress.layer({ allow, resolve: () => Promise.resolve(["127.0.0.1"]) })))

/** Subscribes at a broker on this machine, which has any name. */
export const opened = <P extends SubscriptionProtocol>(
  protocol: P,
  place: SubscriptionPlaces[P],
  allow: ReadonlyArray<string> = loopbackOnly
) =>
  // For as long as the subscription: the end of the way out ends what is under way.
  Effect.flatMap(Layer.build(over(allow)), (context) =>
    Effect.provide(
      Subscriptions.use((subscriptions) => subscriptions.open(protocol, place)),
      context
    )
  )

export const seen = (what: string, read: () => boolean) => Effect.promise(() => eventually(what, () => read() || null))

const receipts = (received: ReadonlyArray<Received>) => received.map(({ receipt }) => receipt)
export const rejecting = (received: ReadonlyArray<Received>) => ({ stored: [], rejected: receipts(received) })
export const storing = (received: ReadonlyArray<Received>) => ({ stored: receipts(received), rejected: [] })
export const numbered = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ id: `m${n}`, body: `{"n":${n}}` }))
