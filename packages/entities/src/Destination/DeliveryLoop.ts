import { Cause, Clock, Effect, Exit, Fiber, Latch, Schedule, Semaphore } from "effect"
import { Entity, Sharding } from "effect/cluster"
import { type HttpSender, type OutboundRequest, Refusal, type Verdict } from "@tidegate/connectors/Connector"
import { Egress } from "@tidegate/egress/Egress"
import type { AttemptErrorCode } from "@tidegate/model/AttemptErrorCode"
import type { RatePeriod } from "@tidegate/model/Destination"
import { passed } from "@tidegate/model/TestSignal"
import { cancelPending } from "@tidegate/storage/CancelPending"
import type { Database } from "@tidegate/storage/Database"
import { recentStarts } from "@tidegate/storage/DeliveryRows"
import { Journal } from "@tidegate/storage/Journal"
import { Echoes } from "@tidegate/signatures/Echoes"
import { Secrets } from "@tidegate/storage/Secrets"
import { traceHeaders, Tracing } from "@tidegate/telemetry/Tracing"
import { Lease } from "../Lease.ts"
import * as Residents from "../Residents.ts"
import { shardOf } from "../Shards.ts"
import {
  type Attempt,
  beginAttempt,
  endingOf,
  factsOf,
  type Outcome,
  recordOf,
  retryOf,
  unanswered,
  verdictOf,
  withoutEchoes
} from "./Attempt.ts"
import type { Ending } from "./ConcurrencyLimit.ts"
import type { Batch } from "../Batch.ts"
import type { DeliveryItem } from "./DeliveryItem.ts"
import { DeliveryQueue, horizonMs } from "./DeliveryQueue.ts"
import { DeliveryRuntime } from "./DeliveryRuntime.ts"
import { type DestinationState, type LaneSettings, loadDestination } from "./DestinationState.ts"
import { withCredentials } from "./ForwardedCredentials.ts"
import { Pacer } from "./Pacer.ts"
import type { QueueHost } from "./QueueHost.ts"
import { readRefill } from "./Refill.ts"
import { makeOpening, type Opened } from "./Opened.ts"
import type { SendExit } from "./Sessions.ts"
import type { NotObtained } from "./tokens/TokenEndpoint.ts"
import { mostThroughTunnel, type Returned, Tunnel, type TunnelEnding } from "./Tunnel.ts"
import { jobOf, outcomeOf } from "./TunnelJob.ts"
import type { Heard, Listening, TunnelResult } from "./TunnelProtocol.ts"

