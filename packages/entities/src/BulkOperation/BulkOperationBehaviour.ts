import { Clock, Context, Effect, Semaphore } from "effect"
import { Entity, Sharding } from "effect/cluster"
import { derivedId, prefixes } from "@tidegate/model/Ids"
import {
  cancelOperation,
  createOperation,
  liveTraffic,
  type Made,
  runOperation,
  setOperationAside,
  stepOperation,
  stillWaiting,
  teamOfOperation
} from "@tidegate/storage/bulk/BulkOperations"
import { carryThrough } from "../CarryThrough.ts"
import { actors } from "../dispatch/Dispatcher.ts"
import { Hand, setAside } from "../InHand.ts"
import { Lease } from "../Lease.ts"
import { replayRouting } from "../Replay.ts"
import { shardOf } from "../Shards.ts"
import { BulkOperationEntity } from "./BulkOperationProtocol.ts"
import { isCrowded, lookAgain, maxPatienceMs, Pacing, Steps } from "./Pace.ts"

/**
 * The operations of a process take turns, step by step, at one pace: however many there are, live traffic yields to one. While the targets of
 * one are slow the others go on.
 */
const Turns = Context.Reference<{
  readonly turn: Semaphore.Semaphore
  readonly pacing: Pacing
  readonly steps: Steps
}>("@tidegate/entities/BulkOperation/Turns", {
  defaultValue: () => ({ turn: Semaphore.makeUnsafe(1), pacing: new Pacing(), steps: new Steps() })
})

/** Between two steps that nobody else waits for (ms). */
const restMs = 5
/** One with a rate of its own may catch up with so much that was missed (ms). */
const caughtUpMs = 200

/** With how long it took (ms, with fractions). */
const timed = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const since = yield* Clock.monotonicTimeNanos
  const value = yield* effect
  return [value, Number((yield* Clock.monotonicTimeNanos) - since) / 1e6] as const
})

/**
 * The actor of a bulk operation. Its memory is nothing but what it has queued last; where it is stands in its rows, and each step is one
 * transaction. It works while somebody has woken it: whoever creates it, or the sweep of the runner that it has come to.
 */
export const layer = BulkOperationEntity.toLayer(
  Effect.gen(function* () {
    const { entityId: id } = yield* Entity.CurrentAddress
    const sharding = yield* Sharding.Sharding
    const lease = yield* Lease
    const hand = yield* Hand
    const { pacing, steps, turn } = yield* Turns
    const ownSteps = new Steps()
    const dispatcher = yield* actors
    const routing = yield* replayRouting
    const shard = shardOf(sharding, id)

    /** What was queued by the last step. */
    let requests: ReadonlyArray<string> = []
    let events: ReadonlyArray<string> = []

    const tell = Effect.fnUntraced(function* (made: Made) {
      requests = made.requests.map(({ id }) => id)
      events = [
        ...made.events.map(({ id }) => id),
        ...made.requests.flatMap(({ connections, id }) =>
          connections.map((connection) => derivedId(prefixes.event, id, connection))
        )
      ]
      const destinations = new Set(made.events.map(({ destination_id }) => destination_id))
      const connections = new Set(made.requests.flatMap(({ connections }) => connections))
      yield* Effect.forEach(destinations, dispatcher.wakeDestination, { concurrency: 16, discard: true })
      yield* Effect.forEach(made.cancelled, dispatcher.rereadDestination, { concurrency: 16, discard: true })
      const workflows = new Set(made.requests.flatMap(({ workflows }) => workflows))
      yield* Effect.forEach(connections, dispatcher.wakeConnection, { concurrency: 16, discard: true })
      yield* Effect.forEach(workflows, dispatcher.wakeWorkflow, { concurrency: 16, discard: true })
    })

    /** Waits until what was queued before has had its turn. */
    const roomFor = Effect.gen(function* () {
      const since = yield* Clock.currentTimeMillis
      const queued = requests.length + events.length
      if (queued === 0) return
      for (let looked = 0; ; looked++) {
        if (!isCrowded(yield* stillWaiting(requests, events), queued)) return
        if ((yield* Clock.currentTimeMillis) - since > maxPatienceMs) return
        yield* Effect.sleep(lookAgain(looked))
      }
    })

    /** One step, and the rest after it; answers whether that was the last one, and how long its own rate has it wait (ms). */
    const step = Effect.gen(function* () {
      const began = yield* Clock.currentTimeMillis
      const [live, lookMs] = yield* timed(liveTraffic)
      const { batch, overMs } = pacing.next(live, lookMs)
      // Whoever has it now goes on: what it finds is what is stored.
      if (!lease.isHeld(shard)) return null
      const { isOver, part, pauseMs, ...made } = yield* Effect.uninterruptible(
        stepOperation(id, { targets: batch, overMs }, routing)
      )
      yield* tell(made)
      if (isOver) return null
      const rested = steps.rest(began, part * overMs, yield* Clock.currentTimeMillis, overMs)
      yield* Effect.sleep(overMs === 0 ? restMs : rested)
      return ownSteps.rest(began, pauseMs, yield* Clock.currentTimeMillis, caughtUpMs)
    })

    let working = false
    const goOn = Effect.gen(function* () {
      for (;;) {
        const pauseMs = yield* Semaphore.withPermit(turn)(step)
        if (pauseMs === null) return
        if (pauseMs > 0) yield* Effect.sleep(pauseMs)
        yield* roomFor
      }
    })

    /** There are few, and each goes through much: all are written down. One that has killed processes is not gone on with. */
    const work = Effect.gen(function* () {
      const team_id = yield* teamOfOperation(id)
      if (team_id === null) return
      const operation = { kind: "bulk", id, team_id, bytes: Number.POSITIVE_INFINITY } as const
      const manner = (yield* hand.take([operation]))(operation)
      if (manner === "not again") {
        yield* Effect.logError("a bulk operation is set aside", { operation_id: id, error: setAside })
        yield* setOperationAside(id, setAside)
        yield* hand.done(operation)
      } else yield* hand.within(operation, manner, goOn)
    }).pipe(
      Effect.catch((error) =>
        Effect.logWarning("a bulk operation could not go on; the sweep comes back to it", { operation_id: id, error })
      ),
      Effect.ensuring(
        Effect.sync(() => {
          working = false
        })
      )
    )

    return BulkOperationEntity.of({
      Plan: ({ payload }) =>
        carryThrough(Effect.tap(createOperation({ ...payload, id, shard }), () => dispatcher.wakeOperation(id))),
      Run: ({ payload }) =>
        carryThrough(Effect.tap(runOperation({ ...payload, id }), () => dispatcher.wakeOperation(id))),
      End: ({ payload }) => carryThrough(cancelOperation({ ...payload, id })),
      // While it works its handler keeps it in memory.
      Wake: () =>
        Effect.suspend(() => {
          if (working) return Effect.void
          working = true
          return work
        })
    })
  }),
  { concurrency: "unbounded" }
)
