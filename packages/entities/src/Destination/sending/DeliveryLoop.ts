import { Cause, Clock, Effect, Fiber, Latch, Schedule, Semaphore } from "effect"
import { Entity, Sharding } from "effect/cluster"
import { Pacer } from "@tidegate/coordination/limits/Pacer"
import type { RatePeriod } from "@tidegate/model/Destination"
import { passed } from "@tidegate/runtime/TestSignal"
import { cancelPending } from "@tidegate/storage/delivery/CancelPending"
import type { Database } from "@tidegate/storage/Database"
import { noteStarts, recentStarts } from "@tidegate/storage/delivery/DeliveryRows"
import { storeHold } from "@tidegate/storage/delivery/DestinationHolds"
import { Journal } from "@tidegate/storage/Journal"
import { Tracing } from "@tidegate/telemetry/Tracing"
import { makeHolding } from "../../holds/Holding.ts"
import { setAside } from "../../InHand.ts"
import { Lease } from "../../Lease.ts"
import * as Residents from "../../dispatch/LocalEntities.ts"
import { shardOf } from "../../Shards.ts"
import { beginAttempt } from "./Attempt.ts"
import type { Batch } from "../../dispatch/Batch.ts"
import { makeDeliveriesInHand } from "./DeliveriesInHand.ts"
import type { DeliveryItem } from "../queue/DeliveryItem.ts"
import { DeliveryQueue, horizonMs } from "../queue/DeliveryQueue.ts"
import { DeliveryRuntime } from "./DeliveryRuntime.ts"
import { type DestinationState, type ConnectionQueueSettings, loadDestination } from "../DestinationState.ts"
import { makeRatePermits, type Turns } from "../../limits/RatePermits.ts"
import type { QueueHost } from "../queue/QueueHost.ts"
import { makeRecording } from "./Recording.ts"
import { readRefill } from "../queue/Prefetch.ts"
import { makeOpening } from "./Opened.ts"
import { makeSending } from "./Sending.ts"
import { makeStepCalls } from "../steps/StepCalls.ts"
import type { StepSend, StepSent } from "../steps/StepProtocol.ts"
import { maxThroughTunnel, Tunnel } from "../tunnel/Tunnel.ts"
import type { Heard, Listening, TunnelResult } from "../tunnel/TunnelProtocol.ts"

/** An actor that has to stop waits this long for its deliveries under way, so that the next owner need not repeat them. */
const drainPatience = "10 seconds"
/** An actor without work stays in memory for one or two periods of this length: new events then need no message. */
const linger = "1 second"
/**
 * A delivery that takes this long (ms) is recorded as under way at the next check. Quicker ones end before anyone could read the
 * record.
 */
const slowMs = 1_000
/** The settings of a connection that stays unknown are requested at most this often (ms). */
const unknownEveryMs = 1_000
/**
 * For this long after a step's message (ms), steps of this process call without a message, if their calls take no longer than
 * that. So all calls end before the actor stops, which only messages keep in memory.
 */
const nearbyMs = 30_000
/** When more connections are unknown, all are forgotten, so that memory is bounded. */
const maxUnknown = 1_000

interface Pacing {
  readonly limit: number
  readonly period: RatePeriod
  readonly pacer: Pacer
  readonly turns: Turns
}

/**
 * The delivering half of a destination's actor: its queue, connected to the clock, the network and SQL. `work` keeps the actor
 * alive while the queue has something to do; everything else returns at once.
 */