/** An actor that is told to stop waits this long for what it has on the wire, so that the next one need not repeat it. */
const drainPatience = "10 seconds"
/** An attempt by HTTP takes no longer (ms), waiting for a token included. */
const attemptMs = 30_000
/** Without work it is kept awake for so long, once or twice: what comes meanwhile needs no message. */
const linger = "1 second"
/** A connection that stays unknown is asked about no more often than this (ms). */
const unknownEveryMs = 1_000
/** More unknown ones than these are not told apart. */
const mostUnknown = 1_000

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
  const { connectorOf, slots, watch } = yield* DeliveryRuntime
  const residents = yield* Residents.Destinations
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
  let pacing: { readonly limit: number; readonly period: RatePeriod; readonly pacer: Pacer } | null = null
  /** Deliveries started and not yet recorded, by event; and those started since the last reload began. */
  const unrecorded = new Map<string, number>()
  let startedMeanwhile: Array<number> | null = null
  const cancelling = new Set<string>()
  let held = false
  /** Batches given so far. */
  let given = 0
  /** When unknown connections were asked about. */
  const unknownAt = new Map<string, number>()

  const load = loadDestination(id, shard, connectorOf)
  const opening = yield* makeOpening(scope, holdsLease)

  /** One at a time: what was read later is applied later. */
  const loadAndApply = Semaphore.makeUnsafe(1).withPermits(1)(
    Effect.gen(function* () {
      expected = null
      startedMeanwhile = pacing === null ? [...unrecorded.values()] : []
      const next = yield* load
      const pacer = yield* pacerOf(next)
      yield* opening.apply(next)
      state = next
      const isTunnel = next?.sender?.kind === "tunnel"
      if (isTunnel) tunnel ??= new Tunnel({ now, after, changed: tunnelChanged })
      tunnel?.configure(isTunnel)
      for (const connectionId of unknownAt.keys()) if (next?.lanes.has(connectionId)) unknownAt.delete(connectionId)
      queue.configure({
        state: next?.state ?? "cancelled",
        cancelBefore: next?.cancelBefore ?? 0,
        lanes: next?.lanes ?? new Map<string, LaneSettings>(),
        pacer,
        maxConcurrency: isTunnel ? mostThroughTunnel : (next?.maxConcurrency ?? null),
        presence: isTunnel ? tunnel : null
      })
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

  /** The reload that has not begun to read yet: whoever asks for one meanwhile is served by it. */
  let expected: Fiber.Fiber<void> | null = null

  /**
   * Completes once the stored state governs every later delivery. It waits for the database for as long as that takes; who cannot,
   * sets a deadline.
   */
  const reload = Effect.suspend(() => {
    if (expected !== null) return Fiber.join(expected)
    return Effect.flatMap(Effect.forkIn(loadAndApply, scope), (fiber) => {
      expected = fiber
      return Fiber.join(fiber)
    })
  })

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
    const { headers, requestId } = item.payload
    const trace = tracing.attempt(headers, requestId, item.rootEventId ?? item.eventId)
    const attempt = beginAttempt(item, state?.lanes.get(item.connectionId), startedAt, trace)
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
   * Goes on with an attempt later in this turn. Not at once: the queue starts the next one when this one ends, and a backlog of
   * such would go ever deeper.
   */
  const soon = (attempt: Attempt, step: () => void): void => queueMicrotask(() => guarded(attempt, step))

  /** Ends an attempt of which nothing was sent. */
  const refuse = (attempt: Attempt, code: AttemptErrorCode, message: string, final: boolean): void =>
    soon(attempt, () => {
      const { startedAt } = attempt
      finish(attempt, unanswered(code, message, startedAt, startedAt), { code, message, final }, "unsent")
    })

  const brokeDown = (attempt: Attempt, cause: unknown): void => {
    const { eventId } = attempt.item
    const about = { destination_id: id, event_id: eventId }
    run(Effect.logError("an attempt broke down", about, Cause.isCause(cause) ? cause : Cause.die(cause)))
    try {
      const failure = { code: "INTERNAL_ERROR", message: "the gateway could not make this attempt" } as const
      const at = now()
      finish(attempt, unanswered(failure.code, failure.message, at, at), { ...failure, final: false }, "unsent")
    } catch (again) {
      run(Effect.logError("an attempt that broke down could not be recorded", about, Cause.die(again)))
      unrecorded.delete(eventId)
      queue.lost(attempt.item)
    }
  }

  const send = (attempt: Attempt): void => {
    const { lane } = attempt
    const destination = state
    if (destination === null || lane === undefined) return unreadable(attempt)
    const opened = opening.current(attempt.startedAt)
    if (opened !== null) return sendBy(attempt, destination, lane, opened, false)
    if (destination.bearer === null) return unreadable(attempt)
    awaiting(attempt, opening.obtain(destination), null, (opened) => sendBy(attempt, destination, lane, opened, false))
  }

  const unreadable = (attempt: Attempt): void =>
    refuse(attempt, "INTERNAL_ERROR", "the destination's stored settings cannot be read", false)

  /** Goes on when a token is there. Without one the attempt has failed; `outcome`: what the target has said to the last one. */
  const awaiting = <A>(
    attempt: Attempt,
    obtaining: Effect.Effect<A, NotObtained, Database | Secrets>,
    outcome: Outcome | null,
    then: (opened: A) => void
  ): void => {
    run(obtaining).addObserver((exit) =>
      soon(attempt, () => {
        if (Exit.isSuccess(exit)) return then(exit.value)
        const failure = Cause.findErrorOption(exit.cause)
        // Told to stop, or no owner any more: not an attempt.
        if (Cause.hasInterruptsOnly(exit.cause) || !holdsLease()) return abandon(attempt)
        if (failure._tag === "None") return brokeDown(attempt, exit.cause)
        const { message, waitMs } = failure.value
        const retryAfter = waitMs === null ? {} : { retryAfter: Math.ceil(waitMs / 1_000) }
        const verdict = { code: "OAUTH2_HANDSHAKE_FAILED", message, final: false, ...retryAfter } as const
        if (outcome === null)
          finish(attempt, unanswered(verdict.code, message, attempt.startedAt, now()), verdict, "unsent")
        else finish(attempt, outcome, verdict, "answered")
      })
    )
  }

  const sendBy = (
    attempt: Attempt,
    destination: DestinationState,
    lane: LaneSettings,
    opened: Opened,
    isRenewed: boolean
  ): void => {
    const { item } = attempt
    const { credentials } = destination
    const { sender, session, token } = opened
    attempt.echoes = token === null ? destination.echoes : Echoes.with(destination.echoes, token)
    const message = withCredentials(secrets, credentials, item)
    if (message === null) {
      return refuse(attempt, "INTERNAL_ERROR", "the credentials that the sender presented cannot be read", false)
    }
    // What is recorded shows no credential that goes out.
    const shown = credentials === "forward" ? item.payload : message
    const facts = factsOf(attempt, lane, destination, shown)
    if (sender.kind === "session") {
      attempt.method = sender.method
      attempt.url = sender.shownUrl
      return session!.send(message, facts, holdsLease, (exit) => soon(attempt, () => sent(attempt, exit)))
    }
    const request = sender.prepare(message, facts)
    attempt.method = request.method
    attempt.url = request.shownUrl
    if (request instanceof Refusal) return refuse(attempt, request.code, request.message, true)
    if (sender.kind === "http") {
      // Of an attempt that has waited for its token, what is left of its time.
      const timeout = token === null ? {} : { timeoutMs: Math.max(1_000, attemptMs - (now() - attempt.startedAt)) }
      const exchange = (complete: OutboundRequest) => {
        const headers = traceHeaders(attempt.trace, complete.headers)
        return egress.deliver({ ...complete, headers, mayStart: holdsLease, ...timeout })
      }
      const exchanged =
        sender.complete === undefined ? exchange(request) : sender.complete(request, facts).then(exchange)
      const { judge } = sender
      exchanged.then(
        (answer) =>
          guarded(attempt, () => {
            if (token === null || answer.status !== 401 || isRenewed) {
              if (token !== null && answer.status !== null && answer.status !== 401) opening.tokens.accepted()
              return answered(attempt, answer, judge)
            }
            // It takes this token no more: once more, with another one.
            awaiting(attempt, opening.renew(destination, token), answer, (renewed) => {
              if (renewed === null) answered(attempt, answer, judge)
              else sendBy(attempt, destination, lane, renewed, true)
            })
          }),
        (cause: unknown) => brokeDown(attempt, cause)
      )
      return
    }
    if (sender.kind === "tunnel") {
      const { origin } = sender
      const { id: cliId, localUrl } = tunnel!.session ?? { id: null, localUrl: null }
      attempt.cliId = cliId
      if (localUrl !== null) attempt.url = localUrl + request.shownUrl.slice(origin.length)
      const headers = traceHeaders(attempt.trace, request.headers)
      const job = jobOf({ ...request, headers }, request.url.slice(origin.length), facts, localUrl)
      return tunnel!.send(job, (ending) => wentThrough(attempt, ending, sender.judge))
    }
    const answer = sender.answer(request)
    const outcome = { ...answer, errorCode: null, errorMessage: null, sentAt: attempt.startedAt, respondedAt: now() }
    soon(attempt, () => answered(attempt, outcome, sender.judge))
  }

  /** A send over a session has ended. */
  const sent = (attempt: Attempt, exit: SendExit): void => {
    const at = now()
    if (Exit.isSuccess(exit)) {
      const outcome = { ...exit.value, errorCode: null, errorMessage: null, sentAt: attempt.startedAt, respondedAt: at }
      return finish(attempt, outcome, "successful", "answered")
    }
    const failure = Cause.findErrorOption(exit.cause)
    if (failure._tag === "None" && !Cause.hasInterruptsOnly(exit.cause)) return brokeDown(attempt, exit.cause)
    const { broken, code, final, message } =
      failure._tag === "Some"
        ? failure.value
        : ({
            code: "NETWORK_REQUEST_CANCELED",
            message: "cancelled by the gateway",
            final: false,
            broken: true
          } as const)
    const outcome = unanswered(code, message, attempt.startedAt, at)
    if (isOver(outcome)) abandon(attempt)
    else finish(attempt, outcome, { code, message, final }, broken ? "overloaded" : "answered")
  }

  /** What was sent through the tunnel has ended. */
  const wentThrough = (attempt: Attempt, ending: TunnelEnding | Returned, judge: HttpSender["judge"]): void => {
    if (ending.kind === "returned") {
      unrecorded.delete(attempt.item.eventId)
      return queue.returned(attempt.item)
    }
    soon(attempt, () => {
      const outcome = outcomeOf(ending, attempt.startedAt, now())
      // Whether it has come or not says nothing of how many may be under way: that is fixed.
      finish(attempt, outcome, verdictOf(outcome, judge), ending.kind === "away" ? "unsent" : "answered")
    })
  }

  /** Whether it waited for its connection until the shard was somebody else's: not an attempt, and no longer ours. */
  const isOver = ({ errorCode, status }: Outcome): boolean =>
    errorCode === "NETWORK_REQUEST_CANCELED" && status === null && !holdsLease()

  const abandon = ({ item }: Attempt): void => {
    unrecorded.delete(item.eventId)
    queue.abandoned(item)
  }

  const answered = (attempt: Attempt, outcome: Outcome, judge: HttpSender["judge"]): void => {
    if (isOver(outcome)) abandon(attempt)
    else finish(attempt, outcome, verdictOf(outcome, judge), endingOf(outcome))
  }

  /** Hands an attempt in to be recorded. Throws only when it did not. */
  const finish = (attempt: Attempt, answer: Outcome, judged: Verdict, how: Ending): void => {
    const { item } = attempt
    const [outcome, verdict] = withoutEchoes(attempt, answer, judged)
    const record = recordOf(attempt, id, outcome, verdict, now(), Math.random())
    journal.record(record, (recorded) => {
      unrecorded.delete(item.eventId)
      if (recorded === "superseded") queue.recorded(item, { kind: "superseded" })
      else if (recorded === "PENDING" && record.retryAt !== null) {
        queue.recorded(item, { kind: "retry", item: retryOf(item, record, record.retryAt) })
      } else queue.recorded(item, { kind: "finished" })
    })
    tracing.attempted(attempt.trace, attempt.startedAt, record)
    // The journal answers later.
    queue.ended(item, how)
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
    unknown: (connectionId) => {
      const at = now()
      if (at - (unknownAt.get(connectionId) ?? Number.NEGATIVE_INFINITY) < unknownEveryMs) return
      if (unknownAt.size >= mostUnknown) unknownAt.clear()
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
  /** Ends once the queue has been idle from one look to the next. */
  const idle = Effect.gen(function* () {
    let before: number
    do {
      before = given
      yield* Effect.sleep(linger)
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
  /** Keeps the actor in memory while its queue is at work: a running handler does, a forked fiber does not. */
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
    // Asleep, it has to be woken by a message: a running handler keeps it in memory.
    if (pump === null || !held) return false
    offer(batch)
    return true
  })

  /** Calls back later, unless it is told not to. */
  const after = (ms: number, then: () => void): (() => void) => {
    const timer = run(Effect.andThen(Effect.sleep(ms), Effect.sync(then)))
    return () => timer.interruptUnsafe()
  }
  const tunnelChanged = (): void => {
    queue.wake()
    run(startPump)
  }
  /** What somebody asks who holds the tunnel open. */
  const listen = (listening: Listening): Effect.Effect<Heard> =>
    Effect.callback<Heard>((resume) => {
      if (tunnel === null) return resume(Effect.succeed({ jobs: [], ended: "gone" }))
      const withdraw = tunnel.listen(listening, (heard) => resume(Effect.succeed(heard)))
      return Effect.sync(withdraw)
    })

  yield* Effect.addFinalizer(() =>
    Effect.callback<void>((resume) => {
      queue.stop(() => resume(Effect.void))
      // The next owner is asked for what is under way there.
      tunnel?.stop()
    }).pipe(Effect.timeout(drainPatience), Effect.ignore, Effect.ensuring(Effect.sync(opening.cancel)))
  )

  /** Null: nothing has been read yet, and so no change can make it stale. */
  let begun: Fiber.Fiber<void> | null = null

  /** Before anything is delivered: completes once it is known what by. */
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
    /** Also one that has not delivered yet begins: what a change has made due is not left to the sweep. */
    reload: Effect.suspend(() => (begun === null ? begin : reload)),
    reloadIfBegun: Effect.suspend(() => (begun === null ? Effect.void : reload)),
    work,
    offer,
    wake: () => queue.wake(),
    tokens: opening.tokens,
    /** How tokens are asked for, once it has begun; null: they are not. */
    tokenSettings: () => state?.bearer?.settings ?? null,
    attach: (localUrl: string | null): string | null => tunnel?.attach(localUrl) ?? null,
    listen,
    answered: (sessionId: string, results: ReadonlyArray<TunnelResult>): number =>
      tunnel?.answered(sessionId, results) ?? results.length,
    leave: (sessionId: string): void => tunnel?.leave(sessionId)
  }
})
