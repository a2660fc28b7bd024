import { Cause, Clock, Effect, Fiber, Latch, Schedule, Semaphore } from "effect"
import { Entity, Sharding } from "effect/cluster"
import { answer as mockAnswer } from "@tidegate/connectors/MockApi"
import { prepare, refusalOf, targetUrl } from "@tidegate/connectors/HttpDelivery"
import { Egress } from "@tidegate/egress/Egress"
import type { AttemptErrorCode } from "@tidegate/egress/AttemptErrorCode"
import type { Answer } from "@tidegate/egress/Exchange"
import type { RatePeriod } from "@tidegate/model/Destination"
import { newId, prefixes } from "@tidegate/model/Ids"
import { nextRetry } from "@tidegate/rules/Retry"
import { cancelPending } from "@tidegate/storage/CancelPending"
import { HotSql } from "@tidegate/storage/Database"
import { type DueRow, dueRows, pendingEvents, recentStarts } from "@tidegate/storage/DeliveryRows"
import { Journal } from "@tidegate/storage/Journal"
import { Secrets } from "@tidegate/storage/Secrets"
import { type AttemptTrace, traceHeaders, Tracing } from "@tidegate/telemetry/Tracing"
import { Lease } from "../Lease.ts"
import { shardOf } from "../Shards.ts"
import { type DeliveryItem, storedItem } from "./DeliveryItem.ts"
import { DeliveryQueue, horizonMs, type QueueHost } from "./DeliveryQueue.ts"
import { DeliveryRuntime } from "./DeliveryRuntime.ts"
import { type ConnectionState, type DestinationState, loadDestination } from "./DestinationState.ts"
import { withCredentials } from "./ForwardedCredentials.ts"
import { Pacer } from "./Pacer.ts"

/** How many due rows one refill may read. */
const refillRows = 1_000
/** How many bytes of bodies it reads at the most, and one body more. */
const refillBytes = 8 * 1024 * 1024
/** How many of them it may take into a window that is full, so that every lane gets to its turn. */
const leastRefill = 64
/** An actor that is told to stop waits this long for what it has on the wire, so that the next one need not repeat it. */
const drainPatience = "10 seconds"
/** An unknown connection is asked about no more often than this (ms). */
const unknownEveryMs = 1_000

/** An attempt under way, with what its record says of it: `url` and `method` once the request is prepared. */
interface Attempt {
  readonly item: DeliveryItem
  readonly connection: ConnectionState | undefined
  readonly startedAt: number
  readonly trigger: string
  url: string
  method: string
  /** Null: it is not recorded. */
  trace: AttemptTrace | null
}

/**
 * The delivering half of a destination's actor: its queue, bound to the clock, the network and SQL. `work` keeps the
 * actor alive for as long as the queue has something to do; everything else returns at once.
 */
