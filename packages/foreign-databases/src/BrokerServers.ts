import { Deferred, Duration, Effect, Exit, Layer, Scope, Semaphore } from "effect"
import {
  type BrokerProtocol,
  type BrokerProtocols,
  type BrokerRefusal,
  Brokers,
  type Publish
} from "@tidegate/connectors/Brokers"
import { cancelled, SessionFailure } from "@tidegate/connectors/Failure"
import { Egress, type Guard } from "@tidegate/egress/Egress"
import { amqp } from "./AmqpPublisher.ts"
import { kafka } from "./KafkaPublisher.ts"
import { mysql } from "./MysqlPublisher.ts"
import { nats } from "./NatsPublisher.ts"
import { type Idle, Places } from "./Places.ts"
import type { Protocol, Publisher } from "./Publisher.ts"
import { redis } from "./RedisPublisher.ts"
import { smtp } from "./SmtpPublisher.ts"

/** Default number of connections of a process to message brokers. */
const usualMost = 256

/** How long a send waits for a permit: less than the timeout of a send, so that the failure names the missing permit. */
const patience = "20 seconds"

const protocols: { readonly [P in BrokerProtocol]: Protocol<P> } = { amqp, redis, nats, mysql, smtp, kafka }

/** Nothing was sent, and the failure says nothing about the broker. */
const noPlace = new SessionFailure({
  code: "INTERNAL_ERROR",
  message: "the gateway has too many connections to message brokers: none was free for this one",
  final: false,
  broken: false,
  unsent: true
})

const notSignedIn = new SessionFailure({
  code: "TIMEOUT",
  message: "not connected and signed in within config.connect_timeout",
  final: false,
  broken: true
})

interface Connection<M> extends Idle {
  readonly publisher: Publisher<M>
  /** Messages under way. */
  uses: number
}

/** Connects and signs in; the connection closes with the scope. */
const connect = Effect.fnUntraced(function* <P extends BrokerProtocol>(
  guard: Guard,
  protocol: P,
  place: BrokerProtocols[P]["place"]
) {
  const signedIn = Deferred.makeUnsafe<void, BrokerRefusal | SessionFailure>()
  const publisher = yield* Effect.acquireRelease(
    Effect.sync(() =>
      protocols[protocol].connect(guard, place, (failure) =>
        Deferred.doneUnsafe(signedIn, failure === null ? Exit.void : Exit.fail(failure))
      )
    ),
    (publisher) => Effect.sync(() => publisher.close())
  )
  yield* Deferred.await(signedIn).pipe(
    Effect.timeoutOrElse({
      duration: Duration.seconds(place.connectTimeout),
      orElse: () => Effect.fail(notSignedIn)
    })
  )
  return publisher
})

const published = <M>(
  { publisher }: Connection<M>,
  message: M,
  mayStart: () => boolean
): Effect.Effect<string, BrokerRefusal | SessionFailure> =>
  Effect.callback((resume) => {
    // Checked again, because getting a connection may have taken longer than the lease lasts.
    if (!mayStart()) return resume(Effect.fail(cancelled))
    const cancel = publisher.publish(
      message,
      (result) => resume(typeof result === "string" ? Effect.succeed(result) : Effect.fail(result)),
      mayStart
    )
    return Effect.sync(cancel)
  })

/** Publishes over the one connection of a destination, which closes with the scope. */
const open = Effect.fnUntraced(function* <P extends BrokerProtocol>(
  guard: Guard,
  places: Places<Connection<never>>,
  protocol: P,
  place: BrokerProtocols[P]["place"]
): Effect.fn.Return<Publish<BrokerProtocols[P]["message"]>, never, Scope.Scope> {
  type Own = Connection<BrokerProtocols[P]["message"]>
  const scope = yield* Effect.scope
  const share = places.share()
  const permit = places
    .take(share)
    .pipe(Effect.timeoutOrElse({ duration: patience, orElse: () => Effect.fail(noPlace) }))
  const turn = Semaphore.makeUnsafe(1)
  let held: Own | null = null

  const opened = Effect.gen(function* () {
    const own = yield* Scope.fork(scope)
    return yield* Effect.gen(function* () {
      yield* permit
      const publisher = yield* connect(guard, protocol, place)
      const connection: Own = {
        publisher,
        uses: 0,
        leave: () => {
          if (held === connection) held = null
        },
        close: Scope.close(own, Exit.void)
      }
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          places.busy(connection)
          connection.leave()
        })
      )
      held = connection
      return connection
    }).pipe(
      Scope.provide(own),
      Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : Scope.close(own, exit)))
    )
  })

  const connected = Effect.suspend((): typeof opened => {
    if (held === null) return opened
    if (!held.publisher.isOpen()) return Effect.andThen(held.close, opened)
    places.busy(held)
    return Effect.succeed(held)
  })

  const given = (connection: Own): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (--connection.uses > 0) return Effect.void
      const next = connection.publisher.isOpen() ? places.idle(share, connection) : "close"
      return next === "close" ? connection.close : Effect.void
    })

  return (message, mayStart) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(restore(turn.withPermit(connected)), (connection) => {
        connection.uses++
        return restore(published(connection, message, mayStart)).pipe(Effect.ensuring(given(connection)))
      })
    )
})

/** `most`: connections of this process to message brokers. */
export const layer = ({ most = usualMost } = {}): Layer.Layer<Brokers, never, Egress> =>
  Layer.effect(
    Brokers,
    Effect.map(Egress, ({ guard }) => {
      const places = new Places<Connection<never>>(most)
      return Brokers.of({ open: (protocol, place) => open(guard, places, protocol, place) })
    })
  )
