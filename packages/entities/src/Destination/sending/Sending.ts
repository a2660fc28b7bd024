import { Cause, Effect, Exit, type Fiber } from "effect"
import { type HttpSender, type OutboundRequest, Refusal, type Verdict } from "@tidegate/connectors/Connector"
import { Egress } from "@tidegate/egress/Egress"
import type { AttemptErrorCode } from "@tidegate/model/AttemptErrorCode"
import { maxCapturedBytes } from "@tidegate/model/BodyLimits"
import { loopHeader } from "@tidegate/model/HeaderRules"
import { Echoes } from "@tidegate/redaction/Echoes"
import type { Database } from "@tidegate/storage/Database"
import { Secrets } from "@tidegate/storage/secrets/Secrets"
import { traceHeaders } from "@tidegate/telemetry/Tracing"
import { Loops } from "../../Loops.ts"
import { NotObtained } from "../../tokens/TokenEndpoint.ts"
import { type Attempt, factsOf, type Outcome, unanswered, verdictOf, withoutEchoes } from "./Attempt.ts"
import { type Ending, endingOf } from "../../limits/ConcurrencyLimit.ts"
import type { DestinationState, ConnectionQueueSettings } from "../DestinationState.ts"
import { withCredentials } from "./ForwardedCredentials.ts"
import type { Opened, Opening } from "./Opened.ts"
import type { SendExit } from "./Sessions.ts"
import type { Returned, Tunnel, TunnelEnding } from "../tunnel/Tunnel.ts"
import { jobOf, outcomeOf } from "../tunnel/TunnelJob.ts"

/** The longest attempt by HTTP or through a tunnel (ms), including the wait for a token. A step has a time-out of its own. */
const attemptMs = 30_000
/** The part of it for a token; and the part that is kept for sending. */
const forTokenMs = 20_000
const forSendingMs = 1_000

const timeOf = ({ call }: Attempt): number => call?.timeoutMs ?? attemptMs

/** The headers of a complete request, with the headers that every request of its kind has. */
const headersOf = (
  { call, item, trace }: Attempt,
  headers: ReadonlyArray<string>,
  loops: Loops
): ReadonlyArray<string> => {
  const traced = traceHeaders(trace, headers)
  if (call === null) {
    const { headers: sent, requestId } = item.payload
    return [...traced, loopHeader, loops.next(sent, requestId)]
  }
  const own = new Set(call.headers.filter((_, i) => i % 2 === 0))
  return [...traced.filter((_, i) => !own.has(traced[i - (i % 2)]!.toLowerCase())), ...call.headers]
}

interface Sending {
  readonly id: string
  readonly opening: Opening
  readonly now: () => number
  readonly holdsLease: () => boolean
  readonly run: <A, E>(effect: Effect.Effect<A, E, Database | Secrets>) => Fiber.Fiber<A, E>
  /** Whether its target accepts nothing now: what is not sent yet waits. */
  readonly isHeld: () => boolean
  /** A target has answered; called before the end of the attempt is reported. */
  readonly heard: (outcome: Outcome, verdict: Verdict) => void
  readonly ends: Ends
}

/** Receives the ends of attempts: each attempt ends with exactly one of these calls. */
export interface Ends {
  /** It has ended. Throws only when that could not be processed. */
  readonly finished: (attempt: Attempt, outcome: Outcome, verdict: Verdict, how: Ending) => void
  /** Nothing was sent, and the event belongs to another owner now. */
  readonly abandoned: (attempt: Attempt) => void
  /** The tunnel client that had it is gone. */
  readonly returned: (attempt: Attempt) => void
  /** It failed unexpectedly, and reporting that failed too. */
  readonly lost: (attempt: Attempt) => void
}

/**
 * Makes attempts with the kind of sender that a destination has. An unexpected error in an attempt, at once or with its answer,
 * is a failed attempt: it is recorded before anything is sent again, and the retry rule applies. Only when it cannot be recorded
 * either is the event put back, to be read again later.
 */
