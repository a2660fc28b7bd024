import { Deferred, Duration, Effect, Exit, Latch, Layer, type Scope } from "effect"
import type { BrokerRefusal } from "@tidegate/connectors/Brokers"
import { SessionFailure } from "@tidegate/connectors/Failure"
import {
  type Received,
  type Subscription,
  type SubscriptionPlaces,
  type SubscriptionProtocol,
  Subscriptions
} from "@tidegate/connectors/Subscriptions"
import { Egress } from "@tidegate/egress/Egress"
import { amqpConsumer } from "./AmqpConsumer.ts"
import type { Subscribing } from "./Consumer.ts"
import { kafkaConsumer } from "./KafkaConsumer.ts"
import { natsConsumer } from "./NatsConsumer.ts"
import { pubSubConsumer } from "./PubSubConsumer.ts"
import { redisConsumer } from "./RedisConsumer.ts"
import { sqsConsumer } from "./SqsConsumer.ts"

const protocols: { readonly [P in SubscriptionProtocol]: Subscribing<P> } = {
  amqp: amqpConsumer,
  nats: natsConsumer,
  sqs: sqsConsumer,
  redis: redisConsumer,
  kafka: kafkaConsumer,
  pubsub: pubSubConsumer
}

const notSubscribed = new SessionFailure({
  code: "TIMEOUT",
  message: "not connected, signed in and subscribed within config.subscription.connect_timeout",
  final: false,
  broken: true
})

const open = Effect.fnUntraced(function* <P extends SubscriptionProtocol>(
  egress: Egress["Service"],
  protocol: P,
  place: SubscriptionPlaces[P]
): Effect.fn.Return<Subscription, BrokerRefusal | SessionFailure, Scope.Scope> {
  const ended = Deferred.makeUnsafe<never, BrokerRefusal | SessionFailure>()
  const subscribed = Deferred.makeUnsafe<void, BrokerRefusal | SessionFailure>()
  /** Open: messages may have arrived since somebody last looked. */
  const arrived = Latch.makeUnsafe()
  const consumer = yield* Effect.acquireRelease(
    Effect.sync(() =>
      protocols[protocol].subscribe(egress, place, {
        subscribed: () => Deferred.doneUnsafe(subscribed, Exit.void),
        arrived: () => arrived.openUnsafe(),
        ended: (failure) => {
          Deferred.doneUnsafe(subscribed, Exit.fail(failure))
          Deferred.doneUnsafe(ended, Exit.fail(failure))
        }
      })
    ),
    (consumer) => Effect.sync(() => consumer.close())
  )
  yield* Deferred.await(subscribed).pipe(
    Effect.timeoutOrElse({
      duration: Duration.seconds(place.connectTimeout),
      orElse: () => Effect.fail(notSubscribed)
    })
  )
  const next: Effect.Effect<ReadonlyArray<Received>> = Effect.suspend(() => {
    arrived.closeUnsafe()
    const taken = consumer.taken()
    return taken.length > 0 ? Effect.succeed(taken) : Effect.andThen(arrived.await, next)
  })
  return {
    take: Effect.raceFirst(Deferred.await(ended), next),
    settle: (settled) => Effect.sync(() => consumer.settle(settled))
  }
})

/** Opens subscriptions through the guard. How many there may be, the caller decides. */
export const layer: Layer.Layer<Subscriptions, never, Egress> = Layer.effect(
  Subscriptions,
  Effect.map(Egress, (egress) => Subscriptions.of({ open: (protocol, place) => open(egress, protocol, place) }))
)