export const makeDeliveryLoop = Effect.gen(function* () {
  const { entityId: id } = yield* Entity.CurrentAddress
  const sharding = yield* Sharding.Sharding
  const clock = yield* Clock.Clock
  const egress = yield* Egress
  const journal = yield* Journal
  const lease = yield* Lease
  const tracing = yield* Tracing
  const secrets = yield* Secrets
  const { slots } = yield* DeliveryRuntime
  const scope = yield* Effect.scope
  const context = yield* Effect.context<Effect.Services<typeof load> | HotSql>()
  const run = Effect.runForkWith(context)
  const shard = shardOf(sharding, id)
  const changed = Latch.makeUnsafe(false)
  const now = (): number => clock.currentTimeMillisUnsafe()
  const holdsLease = (): boolean => lease.isHeld(shard)

  let state: DestinationState | null = null
  let pump: Fiber.Fiber<void> | null = null
  let pacing: { readonly limit: number; readonly period: RatePeriod; readonly pacer: Pacer } | null = null
  /** Deliveries started and not yet recorded, by event; and those started since the last reload began. */
  const unrecorded = new Map<string, number>()
  let startedMeanwhile: Array<number> | null = null
  const cancelling = new Set<string>()
  let held = false
  let unknownAt = Number.NEGATIVE_INFINITY

  const load = loadDestination(id, shard)

  /**
   * Completes once the stored state governs every later delivery. One at a time: what was read later is applied later. It
   * waits for the database for as long as that takes; who cannot, sets a deadline.
   */
  const reload = Semaphore.makeUnsafe(1).withPermits(1)(
    Effect.gen(function* () {
      startedMeanwhile = pacing === null ? [...unrecorded.values()] : []
      const next = yield* load
      const pacer = yield* pacerOf(next)
      state = next
      queue.configure({
        state: next?.state ?? "cancelled",
        cancelBefore: next?.cancelBefore ?? 0,
        lanes: next?.connections ?? new Map<string, ConnectionState>(),
        pacer
      })
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

  /** The pacer of the next state. What was started under the last one, or by an earlier owner, counts. */
  const pacerOf = Effect.fnUntraced(function* (next: DestinationState | null) {
    if (next === null || next.rate === null) {
      pacing = null
      return null
    }
    const { limit, period } = next.rate
    if (pacing !== null && pacing.limit === limit && pacing.period === period) return pacing.pacer
    const pacer = new Pacer(limit, period)
    pacer.remember(yield* recentStarts(shard, id, now() - pacer.period, pacer.slice))
    // What began while that was read may be counted twice: an error on the side of the target.
    pacer.remember((startedMeanwhile ?? []).sort((a, b) => a - b).map((at) => [at, 1] as const))
    pacing = { limit, period, pacer }
    return pacer
  })

  /**
   * Makes an attempt. What breaks down in it, here or when its answer is there, is an attempt that failed: nothing of it is
   * sent again before it is recorded, and the retry rule applies. Only when that cannot be recorded either is the event put
   * back, to be looked for later.
   */
  const deliver = (item: DeliveryItem, startedAt: number): void => {
    unrecorded.set(item.eventId, startedAt)
    startedMeanwhile?.push(startedAt)
    const connection = state?.connections.get(item.connectionId)
    const attempt: Attempt = {
      item,
      connection,
      startedAt,
      trigger: triggerOf(item, connection),
      url: "",
      method: item.payload.method,
      trace: tracing.attempt(item.payload.headers, item.payload.requestId, item.rootEventId ?? item.eventId)
    }
    guarded(attempt, () => send(attempt))
  }

  const guarded = (attempt: Attempt, step: () => void): void => {
    try {
      step()
    } catch (cause) {
      queueMicrotask(() => brokeDown(attempt, cause))
    }
  }

  /**
   * Ends an attempt of which nothing was sent. Not at once: the queue starts the next one when this one ends, and a backlog of
   * such would go ever deeper.
   */
  const refuse = (attempt: Attempt, code: AttemptErrorCode, message: string, final?: "final"): void =>
    queueMicrotask(() => guarded(attempt, () => finish(attempt, unsent(code, message, attempt.startedAt), final)))

  const brokeDown = (attempt: Attempt, cause: unknown): void => {
    const { eventId } = attempt.item
    const about = { destination_id: id, event_id: eventId }
    run(Effect.logError("an attempt broke down", about, Cause.die(cause)))
    try {
      finish(attempt, unsent("INTERNAL_ERROR", "the gateway could not make this attempt", now()))
    } catch (again) {
      run(Effect.logError("an attempt that broke down could not be recorded", about, Cause.die(again)))
      unrecorded.delete(eventId)
      queue.lost(attempt.item)
    }
  }

  const send = (attempt: Attempt): void => {
    const { connection, item, startedAt, trigger } = attempt
    const destination = state
    if (destination === null || connection === undefined || destination.target === null) {
      return refuse(attempt, "INTERNAL_ERROR", "the destination's stored settings cannot be read")
    }
    const inbound = withCredentials(secrets, destination.credentials, item)
    if (inbound === null) {
      return refuse(attempt, "INTERNAL_ERROR", "the credentials that the sender presented cannot be read")
    }
    const request = prepare(destination.target, inbound, {
      eventId: item.eventId,
      requestId: item.payload.requestId,
      webhookId: item.rootEventId ?? item.eventId,
      attemptNumber: item.attempts + 1,
      trigger,
      willRetryAfter: willRetryAfter(connection, item, startedAt),
      sourceName: connection.sourceName,
      connectionName: connection.name,
      destinationName: destination.name,
      verified: item.payload.verified,
      originalIp: item.payload.originalIp,
      timestampSeconds: Math.floor(startedAt / 1000)
    })
    attempt.method = request.method
    const refusal = refusalOf(request)
    if (request.url === null || refusal !== null) {
      attempt.url = destination.target.url
      return refuse(attempt, refusal?.code ?? "INTERNAL_ERROR", refusal?.message ?? "", "final")
    }
    const { url } = request
    const { path, query } = item.payload
    // What is recorded shows no credential that goes out in the query.
    const isForwarded = destination.credentials === "forward" && inbound.query !== query
    attempt.url = isForwarded ? (targetUrl(destination.target, path, query) ?? destination.target.url) : url
    if (destination.type === "MOCK_API") {
      const answer = mockAnswer({ ...request, url })
      const respondedAt = now()
      queueMicrotask(() =>
        guarded(attempt, () =>
          finish(attempt, { ...answer, errorCode: null, errorMessage: null, sentAt: startedAt, respondedAt })
        )
      )
      return
    }
    const headers = traceHeaders(attempt.trace, request.headers)
    egress.deliver({ ...request, url, headers, mayStart: holdsLease }).then(
      (answer) => guarded(attempt, () => answered(attempt, answer)),
      (cause: unknown) => brokeDown(attempt, cause)
    )
  }

  const answered = (attempt: Attempt, answer: Answer): void => {
    // It waited for its connection until the shard was somebody else's: not an attempt, and no longer ours.
    if (answer.errorCode === "NETWORK_REQUEST_CANCELED" && answer.status === null && !holdsLease()) {
      unrecorded.delete(attempt.item.eventId)
      queue.abandoned(attempt.item)
    } else finish(attempt, answer)
  }

  /** Hands an attempt in to be recorded. Throws only when it did not. `final`: the next attempt would be the same. */
  const finish = (
    { connection, item, method, startedAt, trace, trigger, url }: Attempt,
    answer: Answer,
    final?: "final"
  ): void => {
    const successful =
      answer.errorCode === null && answer.status !== null && answer.status >= 200 && answer.status < 300
    const errorCode = answer.errorCode ?? (successful ? null : "BAD_RESPONSE")
    const finishedAt = now()
    const attemptNumber = item.attempts + 1
    const firstAttemptAt = item.firstAttemptAt ?? answer.sentAt
    const retryAt =
      successful || final === "final" ? null : retryTime(connection, attemptNumber, answer, finishedAt, firstAttemptAt)
    journal.record(
      {
        id: newId(prefixes.attempt, finishedAt),
        teamId: item.teamId,
        eventId: item.eventId,
        requestId: item.payload.requestId,
        connectionId: item.connectionId,
        sourceId: item.sourceId,
        destinationId: id,
        attemptNumber,
        trigger,
        successful,
        responseStatus: answer.status,
        errorCode,
        failureMessage: successful ? null : (answer.errorMessage ?? `HTTP ${answer.status} from destination`),
        body: answer.body.length === 0 ? null : answer.body,
        responseHeaders: answer.status === null ? null : JSON.stringify(answer.headers),
        requestedUrl: url,
        httpMethod: method,
        bulkRetryId: item.retryOperationId,
        deliveredAt: answer.sentAt,
        respondedAt: answer.status === null ? null : Math.max(answer.respondedAt, answer.sentAt),
        deliveryLatency: Math.max(0, answer.sentAt - startedAt),
        finishedAt,
        eventCreatedAt: item.createdAt,
        retryAt
      },
      (recorded) => {
        unrecorded.delete(item.eventId)
        if (recorded === "superseded") queue.recorded(item, { kind: "superseded" })
        else if (recorded === "PENDING" && retryAt !== null) {
          queue.recorded(item, {
            kind: "retry",
            item: { ...item, attempts: attemptNumber, dueAt: retryAt, firstAttemptAt, lastAttemptAt: finishedAt }
          })
        } else queue.recorded(item, { kind: "finished" })
      }
    )
    tracing.attempted(trace, {
      ...item,
      destinationId: id,
      startedAt,
      endedAt: finishedAt,
      status: answer.status,
      error: errorCode
    })
    // The journal answers later.
    queue.ended(answer.status !== null)
  }

  const refill = Effect.gen(function* () {
    const lanes = Math.max(1, state?.connections.size ?? 1)
    const perLane = Math.max(50, Math.ceil(refillRows / lanes))
    const due = yield* dueRows(shard, id, now() + horizonMs, perLane)
    const counts = new Map<string, number>()
    const unknown: Array<{ readonly rank: number; readonly row: DueRow }> = []
    const wanted: Array<string> = []
    const behind = new Set<string>()
    const room = Math.max(leastRefill, queue.room)
    for (const row of due) {
      const rank = (counts.get(row.connection_id) ?? 0) + 1
      counts.set(row.connection_id, rank)
      if (rank === perLane) behind.add(row.connection_id)
      if (!queue.isKnown(row.event_id)) unknown.push({ rank, row })
    }
    // By rank in their lane: the lanes that have the least in memory first, so that none is left out however many there are.
    unknown.sort((a, b) => a.rank - b.rank)
    for (const { row } of unknown) {
      if (wanted.length < room) wanted.push(row.event_id)
      else behind.add(row.connection_id)
    }
    const read = yield* pendingEvents(wanted, refillBytes)
    const bodies = read.reduce((sum, row) => sum + (row.body?.length ?? 0), 0)
    // Cut off by size: whatever was not read is still there.
    if (bodies >= refillBytes) for (const { row } of unknown) behind.add(row.connection_id)
    queue.refilled(read.map(storedItem), behind)
  }).pipe(
    // Defects too: the queue waits for an answer, and asks no second time before it has one.
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
    slots,
    deliver,
    mark: (item, startedAt, done) => journal.mark(item.eventId, startedAt, done),
    refill: () => void run(refill),
    unknown: () => {
      const at = now()
      if (at - unknownAt < unknownEveryMs) return
      unknownAt = at
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

  /** Runs the queue's timers until it is idle. */
  const runPump = Effect.gen(function* () {
    while (queue.nextAt !== null) {
      changed.closeUnsafe()
      const wait = queue.nextAt - now()
      if (wait <= 0) queue.tick()
      else if (wait === Number.POSITIVE_INFINITY) yield* changed.await
      else
        yield* Effect.raceFirst(changed.await, Effect.sleep(wait)).pipe(Effect.andThen(Effect.sync(() => queue.tick())))
      yield* Effect.yieldNow
    }
  }).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        pump = null
      })
    )
  )

  /** Keeps the actor in memory while its queue is at work: a running handler does, a forked fiber does not. */
  const work = Effect.gen(function* () {
    if (pump === null && queue.nextAt !== null) pump = yield* Effect.forkIn(runPump, scope)
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

  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      queue.stop()
      while (queue.underWay > 0) yield* Effect.sleep(10)
    }).pipe(Effect.timeout(drainPatience), Effect.ignore)
  )

  // An actor cannot begin before it knows what it delivers by.
  yield* reload

  return {
    shard,
    reload,
    work,
    offer: (items: ReadonlyArray<DeliveryItem>, more: boolean) => queue.offer(items, more),
    wake: () => queue.wake()
  }
})