export const makeSending = Effect.fnUntraced(function* (sending: Sending) {
  const { ends, heard, holdsLease, id, isHeld, now, opening, run } = sending
  const egress = yield* Egress
  const secrets = yield* Secrets
  const loops = yield* Loops
  /** Called when a request is about to be written. That may be long after it began, because it waits for a connection. */
  const mayWrite = (): boolean => holdsLease() && !isHeld()

  const waiting = new Set<Fiber.Fiber<unknown, unknown>>()

  const guarded = (attempt: Attempt, step: () => void): void => {
    try {
      step()
    } catch (cause) {
      queueMicrotask(() => brokeDown(attempt, cause))
    }
  }

  /**
   * Continues an attempt later in this iteration of the event loop, but not at once: the queue starts the next attempt when this
   * one ends, and a backlog of such attempts would exceed the call stack.
   */
  const soon = (attempt: Attempt, step: () => void): void => queueMicrotask(() => guarded(attempt, step))

  /** Ends an attempt for which nothing was sent. */
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
      ends.lost(attempt)
    }
  }

  const begin = (attempt: Attempt, destination: DestinationState | null, tunnel: Tunnel | null): void => {
    const { lane } = attempt
    if (destination === null || lane === undefined) return unreadable(attempt)
    const opened = opening.current(attempt.startedAt)
    if (opened !== null) return sendBy(attempt, destination, lane, tunnel, opened, false)
    if (destination.bearer === null) return unreadable(attempt)
    awaiting(
      attempt,
      destination,
      opening.obtain(destination),
      null,
      (opened) => sendBy(attempt, destination, lane, tunnel, opened, false),
      () => abandon(attempt)
    )
  }

  const unreadable = (attempt: Attempt): void =>
    refuse(attempt, "INTERNAL_ERROR", "the destination's stored settings cannot be read", false)

  /**
   * Continues when a token is there. Without a token the attempt has failed. `outcome`: the target's answer to the last token.
   * `otherwise`: called when there is no sender to continue with, or when the attempt may no longer be sent as it was begun.
   */
  const awaiting = (
    attempt: Attempt,
    destination: DestinationState,
    obtaining: Effect.Effect<Opened | null, NotObtained, Database | Secrets>,
    outcome: Outcome | null,
    then: (opened: Opened) => void,
    otherwise: () => void
  ): void => {
    const left = timeOf(attempt) - forSendingMs - (now() - attempt.startedAt)
    const duration = Math.max(0, Math.min(forTokenMs, left))
    const message = `no token came within ${Math.round(duration / 1_000)} seconds`
    const orElse = () => Effect.fail(new NotObtained({ message, refused: false, waitMs: null }))
    const fiber = run(Effect.timeoutOrElse(obtaining, { duration, orElse }))
    waiting.add(fiber)
    fiber.addObserver((exit) => {
      waiting.delete(fiber)
      soon(attempt, () => {
        // The actor has to stop, or has lost its shard, or its destination was disabled, paused or changed meanwhile.
        const isOff = Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
        if (isOff || !holdsLease() || !opening.goesBy(destination)) return otherwise()
        if (Exit.isSuccess(exit)) return exit.value === null ? otherwise() : then(exit.value)
        const failure = Cause.findErrorOption(exit.cause)
        if (failure._tag === "None") return brokeDown(attempt, exit.cause)
        const { message, waitMs } = failure.value
        const retryAfter = waitMs === null ? {} : { retryAfter: Math.ceil(waitMs / 1_000) }
        const verdict = { code: "OAUTH2_HANDSHAKE_FAILED", message, final: false, ...retryAfter } as const
        if (outcome === null)
          finish(attempt, unanswered(verdict.code, message, attempt.startedAt, now()), verdict, "unsent")
        else finish(attempt, outcome, verdict, "answered")
      })
    })
  }

  const sendBy = (
    attempt: Attempt,
    destination: DestinationState,
    lane: ConnectionQueueSettings,
    tunnel: Tunnel | null,
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
    // The recorded request shows no credential that is sent.
    const shown = credentials === "forward" ? item.payload : message
    const facts = factsOf(attempt, lane, destination, shown)
    if (sender.kind === "session") {
      attempt.method = sender.method
      attempt.url = sender.shownUrl
      return session!.send(message, facts, timeOf(attempt), holdsLease, (exit) =>
        soon(attempt, () => sent(attempt, exit))
      )
    }
    const request = sender.prepare(message, facts)
    attempt.method = request.method
    attempt.url = request.shownUrl
    if (request instanceof Refusal) return refuse(attempt, request.code, request.message, true)
    if (sender.kind === "http") {
      // An attempt that waited for its token has only the rest of its time.
      const spent = token === null ? 0 : now() - attempt.startedAt
      const exchange = (complete: OutboundRequest) =>
        egress.deliver({
          ...complete,
          headers: headersOf(attempt, complete.headers, loops),
          mayStart: mayWrite,
          timeoutMs: Math.max(forSendingMs, timeOf(attempt) - spent),
          captureBytes: attempt.call?.captureBytes ?? maxCapturedBytes
        })
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
            // The target no longer accepts this token: the call is repeated once with another one.
            awaiting(
              attempt,
              destination,
              opening.renew(destination, token),
              answer,
              (renewed) => sendBy(attempt, destination, lane, tunnel, renewed, true),
              () => answered(attempt, answer, judge)
            )
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
      const headers = headersOf(attempt, request.headers, loops)
      const path = request.url.slice(origin.length)
      const job = jobOf({ ...request, headers }, path, facts, item.payload.dataId, localUrl, timeOf(attempt))
      return tunnel!.send(job, (ending) => wentThrough(attempt, ending, sender.judge))
    }
    const called = attempt.call === null ? request : { ...request, headers: headersOf(attempt, request.headers, loops) }
    const answer = sender.answer(called)
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
    if (failure._tag === "Some" && failure.value.unsent === true) return abandon(attempt)
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

  /** A delivery through the tunnel has ended. */
  const wentThrough = (attempt: Attempt, ending: TunnelEnding | Returned, judge: HttpSender["judge"]): void => {
    if (ending.kind === "returned") return ends.returned(attempt)
    soon(attempt, () => {
      const outcome = outcomeOf(ending, attempt.startedAt, now(), timeOf(attempt))
      const verdict = verdictOf(outcome, judge)
      heard(outcome, verdict)
      // The end says nothing about how many may be under way: with a tunnel that number is fixed.
      finish(attempt, outcome, verdict, ending.kind === "away" ? "unsent" : "answered")
    })
  }

  /**
   * Whether the attempt waited for its connection until another owner had the shard, or the target accepted nothing. Then it was
   * no attempt.
   */
  const isOver = ({ errorCode, status }: Outcome): boolean =>
    errorCode === "NETWORK_REQUEST_CANCELED" && status === null && !mayWrite()

  const abandon = (attempt: Attempt): void => ends.abandoned(attempt)

  const answered = (attempt: Attempt, outcome: Outcome, judge: HttpSender["judge"]): void => {
    if (isOver(outcome)) return abandon(attempt)
    const verdict = verdictOf(outcome, judge)
    heard(outcome, verdict)
    finish(attempt, outcome, verdict, endingOf(outcome))
  }

  const finish = (attempt: Attempt, answer: Outcome, judged: Verdict, how: Ending): void => {
    const [outcome, verdict] = withoutEchoes(attempt, answer, judged)
    ends.finished(attempt, outcome, verdict, how)
  }

  return {
    /** Interrupts what is under way over a session or waits for a token. */
    cancel: (): void => {
      opening.cancel()
      for (const fiber of waiting) fiber.interruptUnsafe()
    },
    refuse,
    /** Begins an attempt; `ends` is called later with its end. */
    send: (attempt: Attempt, destination: DestinationState | null, tunnel: Tunnel | null): void =>
      guarded(attempt, () => begin(attempt, destination, tunnel))
  }
})
