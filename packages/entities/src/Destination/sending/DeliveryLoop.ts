import { Clock, Effect } from "effect"
import { Entity, Sharding } from "effect/cluster"
import type { Database } from "@tidegate/storage/Database"
import { noteStarts } from "@tidegate/storage/delivery/DeliveryRows"
import { storeHold } from "@tidegate/storage/delivery/DestinationHolds"
import { Tracing } from "@tidegate/telemetry/Tracing"
import { makeHolding } from "../../holds/Holding.ts"
import { setAside } from "../../InHand.ts"
import { Lease } from "../../Lease.ts"
import * as LocalEntities from "../../dispatch/LocalEntities.ts"
import { shardOf } from "../../Shards.ts"
import { beginAttempt } from "./Attempt.ts"
import type { Batch } from "../../dispatch/Batch.ts"
import { makeDeliveriesInHand } from "./DeliveriesInHand.ts"
import type { DeliveryItem } from "../queue/DeliveryItem.ts"
import { DeliveryQueue } from "../queue/DeliveryQueue.ts"
import { DeliveryRuntime } from "./DeliveryRuntime.ts"
import { makeDeliveryWorker } from "./DeliveryWorker.ts"
import { type DestinationState, loadDestination } from "../DestinationState.ts"
import { tokenStore } from "../DestinationTokens.ts"
import { loadSettings } from "./LoadSettings.ts"
import { makePacing } from "./Pacing.ts"
import { makeQueueHosting } from "./QueueHosting.ts"
import { makeRecording } from "./Recording.ts"
import { makeReloading } from "./Reloading.ts"
import { makeOpening } from "./Opened.ts"
import { makeSending } from "./Sending.ts"
import { StartedDeliveries } from "./StartedDeliveries.ts"
import { makeStepCalls } from "../steps/StepCalls.ts"
import type { StepSend, StepSent } from "../steps/StepProtocol.ts"
import { DestinationPolls } from "../pull/DestinationPolls.ts"
import { DestinationTunnel } from "../tunnel/DestinationTunnel.ts"

/** An actor that has to stop waits this long for its deliveries under way, so that the next owner need not repeat them. */
const drainPatience = "10 seconds"
/**
 * For this long after a step's message (ms), steps of this process call without a message, if their calls take no longer than
 * that. So all calls end before the actor stops, which only messages keep in memory.
 */
const nearbyMs = 30_000
/** A consumer that asks finds events whose notification was lost, and retries that come due. SQL is read this often for it (ms). */
const lookEveryMs = 2_000

/**
 * The delivering half of a destination's actor: its queue, connected to the clock, the network and SQL. `work` keeps the actor
 * alive while the queue has something to do; everything else returns at once. Here the parts are put together; each decides one
 * thing.
 */
