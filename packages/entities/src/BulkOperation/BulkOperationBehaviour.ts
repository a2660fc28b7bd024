import { Clock, Context, Effect, Semaphore } from "effect"
import { Entity, Sharding } from "effect/cluster"
import { derivedId, prefixes } from "@tidegate/model/Ids"
import {
  cancelOperation,
  createOperation,
  liveRequests,
  type Made,
  stepOperation,
  stillWaiting
} from "@tidegate/storage/BulkOperations"
import { carryThrough } from "../CarryThrough.ts"
import { actors } from "../Hints.ts"
import { Lease } from "../Lease.ts"
import { replayRouting } from "../Replay.ts"
import { shardOf } from "../Shards.ts"
import { BulkOperationEntity } from "./BulkOperationProtocol.ts"
import { isCrowded, lookAgain, mostPatienceMs, Pacing } from "./Pace.ts"

/**
 * The operations of a process take turns, step by step, at one pace: however many there are, live traffic yields to one. While the targets of
 * one are slow the others go on.
 */
const Turns = Context.Reference<{ readonly turn: Semaphore.Semaphore; readonly pacing: Pacing }>(
  "@tidegate/entities/BulkOperation/Turns",
  { defaultValue: () => ({ turn: Semaphore.makeUnsafe(1), pacing: new Pacing() }) }
)

/** Between two steps that nobody else waits for (ms). */
const restMs = 5
/** As many are counted as tell the paces apart. */
const countedAtMost = 20

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
    const { pacing, turn } = yield* Turns
    const hints = yield* actors
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
      yield* Effect.forEach(destinations, hints.wakeDestination, { concurrency: 16, discard: true })
      const workflows = new Set(made.requests.flatMap(({ workflows }) => workflows))
      yield* Effect.forEach(connections, hints.wakeConnection, { concurrency: 16, discard: true })
      yield* Effect.forEach(workflows, hints.wakeWorkflow, { concurrency: 16, discard: true })
    })

    /** Waits until what was queued before has had its turn. */
    const roomFor = Effect.gen(function* () {
      const since = yield* Clock.currentTimeMillis
      const queued = requests.length + events.length
      if (queued === 0) return
      for (let looked = 0; ; looked++) {
        if (!isCrowded(yield* stillWaiting(requests, events), queued)) return
        if ((yield* Clock.currentTimeMillis) - since > mostPatienceMs) return
        yield* Effect.sleep(lookAgain(looked))
      }
    })

    /** One step, and the rest after it; answers whether that was the last one. */
    const step = Effect.gen(function* () {
      const [live, lookMs] = yield* timed(liveRequests(countedAtMost))
      const { batch, overMs } = pacing.next(live, lookMs)
      // Whoever has it now goes on: what it finds is what is stored.
      if (!lease.isHeld(shard)) return true
      const [{ isOver, part, ...made }, tookMs] = yield* timed(
        Effect.uninterruptible(stepOperation(id, { targets: batch, overMs }, routing))
      )
      yield* tell(made)
      if (!isOver) yield* Effect.sleep(overMs === 0 ? restMs : part * overMs - tookMs)
      return isOver
    })

    let working = false
    const work = Effect.gen(function* () {
      while (!(yield* Semaphore.withPermit(turn)(step))) yield* roomFor
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
      Create: ({ payload }) =>
        carryThrough(Effect.tap(createOperation({ ...payload, id, shard }), () => hints.wakeOperation(id))),
      Cancel: ({ payload }) => carryThrough(cancelOperation({ ...payload, id })),
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
