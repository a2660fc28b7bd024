import { Clock, Context, Effect, Latch, Layer, Schedule, type Schema, type Scope } from "effect"
import { Entity, Sharding } from "effect/cluster"
import type { SqlError } from "effect/sql"
import { type BrokerSource, failureText } from "@tidegate/connectors/BrokerSource"
import { brokerSourceOf } from "@tidegate/connectors/BrokerSources"
import type { BrokerRefusal } from "@tidegate/connectors/Brokers"
import type { SessionFailure } from "@tidegate/connectors/Failure"
import { type Received, Subscriptions } from "@tidegate/connectors/Subscriptions"
import { type PermitsByKey, permitsByKey } from "@tidegate/runtime/FairSemaphore"
import { makeWakeableWorker, type Next } from "@tidegate/runtime/WakeableWorker"
import type { Database } from "@tidegate/storage/Database"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { type Storable, storeMessages } from "@tidegate/storage/subscriptions/Messages"
import {
  type HeldSubscription,
  markConnected,
  markFailed,
  readCredentials,
  readSubscription
} from "@tidegate/storage/subscriptions/SubscriptionWork"
import { metrics } from "@tidegate/telemetry/Metrics"
import { wakeUps } from "../dispatch/WakeUps.ts"
import { Lease } from "../Lease.ts"
import { Loops } from "../Loops.ts"
import { replayRouting } from "../Replay.ts"
import { shardOf } from "../Shards.ts"
import { requestOf } from "./MessageRequest.ts"
import { makeAccess } from "./SubscriptionAccess.ts"
import { SubscriptionEntity } from "./SubscriptionProtocol.ts"
import { SubscriptionsUnderWay } from "./SubscriptionsUnderWay.ts"

/** Subscriptions that are connected at the same time in this process, and those of one team: half. Others wait, and teams take turns. */
const Connected = Context.Reference<PermitsByKey>("@tidegate/entities/Subscription/Connected", {
  defaultValue: () => permitsByKey({ permits: 256, perKey: 128 })
})
/** Batches of messages that are stored at the same time in this process: each takes a connection to the database. */
const Stores = Context.Reference<PermitsByKey>("@tidegate/entities/Subscription/Stores", {
  defaultValue: () => permitsByKey({ permits: 4, perKey: 2 })
})

/** The pause (ms) before the first repetition of a connection that has failed. It doubles up to the longest. */
const firstPauseMs = 1_000
const longestPauseMs = 60_000
/** A connection that has lasted so long (ms) was a good one: what fails after it is the first failure. */
const goodMs = 60_000
/** The pause before a batch is stored again. Its messages wait, and the broker delivers no others. */
const storeAgain = Schedule.spaced("1 second")

export const pauseAfter = (failures: number): number =>
  Math.min(firstPauseMs * 2 ** Math.min(failures, 10), longestPauseMs)

/** Its type is one of a newer version. */
const unknownType = "this version of the gateway does not know the type of the source"
const unreadable = "the credentials cannot be decrypted: write them again"

type Failed = BrokerRefusal | SessionFailure
const isBrokers = (failure: Failed | SqlError.SqlError): failure is Failed =>
  failure._tag === "BrokerRefusal" || failure._tag === "SessionFailure"
type Needs = Database | Secrets | Sharding.Sharding

/** What the actors of a process share. */
const makeShared = Effect.gen(function* () {
  return {
    accessOf: yield* makeAccess,
    connected: yield* Connected,
    stores: yield* Stores,
    loops: yield* Loops,
    routing: yield* replayRouting,
    subscriptions: yield* Subscriptions,
    underWay: yield* SubscriptionsUnderWay,
    wakes: yield* wakeUps
  }
})

type Shared = Effect.Success<typeof makeShared>

/** Messages of a batch by what becomes of them. */
const sorted = (received: ReadonlyArray<Received>, loops: Loops) => {
  const storable: Array<Storable> = []
  const stored: Array<number> = []
  const rejected: Array<number> = []
  const rejections: Array<string> = []
  for (const one of received) {
    const request = requestOf(one, loops)
    if (typeof request === "string") {
      rejected.push(one.receipt)
      rejections.push(request)
    } else {
      stored.push(one.receipt)
      storable.push({ id: one.id, message: request })
    }
  }
  return { storable, rejections, settled: { stored, rejected } }
}

/**
 * The actor of a subscription: while its source is enabled it holds the connection, and stores what arrives. A message is settled at its broker
 * after the commit that has stored it. What the actor has in memory the broker delivers again, to this actor or to the next one.
 */