export const makeDeliveryLoop = Effect.gen(function* () {
  const { entityId: id } = yield* Entity.CurrentAddress
  const sharding = yield* Sharding.Sharding
  const clock = yield* Clock.Clock
  const lease = yield* Lease
  const { connectorOf, leases, watch } = yield* DeliveryRuntime
  const scope = yield* Effect.scope
  const shard = shardOf(sharding, id)
  const load = loadDestination(id, shard, connectorOf)
  const run = Effect.runForkWith(yield* Effect.context<Effect.Services<typeof load> | Database>())
  const now = (): number => clock.currentTimeMillisUnsafe()
  const holdsLease = (): boolean => lease.isHeld(shard)
  /** Calls back later, unless cancelled. */
  const after = (ms: number, then: () => void): (() => void) => {
    const timer = run(Effect.andThen(Effect.sleep(ms), Effect.sync(then)))
    return () => timer.interruptUnsafe()
  }

  let state: DestinationState | null = null
  const started = new StartedDeliveries()
  const opening = yield* makeOpening(scope, holdsLease, yield* tokenStore)
  const inHand = yield* makeDeliveriesInHand(id)
  const pacing = makePacing({ id, shard, now, started, changed: () => queue.tick() })
  const tunnelChanged = (): void => {
    queue.wake()
    worker.start()
  }
  const tunnel = new DestinationTunnel({ now, after, changed: tunnelChanged, mayDeliver: holdsLease })
  /** When SQL was last read for a consumer (Unix ms). */
  let lookedAt = Number.NEGATIVE_INFINITY
  const polls = new DestinationPolls({
    now,
    after,
    asked: () => {
      const isTime = now() - lookedAt >= lookEveryMs
      if (isTime) lookedAt = now()
      if (isTime) queue.wake()
      else queue.tick()
      worker.start()
    },
    changed: () => queue.consumersChanged(),
    mayDeliver: holdsLease,
    leases: leases.share()
  })

  const { host, known } = yield* makeQueueHosting({
    id,
    shard,
    now,
    holdsLease,
    run,
    inHand,
    queue: () => queue,
    connections: () => state?.connections.size ?? 1,
    deliver: (item, startedAt) => deliver(item, startedAt),
    changed: () => void worker.wake(),
    reload: () => void run(reloading.reload)
  })
  const queue = new DeliveryQueue(host)
  yield* watch(id, queue)

  /** Records deliveries that take long, all in one statement. With a rate limit, every start is recorded before it. */
  const noteSlow = Effect.suspend(() => {
    if (pacing.isPaced() || !holdsLease()) return Effect.void
    const slow = started.takeSlow(now())
    return slow.length === 0 ? Effect.void : Effect.ignore(noteStarts(slow))
  })
  const worker = makeDeliveryWorker({ queue, now, scope, run, everyPeriod: noteSlow })

  const about = { destination_id: id }
  const store = (until: number) => storeHold(id, until)
  const holding = makeHolding({ what: "a destination", about, now, gate: queue, store, run })
  const noLonger = (item: DeliveryItem, isRecorded: boolean): void => {
    started.delete(item.eventId)
    inHand.over(item)
    polls.over(item.eventId, item.attempts, isRecorded)
  }
  const { heard, isHeld } = holding
  const shared = { id, opening, now, holdsLease, isHeld, heard, run }
  const recording = yield* makeRecording({ id, now, queue, noLonger, handedOut: inHand.over })
  const sending = yield* makeSending({ ...shared, ends: recording })
  const tracing = yield* Tracing
  const ways = () => ({ tunnel: tunnel.current, polls: polls.current })
  const deliver = (item: DeliveryItem, startedAt: number): void => {
    started.started(item.eventId, startedAt)
    const { headers, requestId } = item.payload
    const trace = tracing.attempt(headers, requestId, item.rootEventId ?? item.eventId)
    const attempt = beginAttempt(item, state?.connections.get(item.connectionId), startedAt, trace)
    if (inHand.isSetAside(item)) sending.refuse(attempt, setAside.code, setAside.message, true)
    else sending.send(attempt, state, ways())
  }

  const calls = makeStepCalls({
    queue,
    after,
    now,
    state: () => state,
    isAway: () => tunnel.isAway,
    send: (attempt) => {
      started.stepStarted(attempt.startedAt)
      calling.send(attempt, state, ways())
    },
    queued: worker.start
  })
  const calling = yield* makeSending({ ...shared, ends: calls.ends })

  const settings = loadSettings({
    load,
    started,
    holding,
    pacing,
    opening,
    tunnel,
    polls,
    queue,
    use: (next) => {
      state = next
      known(next?.connections)
    },
    used: calls.configured
  })
  const reloading = makeReloading(settings, scope)

  const offer = ({ items, more }: Batch<DeliveryItem>): void => queue.offer(items, more)
  yield* (yield* LocalEntities.Destinations).add(id, (batch) => {
    // An idle actor has to be woken by a message: a running handler keeps it in memory.
    if (!worker.isHeld()) return undefined
    offer(batch)
    return true
  })
  /** When a step last sent a message (Unix ms). */
  let messageAt = Number.NEGATIVE_INFINITY
  yield* (yield* LocalEntities.Called).add(id, (message) =>
    message.timeout_ms <= nearbyMs && now() - messageAt <= nearbyMs ? calls.send(message) : undefined
  )

  yield* Effect.addFinalizer(() =>
    Effect.callback<void>((resume) => {
      calls.stop()
      inHand.stop()
      queue.stop(() => resume(Effect.void))
      tunnel.stop()
      polls.stop()
    }).pipe(
      Effect.timeout(drainPatience),
      Effect.ignore,
      Effect.ensuring(Effect.sync(() => [sending, calling, inHand].forEach((one) => one.cancel()))),
      Effect.andThen(pacing.leave)
    )
  )

  return {
    ...reloading,
    shard,
    tunnel,
    polls,
    offer,
    work: worker.work,
    send: (message: StepSend): Effect.Effect<StepSent> =>
      Effect.suspend(() => {
        messageAt = now()
        return calls.send(message)
      }),
    wake: () => queue.wake(),
    reread: () => queue.reread(),
    tokens: opening.tokens,
    /** How tokens are requested, once the actor has started; null: they are not. */
    credential: () => state?.bearer?.credential ?? null
  }
})