export const makeDeliveryLoop = Effect.gen(function* () {
  const { entityId: id } = yield* Entity.CurrentAddress
  const sharding = yield* Sharding.Sharding
  const clock = yield* Clock.Clock
  const journal = yield* Journal
  const lease = yield* Lease
  const tracing = yield* Tracing
  const { connectorOf, permits, watch, windowBytes } = yield* DeliveryRuntime
  const residents = yield* Residents.Destinations
  const called = yield* Residents.Called
  const scope = yield* Effect.scope
  const context = yield* Effect.context<Effect.Services<typeof load> | Database>()
  const run = Effect.runForkWith(context)
  const shard = shardOf(sharding, id)
  const changed = Latch.makeUnsafe(false)
  const now = (): number => clock.currentTimeMillisUnsafe()
  const holdsLease = (): boolean => lease.isHeld(shard)

  let state: DestinationState | null = null
  let tunnel: Tunnel | null = null
  let pump: Fiber.Fiber<void> | null = null
  let pacing: Pacing | null = null
  /** Deliveries that have started and are not recorded yet, by event; and the start times since the last reload began. */
  const unrecorded = new Map<string, number>()
  let startedMeanwhile: Array<number> | null = null
  /** Those of them that were recorded as under way because they take long. */
  const noted = new Map<string, number>()
  const cancelling = new Set<string>()
  let held = false
  /** The number of batches received. */
  let given = 0
  /** When the settings of unknown connections were requested. */
  const unknownAt = new Map<string, number>()

  const load = loadDestination(id, shard, connectorOf)
  const opening = yield* makeOpening(scope, holdsLease)
  const inHand = yield* makeDeliveriesInHand(id)

  /** One at a time, so that what is read later is applied later. */
  const loadAndApply = Semaphore.makeUnsafe(1).withPermits(1)(
    Effect.gen(function* () {
      expected = null
      startedMeanwhile = pacing === null ? [...unrecorded.values()] : []
      const read = holding.reading()
      const next = yield* load
      const { pacer, turns } = (yield* pacingOf(next)) ?? { pacer: null, turns: null }
      const apply = yield* opening.prepare(next)
      // From here on without interruption: nothing may be sent with a mix of old and new settings.
      apply()
      state = next
      const isTunnel = next?.sender?.kind === "tunnel"
      if (isTunnel) tunnel ??= new Tunnel({ now, after, changed: tunnelChanged, mayDeliver: holdsLease })
      tunnel?.configure(isTunnel)
      for (const connectionId of unknownAt.keys()) if (next?.lanes.has(connectionId)) unknownAt.delete(connectionId)
      queue.configure({
        state: next?.state ?? "cancelled",
        cancelBefore: next?.cancelBefore ?? 0,
        lanes: next?.lanes ?? new Map<string, ConnectionQueueSettings>(),
        pacer,
        turns,
        maxConcurrency: isTunnel ? maxThroughTunnel : (next?.maxConcurrency ?? null),
        targetAvailability: isTunnel ? tunnel : null
      })
      read(next?.heldUntil ?? 0)
      calls.configured()
      passed("reload")
    }).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          startedMeanwhile = null
        })
      ),
      Effect.retry(Schedule.spaced("250 millis")),
      Effect.orDie
    )
  )

  /** The reload that has not begun to read yet: further calls wait for the same one. */
  let expected: Fiber.Fiber<void> | null = null

  /**
   * Completes once every later delivery uses the stored state. It waits for the database without limit; a caller that cannot wait
   * sets a deadline.
   */
  const reload = Effect.suspend(() => {
    if (expected !== null) return Fiber.join(expected)
    return Effect.flatMap(Effect.forkIn(loadAndApply, scope), (fiber) => {
      expected = fiber
      return Fiber.join(fiber)
    })
  })

  const leavePace = Effect.suspend(() => {
    const { turns } = pacing ?? {}
    pacing = null
    return turns?.close ?? Effect.void
  })

  /** The rate limiter of the next state. Starts under the previous state, or by an earlier owner, count. */
  const pacingOf = Effect.fnUntraced(function* (next: DestinationState | null) {
    const { limit, period } = next?.rate ?? {}
    if (pacing !== null && pacing.limit === limit && pacing.period === period) return pacing
    yield* leavePace
    if (next === null || limit === undefined || period === undefined) return null
    const pacer = new Pacer(limit, period)
    const noted = yield* makeRatePermits({ id, team_id: next.teamId, pacer, changed: () => queue.tick() })
    const events = yield* recentStarts(shard, id, now() - pacer.period, pacer.slice)
    pacer.remember([...events, ...noted.starts].sort(([a], [b]) => a - b))
    // Starts during that read may be counted twice: this only makes the rate lower.
    pacer.remember((startedMeanwhile ?? []).sort((a, b) => a - b).map((at) => [at, 1] as const))
    pacing = { limit, period, pacer, turns: noted.turns }
    return pacing
  })

  const deliver = (item: DeliveryItem, startedAt: number): void => {
    unrecorded.set(item.eventId, startedAt)
    startedMeanwhile?.push(startedAt)
    const { headers, requestId } = item.payload
    const trace = tracing.attempt(headers, requestId, item.rootEventId ?? item.eventId)
    const attempt = beginAttempt(item, state?.lanes.get(item.connectionId), startedAt, trace)
    if (inHand.isSetAside(item)) sending.refuse(attempt, setAside.code, setAside.message, true)
    else sending.send(attempt, state, tunnel)
  }

  const refill = Effect.suspend(() =>
    readRefill(shard, id, now() + horizonMs, {
      lanes: state?.lanes.size ?? 1,
      room: queue.room,
      known: queue.knownByConnection(),
      isKnown: (eventId) => queue.isKnown(eventId),
      reads: queue.takeReads()
    })
  ).pipe(
    Effect.map(({ behind, items, lines }) => {
      queue.refilled(items, behind, lines)
      passed("refill")
    }),
    // Defects too: the queue waits for a result, and does not ask again before it has one.
    Effect.catchCause((cause) =>
      Effect.andThen(
        Effect.logWarning("a destination could not read its queue", { destination_id: id }, cause),
        Effect.sync(() => queue.refillFailed())
      )
    )
  )

  const host: QueueHost = {
    now,
    mayDeliver: holdsLease,
    permits,
    windowBytes,
    deliver,
    isWrittenDown: inHand.isWanted,
    takeInHand: inHand.take,
    letGo: inHand.over,
    mark: (item, startedAt, done) => journal.mark(item.eventId, startedAt, done),
    refill: () => void run(refill),
    unknown: (connectionId) => {
      const at = now()
      if (at - (unknownAt.get(connectionId) ?? Number.NEGATIVE_INFINITY) < unknownEveryMs) return
      if (unknownAt.size >= maxUnknown) unknownAt.clear()
      unknownAt.set(connectionId, at)
      run(reload)
    },
    cancel: (connectionId) => {
      if (cancelling.has(connectionId)) return
      cancelling.add(connectionId)
      run(
        cancelPending({ connection_id: connectionId }).pipe(
          Effect.ignore,
          Effect.ensuring(Effect.sync(() => cancelling.delete(connectionId)))
        )
      )
    },
    changed: () => changed.openUnsafe(),
    brokeDown: (cause) =>
      void run(Effect.logError("a delivery queue broke down", { destination_id: id }, Cause.die(cause)))
  }
  const queue = new DeliveryQueue(host)
  yield* watch(id, queue)
  const holding = makeHolding({
    what: "a destination",
    about: { destination_id: id },
    now,
    gate: queue,
    store: (until) => storeHold(id, until),
    run
  })
  const { heard, isHeld } = holding

  const noLonger = (item: DeliveryItem): void => {
    unrecorded.delete(item.eventId)
    inHand.over(item)
  }
  const recording = yield* makeRecording({ id, now, queue, noLonger })
  const sending = yield* makeSending({ id, opening, now, holdsLease, isHeld, heard, run, ends: recording })

  /** Runs the queue's timers. */
  const runTimers = Effect.gen(function* () {
    while (true) {
      changed.closeUnsafe()
      const wait = queue.nextAt === null ? Number.POSITIVE_INFINITY : queue.nextAt - now()
      if (wait <= 0) queue.tick()
      else if (wait === Number.POSITIVE_INFINITY) yield* changed.await
      else
        yield* Effect.raceFirst(changed.await, Effect.sleep(wait)).pipe(Effect.andThen(Effect.sync(() => queue.tick())))
      yield* Effect.yieldNow
    }
  })
  /** Records deliveries that take long, all in one statement. With a rate limit, every start is recorded before it. */
  const noteSlow = Effect.suspend(() => {
    for (const [id, at] of noted) if (unrecorded.get(id) !== at) noted.delete(id)
    if (pacing !== null || !holdsLease()) return Effect.void
    const until = now() - slowMs
    const slow = [...unrecorded].filter(([id, at]) => at <= until && noted.get(id) !== at)
    if (slow.length === 0) return Effect.void
    for (const [id, at] of slow) noted.set(id, at)
    return Effect.ignore(noteStarts(slow))
  })
  /** Ends once the queue was idle at two consecutive checks. */
  const idle = Effect.gen(function* () {
    let before: number
    do {
      before = given
      yield* Effect.sleep(linger)
      yield* noteSlow
    } while (queue.nextAt !== null || given !== before)
  })
  const runPump = Effect.raceFirst(runTimers, idle).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        pump = null
      })
    )
  )

  const startPump = Effect.gen(function* () {
    if (pump === null && queue.nextAt !== null) pump = yield* Effect.forkIn(runPump, scope)
  })
  /** Keeps the actor in memory while its queue is at work: a running handler does that, a forked fiber does not. */
  const work = Effect.gen(function* () {
    yield* startPump
    if (!held) yield* hold
  })
  const hold = Effect.suspend(() => {
    held = true
    return Effect.whileLoop({
      while: () => pump !== null,
      body: () => Fiber.await(pump!),
      step: () => {}
    })
  }).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        held = false
      })
    )
  )

  const offer = ({ items, more }: Batch<DeliveryItem>): void => {
    given++
    queue.offer(items, more)
  }
  yield* residents.add(id, (batch) => {
    // An idle actor has to be woken by a message: a running handler keeps it in memory.
    if (pump === null || !held) return undefined
    offer(batch)
    return true
  })

  /** Calls back later, unless cancelled. */
  const after = (ms: number, then: () => void): (() => void) => {
    const timer = run(Effect.andThen(Effect.sleep(ms), Effect.sync(then)))
    return () => timer.interruptUnsafe()
  }
  const tunnelChanged = (): void => {
    queue.wake()
    run(startPump)
  }

  const calls = makeStepCalls({
    queue,
    after,
    now,
    state: () => state,
    isAway: () => tunnel !== null && tunnel.awaySince !== null,
    send: (attempt) => {
      startedMeanwhile?.push(attempt.startedAt)
      calling.send(attempt, state, tunnel)
    },
    queued: () => {
      if (pump === null) run(startPump)
    }
  })
  const calling = yield* makeSending({ id, opening, now, holdsLease, isHeld, heard, run, ends: calls.ends })
  /** When a step last sent a message (Unix ms). */
  let messageAt = Number.NEGATIVE_INFINITY
  const send = (message: StepSend): Effect.Effect<StepSent> =>
    Effect.suspend(() => {
      messageAt = now()
      return calls.send(message)
    })
  yield* called.add(id, (message) =>
    message.timeout_ms <= nearbyMs && now() - messageAt <= nearbyMs ? calls.send(message) : undefined
  )
  /** Handles the request of a process that has the tunnel's client. */
  const listen = (listening: Listening): Effect.Effect<Heard> =>
    Effect.callback<Heard>((resume) => {
      if (tunnel === null) return resume(Effect.succeed({ jobs: [], ended: "gone" }))
      const withdraw = tunnel.listen(listening, (heard) => resume(Effect.succeed(heard)))
      return Effect.sync(withdraw)
    })

  yield* Effect.addFinalizer(() =>
    Effect.callback<void>((resume) => {
      calls.stop()
      inHand.stop()
      queue.stop(() => resume(Effect.void))
      // The tunnel's sessions ask the next owner for its deliveries.
      tunnel?.stop()
    }).pipe(
      Effect.timeout(drainPatience),
      Effect.ignore,
      Effect.ensuring(
        Effect.sync(() => {
          sending.cancel()
          calling.cancel()
          inHand.cancel()
        })
      ),
      Effect.andThen(leavePace)
    )
  )

  /** Null: nothing has been read yet, so no change can make it outdated. */
  let begun: Fiber.Fiber<void> | null = null

  /** Before anything is delivered: completes once the settings are loaded. */
  const begin = Effect.suspend(() => {
    if (state !== null) return Effect.void
    if (begun !== null) return Fiber.join(begun)
    return Effect.flatMap(Effect.forkIn(reload, scope), (fiber) => {
      begun = fiber
      return Fiber.join(fiber)
    })
  })

  return {
    shard,
    begin,
    /** An actor that has not delivered yet starts too: events that a change has made due do not have to wait for the poller. */
    reload: Effect.suspend(() => (begun === null ? begin : reload)),
    reloadIfBegun: Effect.suspend(() => (begun === null ? Effect.void : reload)),
    work,
    send,
    offer,
    wake: () => queue.wake(),
    reread: () => queue.reread(),
    tokens: opening.tokens,
    /** How tokens are requested, once the actor has started; null: they are not. */
    credential: () => state?.bearer?.credential ?? null,
    attach: (localUrl: string | null): string | null => tunnel?.attach(localUrl) ?? null,
    listen,
    answered: (sessionId: string, results: ReadonlyArray<TunnelResult>): number =>
      tunnel?.answered(sessionId, results) ?? results.length,
    leave: (sessionId: string): void => tunnel?.leave(sessionId)
  }
})