const layerWith = ({ accessOf, connected, loops, routing, stores, subscriptions, underWay, wakes }: Shared) =>
  SubscriptionEntity.toLayer(
    Effect.gen(function* () {
      const { entityId: id } = yield* Entity.CurrentAddress
      const lease = yield* Lease
      const shard = shardOf(yield* Sharding.Sharding, id)
      /** Open: the source may have changed since it was last read. */
      const changed = Latch.makeUnsafe()

      /** Stores a batch. Returns what the broker is to be told; null: the source has changed, or the lease has ended. */
      const stored = Effect.fnUntraced(function* (held: HeldSubscription, received: ReadonlyArray<Received>) {
        const { rejections, settled, storable } = sorted(received, loops)
        const store = Effect.suspend(() =>
          lease.isHeld(shard)
            ? Effect.flatMap(Clock.currentTimeMillis, (now) => storeMessages(held, storable, rejections, routing, now))
            : Effect.succeed(null)
        )
        const done = yield* stores
          .within(held.team_id)(store)
          .pipe(
            Effect.tapError((error) =>
              Effect.logWarning("messages of a subscription could not be stored yet", { source_id: id, error })
            ),
            Effect.retry(storeAgain)
          )
        if (done === null) return null
        metrics.subscriptionMessages.at("stored").add(done.stored)
        metrics.subscriptionMessages.at("duplicate").add(done.duplicates)
        metrics.subscriptionMessages.at("rejected").add(rejections.length)
        return { settled, done }
      })

      /** Ends when the connection fails, or when its messages must not be stored any more. */
      const consume = Effect.fnUntraced(function* (
        held: HeldSubscription,
        row: BrokerSource,
        auth: Schema.JsonObject,
        began: { at: number }
      ): Effect.fn.Return<void, Failed | SqlError.SqlError, Needs | Scope.Scope> {
        const subscription = yield* Effect.provideService(
          row.subscribe(held.settings, auth, yield* accessOf(held, row, auth)),
          Subscriptions,
          subscriptions
        )
        began.at = yield* Clock.currentTimeMillis
        if (!(yield* markConnected(held, began.at))) return
        for (;;) {
          const outcome = yield* stored(held, yield* subscription.take)
          if (outcome === null) return
          yield* subscription.settle(outcome.settled)
          yield* Effect.forEach(outcome.done.connections, wakes.wakeConnection, { concurrency: 16, discard: true })
          yield* Effect.forEach(outcome.done.workflows, wakes.wakeWorkflow, { concurrency: 16, discard: true })
        }
      })

      /** Ends when the source is not any more as it was read. */
      const isChanged = Effect.fnUntraced(function* ({ version }: HeldSubscription) {
        for (;;) {
          yield* changed.await
          changed.closeUnsafe()
          // What cannot be read now is found by the transaction that stores the next message.
          const now = yield* Effect.catch(readSubscription(id), () => Effect.succeed("unknown" as const))
          if (now !== "unknown" && now?.version !== version) return
        }
      })

      const failed = Effect.fnUntraced(function* (held: HeldSubscription, message: string, connectedAt: number) {
        const now = yield* Clock.currentTimeMillis
        const before = connectedAt > 0 && now - connectedAt >= goodMs ? 0 : held.failures
        yield* markFailed(held, { message, failures: before + 1, now, again: now + pauseAfter(before) })
      })

      const hold = Effect.fnUntraced(function* (held: HeldSubscription) {
        const row = brokerSourceOf(held.type)
        const auth = yield* readCredentials(held)
        if (row === undefined || auth === null) {
          return yield* failed(held, row === undefined ? unknownType : unreadable, 0)
        }
        const began = { at: 0 }
        const work = Effect.scoped(consume(held, row, auth, began))
        return yield* Effect.raceFirst(connected.within(held.team_id)(work), isChanged(held)).pipe(
          Effect.catchIf(isBrokers, (failure) => failed(held, failureText(row, failure, auth), began.at))
        )
      })

      const step = Effect.gen(function* (): Effect.fn.Return<Next, SqlError.SqlError, Needs> {
        changed.closeUnsafe()
        if (!lease.isHeld(shard)) return "idle"
        const held = yield* readSubscription(id)
        if (held === null) {
          underWay.delete(id)
          return "idle"
        }
        underWay.set(id, held.version)
        const wait = held.due_at - (yield* Clock.currentTimeMillis)
        if (wait > 0) return wait
        yield* hold(held)
        return "again"
      })

      const worker = makeWakeableWorker({
        step,
        failed: (error) => Effect.logWarning("a subscription could not go on yet", { source_id: id, error })
      })

      // The handler keeps the actor in memory while it works.
      return SubscriptionEntity.of({
        Wake: () =>
          Effect.suspend(() => {
            changed.openUnsafe()
            if (worker.isWorking()) return worker.work
            return Effect.ensuring(
              worker.work,
              Effect.sync(() => underWay.delete(id))
            )
          })
      })
    }),
    { concurrency: "unbounded" }
  )

export const layer = Layer.unwrap(Effect.map(makeShared, layerWith))
