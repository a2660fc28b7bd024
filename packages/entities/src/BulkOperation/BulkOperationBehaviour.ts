import { Clock, Context, Effect, Semaphore } from "effect"
import { Entity, Sharding } from "effect/cluster"
import { derivedId, prefixes } from "@tidegate/model/Ids"
import { cancelOperation, createOperation, runOperation } from "@tidegate/storage/bulk/BulkOperations"
import {
  type Made,
  setOperationAside,
  type Share,
  stepOperation,
  unfinishedOperation
} from "@tidegate/storage/bulk/BulkSteps"
import { isOfRuns } from "@tidegate/storage/bulk/BulkTargets"
import { liveTraffic, stillWaiting } from "@tidegate/storage/bulk/LiveTraffic"
import { nextRuns, recordRuns } from "@tidegate/storage/bulk/RunTargets"
import { makeWakeableWorker } from "@tidegate/runtime/WakeableWorker"
import { carryThrough } from "../CarryThrough.ts"
import { wakeUps } from "../dispatch/WakeUps.ts"
import { Hand, setAside } from "../InHand.ts"
import { Lease } from "../Lease.ts"
import { replayRouting } from "../Replay.ts"
import { shardOf } from "../Shards.ts"
import { BulkOperationEntity } from "./BulkOperationProtocol.ts"
import { handleRuns } from "./HandleRuns.ts"
import { isCrowded, lookAgain, maxPatienceMs, Pacing, Steps } from "./Pace.ts"

/**
 * The operations of a process take turns, one step at a time, and share one pace: live traffic competes with one step, however
 * many operations there are. An operation that waits for slow targets does not hold up the others.
 */
const Shared = Context.Reference<{
  readonly oneAtATime: Semaphore.Semaphore
  readonly pacing: Pacing
  readonly steps: Steps
}>("@tidegate/entities/BulkOperation/Shared", {
  defaultValue: () => ({ oneAtATime: Semaphore.makeUnsafe(1), pacing: new Pacing(), steps: new Steps() })
})

/** The pause between two steps while there is no live traffic (ms). */
const restMs = 5
/** An operation with its own rate may catch up with this much missed time (ms). */
const caughtUpMs = 200

/** The result and the duration (ms, with fractions). */
const timed = Effect.fnUntraced(function* <A, E, R>(effect: Effect.Effect<A, E, R>) {
  const since = yield* Clock.monotonicTimeNanos
  const value = yield* effect
  return [value, Number((yield* Clock.monotonicTimeNanos) - since) / 1e6] as const
})

/**
 * The actor of a bulk operation. Its memory holds only what the last step queued. Its progress is in its rows, and each step is
 * one transaction. It works after a wake-up, by the call that creates it or by the poller of the runner that it has moved to.
 */
export const layer = BulkOperationEntity.toLayer(
  Effect.gen(function* () {
    const { entityId: id } = yield* Entity.CurrentAddress
    const sharding = yield* Sharding.Sharding
    const lease = yield* Lease
    const hand = yield* Hand
    const { oneAtATime, pacing, steps } = yield* Shared
    const ownSteps = new Steps()
    const actors = yield* wakeUps
    const routing = yield* replayRouting
    const handle = yield* handleRuns
    const shard = shardOf(sharding, id)

    /** The requests that the last step queued. */
    let requests: ReadonlyArray<string> = []
    let events: ReadonlyArray<string> = []

    const wakeAll = Effect.fnUntraced(function* (made: Made) {
      requests = made.requests.map(({ id }) => id)
      events = [
        ...made.events.map(({ id }) => id),
        ...made.requests.flatMap(({ connections, id }) =>
          connections.map((connection) => derivedId(prefixes.event, id, connection))
        )
      ]
      const destinations = new Set(made.events.map(({ destination_id }) => destination_id))
      const connections = new Set(made.requests.flatMap(({ connections }) => connections))
      yield* Effect.forEach(destinations, actors.wakeDestination, { concurrency: 16, discard: true })
      yield* Effect.forEach(made.cancelled, actors.rereadDestination, { concurrency: 16, discard: true })
      const workflows = new Set(made.requests.flatMap(({ workflows }) => workflows))
      yield* Effect.forEach(connections, actors.wakeConnection, { concurrency: 16, discard: true })
      yield* Effect.forEach(workflows, actors.wakeWorkflow, { concurrency: 16, discard: true })
    })

    /** Waits until enough of the queued targets have been delivered. */
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

    /** A step of an operation of runs: its plan is like that of others, its targets are handled by the workflows' actors. */
    const stepRuns = Effect.fnUntraced(function* (share: Share) {
      const batch = yield* nextRuns(id, share)
      if (batch === null) return yield* Effect.uninterruptible(stepOperation(id, share, routing))
      return yield* recordRuns(id, share, yield* handle(id, batch))
    })

    /**
     * One step and the pause after it. Returns whether it was the last one, and how long (ms) the operation's own rate makes it
     * wait.
     */
    const step = Effect.fnUntraced(function* (ofRuns: boolean) {
      const began = yield* Clock.currentTimeMillis
      const [live, lookMs] = yield* timed(liveTraffic)
      const { batch, overMs } = pacing.next(live, lookMs)
      // The new owner goes on from the rows.
      if (!lease.isHeld(shard)) return null
      const share = { targets: batch, overMs }
      const { isOver, part, pauseMs, ...made } = yield* ofRuns
        ? stepRuns(share)
        : Effect.uninterruptible(stepOperation(id, share, routing))
      yield* wakeAll(made)
      if (isOver) return null
      const rested = steps.rest(began, part * overMs, yield* Clock.currentTimeMillis, overMs)
      yield* Effect.sleep(overMs === 0 ? restMs : rested)
      return ownSteps.rest(began, pauseMs, yield* Clock.currentTimeMillis, caughtUpMs)
    })

    const goOn = Effect.fnUntraced(function* (ofRuns: boolean) {
      for (;;) {
        const pauseMs = yield* Semaphore.withPermit(oneAtATime)(step(ofRuns))
        if (pauseMs === null) return
        if (pauseMs > 0) yield* Effect.sleep(pauseMs)
        yield* roomFor
      }
    })

    /**
     * Operations are few and each has much work, so every one is recorded as work in hand. One that has killed processes is not
     * continued.
     */
    const work = Effect.gen(function* () {
      const unfinished = yield* unfinishedOperation(id)
      if (unfinished === null) return
      const { team_id, type } = unfinished
      const operation = { kind: "bulk", id, team_id, bytes: Number.POSITIVE_INFINITY } as const
      const manner = (yield* hand.take([operation]))(operation)
      if (manner === "set aside") {
        yield* Effect.logError("a bulk operation is set aside", { operation_id: id, error: setAside })
        yield* setOperationAside(id, setAside)
        yield* hand.done(operation)
      } else yield* hand.within(operation, manner, goOn(isOfRuns(type)))
    })

    const worker = makeWakeableWorker({
      step: Effect.as(work, "idle"),
      failed: (error) => Effect.logWarning("a bulk operation could not go on yet", { operation_id: id, error })
    })

    return BulkOperationEntity.of({
      Plan: ({ payload }) =>
        carryThrough(Effect.tap(createOperation({ ...payload, id, shard }), () => actors.wakeOperation(id))),
      Run: ({ payload }) => carryThrough(Effect.tap(runOperation({ ...payload, id }), () => actors.wakeOperation(id))),
      End: ({ payload }) => carryThrough(cancelOperation({ ...payload, id })),
      // The handler keeps the actor in memory while it works.
      Wake: () => worker.work
    })
  }),
  { concurrency: "unbounded" }
)