const retryTime = (
  connection: ConnectionState | undefined,
  attemptNumber: number,
  answer: Answer,
  now: number,
  firstAttemptAt: number
): number | null => {
  const next = nextRetry(
    connection?.retry ?? null,
    attemptNumber,
    { status: answer.errorCode === null ? answer.status : null, retryAfter: retryAfterOf(answer) },
    now,
    firstAttemptAt,
    Math.random()
  )
  return next.final ? null : next.retryAt
}

const retryAfterOf = (answer: Answer): string | null => {
  const value = answer.headers["retry-after"]
  return typeof value === "string" ? value : null
}

/** Seconds until the next attempt should this one fail without saying when; null when it is the last. */
const willRetryAfter = (connection: ConnectionState, item: DeliveryItem, now: number): number | null => {
  const next = nextRetry(
    connection.retry,
    item.attempts + 1,
    { status: null, retryAfter: null },
    now,
    item.firstAttemptAt ?? now,
    0.5
  )
  return next.final ? null : Math.round((next.retryAt - now) / 1000)
}

const triggerOf = (item: DeliveryItem, connection: ConnectionState | undefined): string =>
  connection !== undefined && connection.resumedAt > Math.max(item.createdAt, item.lastAttemptAt ?? 0)
    ? "UNPAUSE"
    : item.attempts === 0
      ? item.trigger
      : "AUTOMATIC"

/** The outcome of an attempt of which nothing was sent. */
const unsent = (errorCode: AttemptErrorCode, errorMessage: string, at: number): Answer => ({
  status: null,
  headers: {},
  body: Buffer.alloc(0),
  bodyTruncated: false,
  errorCode,
  errorMessage,
  sentAt: at,
  respondedAt: at
})
