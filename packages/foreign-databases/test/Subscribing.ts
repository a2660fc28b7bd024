import { Effect, Layer } from "effect"
import {
  type Received,
  type Subscription,
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

/** A fake broker until the scope closes. */
export const running = <B extends { readonly close: () => Promise<void> }>(start: () => Promise<B>) =>
  Effect.acquireRelease(Effect.promise(start), (broker) => Effect.promise(() => broker.close()))

/** The next messages, which stay unsettled. */
export const nextOf = Effect.fnUntraced(function* ({ take }: Pick<Subscription, "take">, count: number) {
  const all: Array<Received> = []
  while (all.length < count) all.push(...(yield* take))
  return all
})

/** The next messages, each of which is stored as it comes. */
export const stored = Effect.fnUntraced(function* ({ settle, take }: Subscription, count: number) {
  const all: Array<Received> = []
  while (all.length < count) {
    const received = yield* take
    yield* settle(storing(received))
    all.push(...received)
  }
  return all
})

export const seen = (what: string, read: () => boolean) => Effect.promise(() => eventually(what, () => read() || null))

const receipts = (received: ReadonlyArray<Received>) => received.map(({ receipt }) => receipt)
export const rejecting = (received: ReadonlyArray<Received>) => ({ stored: [], rejected: receipts(received) })
export const storing = (received: ReadonlyArray<Received>) => ({ stored: receipts(received), rejected: [] })
export const numbered = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ id: `m${n}`, body: `{"n":${n}}` }))
