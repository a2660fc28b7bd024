import { Cause, Effect, Exit, type Fiber } from "effect"
import { Refusal } from "@tidegate/connectors/Connector"
import { Echoes } from "@tidegate/redaction/Echoes"
import type { Database } from "@tidegate/storage/Database"
import { Secrets } from "@tidegate/storage/secrets/Secrets"
import { NotObtained } from "../../tokens/TokenAnswers.ts"
import { type Attempt, factsOf, type Outcome, unanswered } from "./Attempt.ts"
import { type EndingHost, makeAttemptEnding } from "./AttemptEnding.ts"
import { isBatchSender, type Member } from "./Batching.ts"
import type { DestinationState, ConnectionQueueSettings } from "../DestinationState.ts"
import { withCredentials } from "./ForwardedCredentials.ts"
import type { Opened, Opening } from "./Opened.ts"
import { forSendingMs, makeSenders, timeOf } from "./Senders.ts"
import type { Polls } from "../pull/Polls.ts"
import type { Tunnel } from "../tunnel/Tunnel.ts"

/** The part of an attempt's time for a token (ms). */
const forTokenMs = 20_000

/** The ways to targets that come to the gateway themselves; null: the destination has no such way. */
export interface Ways {
  readonly tunnel: Tunnel | null
  readonly polls: Polls | null
}

interface Sending extends EndingHost {
  readonly opening: Opening
}

/** Makes attempts with the kind of sender that a destination has, and with a token where it needs one. */
export const makeSending = Effect.fnUntraced(function* ({ opening, ...host }: Sending) {
  const { holdsLease, now, run } = host
  const secrets = yield* Secrets
  const ending = makeAttemptEnding(host)
  const { abandon, answered, brokeDown, finish, guarded, refuse, soon } = ending
  const senders = yield* makeSenders(host, ending)

  const waiting = new Set<Fiber.Fiber<unknown, unknown>>()

  const unreadable = (attempt: Attempt): void =>
    refuse(attempt, "INTERNAL_ERROR", "the destination's stored settings cannot be read", false)

  const begin = (attempt: Attempt, destination: DestinationState | null, ways: Ways): void => {
    const { connection } = attempt
    if (destination === null || connection === undefined) return unreadable(attempt)
    const opened = opening.current(attempt.startedAt)
    if (opened !== null) return sendBy(attempt, destination, connection, ways, opened, false)
    if (destination.bearer === null) return unreadable(attempt)
    awaiting(
      attempt,
      destination,
      opening.obtain(destination),
      null,
      (opened) => sendBy(attempt, destination, connection, ways, opened, false),
      () => abandon(attempt)
    )
  }

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
    connection: ConnectionQueueSettings,
    ways: Ways,
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
    const plain = factsOf(attempt, connection, destination, shown)
    const facts = sender.kind === "http" && sender.marksMessages === true ? senders.marked(attempt, plain) : plain
    /** Ends the attempt with the target's answer, unless another token may be accepted. */
    const ended: Member["ended"] = (answer, judge) =>
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
          (renewed) => sendBy(attempt, destination, connection, ways, renewed, true),
          () => answered(attempt, answer, judge)
        )
      })
    if (sender.kind === "session") {
      attempt.method = sender.method
      attempt.url = sender.shownUrl
      return senders.session(attempt, session!, message, facts)
    }
    if (isBatchSender(sender) && attempt.call === null) {
      const { method, part: partOf, shownUrl } = sender.batch
      attempt.method = method
      attempt.url = shownUrl
      const part = partOf(message, facts)
      if (part instanceof Refusal) return refuse(attempt, part.code, part.message, true)
      if (part !== null) return senders.batch(sender, { attempt, part, facts, ended })
    }
    const request = sender.prepare(message, facts)
    attempt.method = request.method
    attempt.url = request.shownUrl
    if (request instanceof Refusal) return refuse(attempt, request.code, request.message, true)
    if (sender.kind === "tunnel") return senders.tunnel(attempt, sender, request, facts, ways.tunnel!)
    if (sender.kind === "pull") return senders.pull(attempt, sender, request, facts, ways.polls!)
    if (sender.kind === "local") return senders.local(attempt, sender, request)
    const { judge } = sender
    // An attempt that waited for its token has only the rest of its time.
    const waitedMs = token === null ? 0 : now() - attempt.startedAt
    senders.http(attempt, sender, request, facts, waitedMs, (answer) => ended(answer, judge))
  }

  return {
    /** Interrupts what is under way over a session or waits for a token. */
    cancel: (): void => {
      opening.cancel()
      for (const fiber of waiting) fiber.interruptUnsafe()
    },
    refuse,
    /** Begins an attempt; `ends` is called later with its end. */
    send: (attempt: Attempt, destination: DestinationState | null, ways: Ways): void =>
      guarded(attempt, () => begin(attempt, destination, ways))
  }
})
